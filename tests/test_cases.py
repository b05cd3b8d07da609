"""The driver's decisions against the case table: where the data shall be, and what is done for it."""

import csv
from pathlib import Path

import pytest

from tests.cases import decide_placement

TABLE = Path(__file__).parent / "data" / "restore_location_cases.csv"
ROWS = list(csv.DictReader(TABLE.read_text().splitlines()))
INPUTS = list(ROWS[0])[1:13]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_driver_decides_as_the_table_says(row):
    answer = decide_placement({key: row[key] for key in INPUTS})
    assert answer == {"location": row["expected_location"], "action": row["expected_action"]}


def case(**changes):
    """Row R01 (a GPU touches memory in RAM, XNACK on) with changes; location and action of the answer."""
    answer = decide_placement({key: ROWS[0][key] for key in INPUTS} | changes)
    return answer["location"], answer["action"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"preferred_loc": "cpu", "actual_loc": "gpu0"}, ("cpu", "migrate_vram_to_ram")),
        (
            {"access_bit": "in_place", "actual_loc": "gpu1", "same_xgmi_hive": "yes"},
            ("gpu1", "map_remote_xgmi"),
        ),
        (
            {"preferred_loc": "gpu1", "actual_loc": "gpu1", "same_xgmi_hive": "yes"},
            ("gpu1", "map_remote_xgmi"),
        ),
        ({"vram_free": "no"}, ("gpu0", "fallback_map_system")),
        ({"actual_loc": "gpu1", "vram_free": "leg1_fails"}, ("gpu0", "fallback_vram_to_ram_granule")),
        ({"write_fault": "no_ro_vma"}, ("gpu0", "migrate_ram_to_vram_map_readonly")),
        ({"actual_loc": "cpu(unregistered)"}, ("gpu0", "create_range_then_migrate_ram_to_vram")),
        ({"precondition": "vma_gone"}, ("none", "drop_stale_no_vma")),
        ({"precondition": "hmm_race"}, ("gpu0", "hmm_race_eagain_wait_for_refault")),
        ({"is_apu": "carveout"}, ("gpu0", "migrate_ram_to_vram")),
        ({"is_apu": "yes", "preferred_loc": "gpu0"}, ("cpu", "map_system")),
        ({"access_bit": "in_place", "actual_loc": "gpu0"}, ("gpu0", "migrate_noop_then_map")),
    ],
)
def test_neighbours_of_the_rows_follow_from_the_same_rules(changes, expected):
    assert case(**changes) == expected


def prefetched(**changes):
    base = {"event": "prefetch", "faulting_gpu": "none", "write_fault": "na", "prefetch_loc": "gpu0"}
    return case(**(base | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("gpu0", "migrate_whole_range_then_map_gpu0")),
        (
            {"access_bit": "in_place(gpu1)", "same_xgmi_hive": "no"},
            ("cpu", "no_migration_map_system_on_both"),
        ),
        (
            {"access_bit": "in_place(gpu1)", "same_xgmi_hive": "no", "actual_loc": "gpu0"},
            ("cpu", "migrate_whole_range_vram_to_ram"),
        ),
        (
            {"xnack": "off", "access_bit": "access(gpu0+gpu1)", "same_xgmi_hive": "no"},
            ("cpu", "no_migration_map_system_on_both"),
        ),
        ({"is_apu": "yes"}, ("cpu", "no_migration")),
        ({"actual_loc": "gpu0"}, ("gpu0", "migrate_leftover_pages_only")),
        (
            {"actual_loc": "gpu1", "vram_free": "leg1_fails"},
            ("gpu0", "migration_error_swallowed_ioctl_continues"),
        ),
        ({"prefetch_loc": "cpu"}, ("cpu", "no_migration")),
    ],
)
def test_a_prefetch_goes_where_all_that_map_it_can_reach_it(changes, expected):
    assert prefetched(**changes) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"xnack": "off"}, ("cpu", "migrate_vram_to_ram_granule_queues_evicted")),
        ({"preferred_loc": "gpu0"}, ("cpu", "migrate_vram_to_ram_granule")),
        ({"actual_loc": "cpu"}, ("cpu", "no_migration")),
    ],
)
def test_a_cpu_fault_brings_a_granule_back_whatever_is_preferred(changes, expected):
    assert case(**({"event": "cpu_fault", "faulting_gpu": "cpu", "actual_loc": "gpu0"} | changes)) == expected


def test_eviction_takes_whole_buffer_objects():
    assert case(event="eviction", faulting_gpu="none", actual_loc="gpu0")[0] == "cpu"
