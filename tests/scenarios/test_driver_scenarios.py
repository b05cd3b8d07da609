"""The scenarios about the SVM driver: the direction or number of each answer."""

from functools import cache
from pathlib import Path

import pytest

import gpusim as gs

FOLDER = Path(__file__).parents[2] / "scenarios"
MIB, GB = 2**20, 1e9


@cache
def result(name, **parameters):
    sets = {f"parameters.{key}": value for key, value in parameters.items()}
    return gs.run(FOLDER / f"{name}.yaml", set=sets)


def seconds(name, step, **parameters):
    return result(name, **parameters).metric(f"steps.{step}.duration_ns") / 1e9


def test_taking_turns_moves_all_of_it_each_time():
    """Each turn of the CPU brings granules back one by one, each turn of the GPU faults them in one per 2 ms."""
    moved = result("taking_turns").metric("migrations.device_to_host.bytes")
    assert moved == 3 * 32 * MIB
    assert seconds("taking_turns", "gpu[3]") == pytest.approx(16 * (2e-3 + 0.336e-3), rel=0.1)


def test_memory_that_both_use_in_turns_is_better_left_in_host_memory():
    in_place = result("taking_turns", in_place=True)
    assert in_place.metric("migrations.host_to_device.bytes") == 0
    assert seconds("taking_turns", "gpu[3]") > 10 * seconds("taking_turns", "gpu[3]", in_place=True)


def test_more_threads_do_not_get_memory_back_faster():
    """UM19: 98 % of the CPU time in one mutex."""
    alone = seconds("migration_lock", "fill", threads=False)
    assert seconds("migration_lock", "fill_by_4") > 0.8 * alone
    waiting = result("migration_lock").summary["attribution"]["lock_wait"]
    assert waiting > result("migration_lock", threads=False).summary["attribution"].get("lock_wait", 0)


def test_a_prefetch_to_the_cpu_lets_threads_work_side_by_side():
    assert seconds("migration_lock", "fill_by_4", prefetch=True) < 0.1 * seconds(
        "migration_lock", "fill_by_4"
    )


def test_larger_granules_stream_faster():
    times = [
        seconds("granularity", "read", granule=granule) for granule in ("512KiB", "2MiB", "16MiB", "64MiB")
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] / times[1] == pytest.approx(4, rel=0.15), "one granule per 2 ms, whatever its size"
    assert result("granularity", granule="1GiB").metric("faults.serviced") == 1


def test_prefetch_trap_kernel_only_and_end_to_end():
    """UM12: the kernel alone gains far more than the program."""
    kernel = [
        result("prefetch_or_fault", prefetch=on).metric("steps.scale.duration_ns") for on in (False, True)
    ]
    whole = [result("prefetch_or_fault", prefetch=on).summary["makespan_ns"] for on in (False, True)]
    assert kernel[0] / kernel[1] > 10 * whole[0] / whole[1]


@pytest.mark.parametrize("advice", ["set_read_mostly", "set_preferred_location"])
def test_advice_that_changes_nothing(advice):
    """UM16: read-mostly has no behaviour in KFD; a preferred GPU does not keep the CPU from taking pages back."""
    assert result("advise", advice=advice).summary["makespan_ns"] == pytest.approx(
        result("advise").summary["makespan_ns"], rel=0.001
    )


def test_accessed_by_keeps_a_shared_table_in_place():
    advised = result("advise", advice="set_accessed_by")
    assert advised.metric("migrations.host_to_device.bytes") == 0
    assert advised.summary["makespan_ns"] < 0.5 * result("advise").summary["makespan_ns"]
    assert any("stored only" in note for note in result("advise", advice="set_read_mostly").summary["notes"])


@pytest.mark.parametrize(
    ("allocator", "xnack", "outcome", "across_the_link"),
    [
        ("malloc", "0", "vm_fault", False),
        ("malloc", "1", "completed", False),
        ("hipMallocManaged", "0", "completed", True),
        ("hipMallocManaged", "1", "completed", False),
        ("hipHostMalloc", "0", "completed", True),
        ("hipHostMalloc", "1", "completed", True),
        ("hipMalloc", "0", "completed", False),
        ("hipMalloc", "1", "completed", False),
    ],
)
def test_the_truth_table_of_facilities(allocator, xnack, outcome, across_the_link):
    """UM09: which allocators work, and whether a second pass still crosses the link."""
    ran = result("xnack_table", allocator=allocator, xnack=xnack)
    assert ran.outcome == outcome
    if outcome == "completed":
        second = ran.metric("steps.again.duration_ns") / 1e9
        assert (64 * MIB / second > 100 * GB) is not across_the_link


@pytest.mark.parametrize(("xnack", "outcome"), [("0", "vm_fault"), ("1", "completed")])
def test_on_an_apu_malloc_needs_xnack_and_faults_without_migration(xnack, outcome):
    """UM10."""
    apu = gs.load(FOLDER / "xnack_table.yaml").with_(
        **{"system.node": "mi300a", "parameters.allocator": "malloc", "parameters.xnack": xnack}
    )
    ran = gs.run(apu)
    assert ran.outcome == outcome
    assert ran.metric("migrations.host_to_device.count") == 0


def test_registration_is_linear_and_huge_pages_help_less_than_512_times():
    """UM34: 2.5 to 2.7 times."""
    pages = 16 * 2**30 / 4096
    base, huge = (seconds("host_registration", "register", huge=word) / pages for word in ("never", "always"))
    assert 0.66e-6 < base < 0.73e-6
    assert huge == pytest.approx(0.27e-6, rel=0.02)
    assert 2.4 < base / huge < 2.8


def test_compaction_costs_a_gpu_more_with_xnack_on():
    """UM22: unmap, flush and fault again against queues that stop once."""
    on, off = (
        seconds("notifier", "read", xnack=mode, compact=True)
        - seconds("notifier", "read", xnack=mode, compact=False)
        for mode in ("1", "0")
    )
    assert on > 3 * off > 0
    assert result("notifier", xnack="0", compact=True).metric("faults.serviced") == 0
    assert result("notifier", xnack="1", compact=True).metric("faults.serviced") == 16


def test_a_second_gpu_takes_the_whole_range_through_ram():
    moved = result("second_gpu").summary["migrations"]
    assert moved["device_to_host"] == {**moved["device_to_host"], "count": 1, "bytes": 32 * MIB}
    assert moved["host_to_device"]["bytes"] == 32 * MIB


def test_allocating_in_the_loop_costs_81_ms_an_iteration_of_240_mb():
    """MAN010: (950 - 219) / 9, and 64 to 111 in other languages."""
    ran = gs.run(FOLDER / "validation" / "mi300a_alloc_loop.yaml")
    loop, once = (ran.metric(f"processes.{name}.end_ns") / 1e6 for name in ("loop", "hoisted"))
    assert (loop - once) / 9 == pytest.approx(81, rel=0.1)
    assert [row for row in ran.check() if not row.ok] == []
