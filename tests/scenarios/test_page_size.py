"""What the page size costs a kernel: TLB002, and where it costs nothing."""

from pathlib import Path

import pytest

import gpusim as gs

FILE = Path(__file__).parents[2] / "scenarios" / "validation" / "page_size_mi300a.yaml"


def ratio(**sets):
    ran = gs.run(FILE, set={key.replace("__", "."): value for key, value in sets.items()})
    return ran.metric("steps.small.duration_ns") / ran.metric("steps.large.duration_ns"), ran


def test_scattered_4_kib_pages_cost_fifteen_percent():
    slower, ran = ratio()
    assert slower == pytest.approx(1.15, abs=0.03)
    small = next(step for step in ran.summary["steps"] if step["name"] == "small")
    assert small["attribution"]["translation"] > 0.5


def test_more_walkers_make_page_size_matter_less():
    scenario = gs.load(FILE).with_(overrides={"gpu.walker.walkers": 64})
    ran = gs.run(scenario)
    assert ran.metric("steps.small.duration_ns") / ran.metric("steps.large.duration_ns") < 1.02


def test_fewer_make_it_matter_more():
    scenario = gs.load(FILE).with_(overrides={"gpu.walker.walkers": 13})
    ran = gs.run(scenario)
    assert ran.metric("steps.small.duration_ns") / ran.metric("steps.large.duration_ns") > 2
