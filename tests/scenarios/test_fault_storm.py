"""What calms a fault storm and what does not: the shipped scenario with a tenth of its waves, one change at a time."""

from functools import cache
from pathlib import Path

import gpusim as gs

FOLDER = Path(__file__).parents[2] / "scenarios"
FEWER = {"kernels.visit.workgroups": 250}


@cache
def storm(granule="2MiB", **changes):
    keys = {"overrides": {"driver.svm.default_granularity": granule}}
    keys |= {name.replace("__", "."): value for name, value in changes.items()}
    return gs.run(gs.load(FOLDER / "fault_storm.yaml").with_(**FEWER | keys))


def visit(result):
    return max(step["duration_ns"] for step in result.summary["steps"] if step["name"] == "visit")


def test_the_cam_absorbs_nearly_all_that_is_sent():
    faults = storm().summary["faults"]
    assert faults["duplicates"] / faults["raised"] > 0.999
    assert faults["vectors"]["count"] < 1000 < faults["raised"]
    assert faults["vectors"]["queue_peak"] == faults["serviced"] == 16  # all granules wait at once
    assert faults["latency_ns"]["max"] > 10 * faults["latency_ns"]["p50"] / 16
    assert faults["vectors"]["interrupt_cpu_ns"] > 0


def test_without_a_cam_the_ring_overflows():
    old = storm(driver__preset="kfd-6.3").summary["faults"]
    assert old["overflowed"] > 0.99 * old["raised"]
    assert old["filtered"] > 0


def test_a_prefetch_takes_the_faults_away_and_saves_time_in_all():
    faulting, moved = storm(), storm(parameters__prefetch=True)
    assert moved.summary["faults"]["raised"] == 0
    assert visit(moved) < visit(faulting) / 100
    assert moved.summary["makespan_ns"] < faulting.summary["makespan_ns"]


def test_smaller_granules_cost_more_faults_and_more_time():
    by_size = {size: storm(size) for size in ("64KiB", "2MiB", "16MiB")}
    assert [found.summary["faults"]["serviced"] for found in by_size.values()] == [512, 16, 2]
    assert visit(by_size["64KiB"]) > 4 * visit(by_size["2MiB"]) > 4 * visit(by_size["16MiB"])


def test_fewer_wavefronts_send_less_but_do_not_finish_sooner():
    """The worker sets the pace: it serves the same granules."""
    one, half = storm(), storm(kernels__visit__workgroups=125)
    assert half.summary["faults"]["raised"] < 0.6 * one.summary["faults"]["raised"]
    assert 0.95 < visit(half) / visit(one) < 1.05


def test_merging_helps_by_the_fixed_costs_that_it_saves():
    none, merge = storm(), storm(driver__throttle="merge")
    assert merge.summary["faults"]["serviced"] < none.summary["faults"]["serviced"]
    assert 0.9 < visit(merge) / visit(none) < 1.0


def test_of_two_programs_the_one_that_comes_second_pays_unless_each_has_a_worker():
    alone, two = storm(), storm(processes__app__count=2)
    first, second = (
        two.summary["faults"]["per_process"][name]["latency_ns"]["max"] for name in ("app[0]", "app[1]")
    )
    whole = alone.summary["faults"]["latency_ns"]["max"]
    assert first < 1.1 * whole
    assert second > 1.9 * whole
    fair = storm(processes__app__count=2, driver__service="per_vmid")
    assert visit(fair) < 0.85 * visit(two)
