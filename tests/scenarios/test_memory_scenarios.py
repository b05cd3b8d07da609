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
