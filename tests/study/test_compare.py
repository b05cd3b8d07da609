"""Two runs side by side."""

from functools import cache
from pathlib import Path

import pytest

import gpusim as gs
from gpusim.errors import InputError
from gpusim.report import compare as report
from gpusim.report.console import rendered
from gpusim.study.compare import compare
from tests.report.test_terminal import Terminal

FOLDER = Path(__file__).parents[2] / "scenarios"


@cache
def run(record="summary", seed=0, size="64MiB", **sets):
    given = {"parameters.prefetch": False} | {key.replace("__", "."): value for key, value in sets.items()}
    scenario = gs.load(
        FOLDER / "prefetch_or_fault.yaml", set={"processes.app.buffers.x.size": size} | given, seed=seed
    )
    return gs.run(scenario, record=record)


def end_of_the_fill(result):
    return next(step["end_ns"] for step in result.summary["steps"] if step["name"] == "fill")


def test_a_run_and_itself_do_not_differ():
    found = compare(run(), run())
    assert found.whole.difference_ns == 0
    assert found.changes == ()
    assert found.parting is None
    assert all(delta.difference_ns == 0 for delta in found.kinds)


def test_the_kinds_sum_to_the_difference_and_the_changed_value_is_named():
    found = compare(run(), run(parameters__prefetch=True))
    assert sum(delta.difference_ns for delta in found.kinds) == pytest.approx(found.whole.difference_ns)
    assert found.kinds[0].name == "recent_skip"
    assert found.whole.difference_ns < 0
    assert [change for change in found.changes if change.path == "parameters.prefetch"]
    assert found.whole.significant is None


def test_they_part_where_the_one_first_does_something_else():
    """Both fill the buffer alike; then one prefetches, and the other launches its kernel at once."""
    a, b = run(), run(parameters__prefetch=True)
    parting = compare(a, b).parting
    assert parting.at_ns == pytest.approx(end_of_the_fill(a))


def test_a_machine_that_differs_is_named_by_its_numbers():
    other = run().scenario.with_(overrides={"gpu.hbm.bandwidth": "1TB/s"})
    found = compare(run(), gs.run(other))
    assert "gpu.hbm.bandwidth" in [change.path for change in found.changes]


def test_over_replications_a_real_difference_is_significant_and_none_is_not():
    same = compare(run(), run(), replications=3)
    assert same.runs == 3
    assert same.whole.significant is False
    found = compare(run(), run(parameters__prefetch=True), replications=3)
    assert found.whole.significant is True
    assert found.kinds[0].significant is True


def test_seeds_alone_are_within_chance():
    found = compare(run(), run(seed=100), replications=4)
    assert found.whole.significant is False


def test_with_spans_on_both_sides_the_first_span_that_differs_is_found():
    a, b = run("spans"), run("spans", parameters__prefetch=True)
    assert compare(a, b).parting.at_ns <= end_of_the_fill(a) + 1e6
    assert compare(a, a).parting is None


def test_a_run_without_a_breakdown_cannot_be_compared():
    with pytest.raises(InputError, match="was not recorded"):
        compare(run(), run("off"))


def test_the_report_says_all_of_it():
    found = compare(run(), run(parameters__prefetch=True), replications=2)
    text = rendered(report.comparison(found), Terminal())
    for words in ("A takes", "2 ms skip", "95 % interval", "parameters.prefetch", "Where they part"):
        assert words in text
    data = report.as_data(found)
    assert data["makespan"]["difference_ns"] < 0
    assert data["replications"] == 2


def test_kinds_that_take_long_in_both_stand_before_those_that_take_little():
    """A table of few rows says what the others come to, so that each column adds up to its sum."""
    found = gs.compare(FOLDER / "first_touch.yaml", FOLDER / "first_touch_malloc.yaml")
    text = rendered(report.comparison(found), Terminal())
    table = text.split("critical path")[1].split("What differs")[0]
    assert "device page set-up" in table
    assert table.index("device page set-up") < table.index(
        "fault delivery" if "fault delivery" in table else "others"
    )
    assert " others " in table
