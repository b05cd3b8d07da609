"""Scenarios of memory that moves: links, oversubscription, several GPUs; the direction or number of each answer."""

from functools import cache
from pathlib import Path

import pytest

import gpusim

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@cache
def result(name, **changes):
    scenario = gpusim.load(SCENARIOS / f"{name}.yaml")
    changes = {key.replace("__", "."): value for key, value in changes.items()}
    return gpusim.run(scenario.with_(**changes) if changes else scenario)


def seconds(name, step, **changes):
    return result(name, **changes).metric(f"steps.{step}.duration_ns") / 1e9


# -- MI250X: links and oversubscription against measurements ---------------------------------------------------------

OVER = "validation/oversubscription_mi250x"


def performance(step, percent, base=78):
    """Bytes a second at a degree of oversubscription over those in memory."""
    there, here = seconds(OVER, f"{step}_{percent}"), seconds(OVER, f"{step}_{base}")
    return here / there * percent / base


def test_streaming_loses_about_in_proportion_to_what_does_not_fit():
    """OVE011, category I: each range comes once, and what does not fit has to leave first."""
    some, more = performance("stream", 109), performance("stream", 156)
    assert 1 > some > more > 1 / 1.56
    left_per_byte = (1 / some - 1) / (1 - 1 / 1.09), (1 / more - 1) / (1 - 1 / 1.56)
    assert left_per_byte[0] == pytest.approx(left_per_byte[1], rel=0.2)


def test_a_second_sweep_falls_off_a_cliff_just_above_the_vram_and_stays_there():
    """OVE010: 40 % of the performance in memory at 109 %, then a plateau."""
    at_cliff, beyond = performance("jacobi", 109), performance("jacobi", 125)
    assert at_cliff == pytest.approx(0.40, abs=0.1)
    assert beyond == pytest.approx(at_cliff, rel=0.1)


def test_access_to_all_ranges_at_any_time_collapses():
    """OVE012, category III."""
    assert performance("columns", 125) < 0.2
    assert performance("columns", 125) < 0.25 * performance("stream", 156)


def test_links_of_mi250_are_as_measured():
    ran = result("validation/mi250_links")
    rows = ran.summary.get("expect") or []
    assert all(row["ok"] for row in rows)
    blit, sdma = (
        ran.metric(f"steps.{name}[0:63].bandwidth_gb_per_s.mean") for name in ("message1", "sdma_message1")
    )
    assert blit > 2.5 * sdma


# -- the working set against the VRAM ----------------------------------------------------------------------------------


RANDOM = {"parameters__pattern": "random", "parameters__lane": "1MiB", "parameters__step": "16MiB"}


def walked(size, way, number, **changes):
    """Seconds of the first or second round over a working set; the VRAM has 2 GiB."""
    step = f"{'fault' if way == 'fault' else 'in_place'}_walk[{number}]"
    flags = {"parameters__fault": way == "fault", "parameters__in_place": way == "in_place"}
    return seconds("oversubscription", step, parameters__size=size, **flags, **changes)


def test_a_working_set_that_fits_is_worth_its_faults_after_a_few_rounds():
    assert walked("1GiB", "fault", 0) > 3 * walked("1GiB", "in_place", 0)
    assert walked("1GiB", "fault", 1) < walked("1GiB", "in_place", 1) / 50


def test_beyond_the_vram_every_round_faults_all_again():
    """Cyclic use and eviction in order of allocation: nothing is found again, however much would fit."""
    for size in ("3GiB", "4GiB"):
        assert walked(size, "fault", 1) > walked(size, "fault", 0)
    assert walked("3GiB", "fault", 1) / 3 == pytest.approx(walked("4GiB", "fault", 1) / 4, rel=0.02)


def test_above_a_factor_of_one_reading_in_place_wins_at_any_number_of_rounds():
    for size in ("3GiB", "4GiB"):
        assert walked(size, "in_place", 1) < walked(size, "fault", 1) / 5


def test_random_access_beyond_the_vram_is_slower_than_in_place():
    assert walked("3GiB", "fault", 1, **RANDOM) > 2 * walked("3GiB", "in_place", 1, **RANDOM)


def test_a_split_by_hand_beats_both():
    """1.75 GiB of 3 GiB stay near; both parts are walked side by side, so a round lasts as long as the far one."""
    flags = {"parameters__fault": False, "parameters__split": True}
    split = seconds("oversubscription", "splitting", **flags) / 2
    assert split < 0.5 * walked("3GiB", "in_place", 1)
    assert split < 0.1 * walked("3GiB", "fault", 1)
    assert split == pytest.approx(seconds("oversubscription", "far_walk[0]", **flags), rel=0.05)


# -- turns -------------------------------------------------------------------------------------------------------------


def turns(step, **changes):
    return [seconds("ping_pong", f"{step}[{number}]", **changes) for number in range(4)]


def test_a_turn_of_the_gpu_costs_more_where_its_memory_evicts_another_buffer():
    apart, tight = turns("gpu_turn", parameters__other="256MiB"), turns("gpu_turn")
    assert max(tight) > 1.2 * max(apart)
    assert apart[1] == pytest.approx(apart[3], rel=0.02)  # each turn moves the ball, and only that


def test_the_buffer_beside_pays_as_well():
    apart, tight = turns("beside", parameters__other="256MiB"), turns("beside")
    assert apart[1] < 1e-3  # resident
    assert min(tight) > 0.1  # faulted in again after each turn


def test_the_cpu_pays_for_each_turn_of_the_gpu():
    apart = turns("cpu_turn", parameters__other="256MiB")
    assert min(apart[1:]) > 0.1


# -- several GPUs and ranges -------------------------------------------------------------------------------------------


def test_managed_memory_of_its_own_costs_a_gpu_nothing_after_its_first_touch():
    assert seconds("multi_gpu_managed", "own[2]") < seconds("multi_gpu_managed", "own[0]") / 100


def test_shared_managed_memory_wanders_with_each_launch():
    shared = {"parameters__shared": True}
    for step in ("first[1]", "same[1]", "first[2]", "same[2]"):
        assert seconds("multi_gpu_managed", step, **shared) > 2 * seconds("multi_gpu_managed", "own[0]")
    ran = result("multi_gpu_managed", **shared)
    assert ran.metric("migrations.device_to_host.bytes") == 5 * (256 << 20)
    assert ran.metric("links.gpu[0].xgmi[1].bytes") == 0


def test_many_small_ranges_are_faster_than_a_large_one():
    one = result("one_range_or_many").metric("steps.one.bandwidth_gb_per_s")
    eight = result("one_range_or_many", parameters__many=True).metric("steps.eight.bandwidth_gb_per_s")
    assert one == pytest.approx(0.90, rel=0.05)
    assert 4 * one < eight < 8 * one
