"""Expected values: the path of a metric, and an amount in its unit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpusim.errors import Problem
from gpusim.scenario import loader
from gpusim.scenario.metrics import check_amount, check_metric, unit_of

Spoil = Callable[..., list[Problem]]

STEPS = {"fill": 1, "blur": 100}
PROCESSES = {"app[0]", "app[1]"}


@pytest.mark.parametrize(
    "metric",
    [
        "makespan_ns",
        "outcome",
        "steps.fill.duration_ns",
        "steps.blur[0].duration_ns",
        "steps.blur[-1][1].bandwidth_gb_per_s",
        "steps.blur[1:100].duration_ns.mean",
        "steps.blur[*].bytes.max",
        "steps.blur[::2].attribution.hbm.p50",
        "steps.blur.duration_ns.count",
        "faults.serviced",
        "faults.latency_ns.p99",
        "links.gpu[0].pcie.h2d.busy_fraction",
        "processes.app[1].outcome",
        "attribution.fault_queue",
        "io.fastpath.read.requests",
    ],
)
def test_a_metric_is_a_path(metric: str) -> None:
    assert check_metric(metric, STEPS, PROCESSES) is None


@pytest.mark.parametrize(
    ("metric", "message", "nearest"),
    [
        ("makespan", "not a metric", "makespan_ns"),
        ("step.fill.duration_ns", "not a metric", "steps"),
        ("steps", "steps is not a metric by itself", "steps"),
        ("steps.", "steps is not a metric by itself", "steps"),
        ("steps.fill", "not a metric of a step", None),
        ("steps.fil.duration_ns", "there is no step 'fil'", "fill"),
        ("steps.fill.duration", "a step has no 'duration'", "duration_ns"),
        ("steps.fill.duration_ns.avg", "not a metric of a step", None),
        (
            "steps.blur[1:100].duration_ns",
            "a slice ends in a statistic",
            "steps.blur[1:100].duration_ns.mean",
        ),
        ("steps.blur.duration_ns", "the program does 'blur' 100 times", "steps.blur.duration_ns.mean"),
        ("steps.blur[x].duration_ns", "not an index", None),
        ("steps.blur[].duration_ns.mean", "not an index", None),
        ("steps.blur[0.duration_ns", "not a metric of a step", None),
        ("steps.fill.attribution.hmb", "there is no kind 'hmb'", "hbm"),
        ("attribution.compuet", "there is no kind 'compuet'", "compute"),
        ("processes.app.outcome", "there is no process 'app'", "app[1]"),
        ("processes.app[0].end", "a process has no 'end'", "end_ns"),
    ],
)
def test_a_wrong_metric_names_the_nearest(metric: str, message: str, nearest: str | None) -> None:
    problem = check_metric(metric, STEPS, PROCESSES)
    assert problem is not None
    assert problem.message.startswith(message)
    assert problem.nearest == nearest


def test_the_name_of_a_metric_carries_its_unit() -> None:
    assert unit_of("steps.a.duration_ns") == "time"
    assert unit_of("steps.a[*].bandwidth_gb_per_s.mean") == "rate"
    assert unit_of("steps.a.bytes") == "size"
    assert unit_of("links.gpu[0].pcie.h2d.busy_fraction") == "fraction"
    assert unit_of("steps.a.attribution.hbm") == "fraction"
    assert unit_of("outcome") == "word"
    assert unit_of("faults.serviced") is None
    assert unit_of("faults.latency_ns.count") is None


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("makespan_ns", "4.1s"),
        ("steps.a.bandwidth_gb_per_s", "0.9GB/s"),
        ("faults.serviced", 512),
        ("faults.serviced", "1e3"),
        ("attribution.hbm", 0.2),
        ("attribution.hbm", "20%"),
        ("outcome", "vm_fault"),
    ],
)
def test_an_amount_is_in_the_metrics_unit(metric: str, value: object) -> None:
    assert check_amount(metric, value) is None


@pytest.mark.parametrize(
    ("metric", "value", "message"),
    [
        ("makespan_ns", 4.1, "a time needs a unit"),
        ("makespan_ns", "4GiB", "the unit 'GiB' is unknown"),
        ("faults.serviced", "many", "needs a number"),
        ("faults.serviced", "nan", "needs a number"),
        ("attribution.hbm", "120%", "not between 0 and 1"),
        ("outcome", 3, "needs a word"),
    ],
)
def test_an_amount_of_another_unit_is_refused(metric: str, value: object, message: str) -> None:
    problem = check_amount(metric, value)
    assert problem is not None
    assert problem.message == message


def test_a_tolerance_is_a_percentage_or_an_amount() -> None:
    for metric, value in [
        ("makespan_ns", "20%"),
        ("makespan_ns", "150%"),
        ("makespan_ns", "1ms"),
        ("faults.raised", 3),
    ]:
        assert check_amount(metric, value, tolerance=True) is None
    for metric, value in [
        ("makespan_ns", 20),
        ("makespan_ns", "-5%"),
        ("makespan_ns", "x%"),
        ("outcome", "5%"),
    ]:
        assert check_amount(metric, value, tolerance=True) is not None


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        (
            "steps.scale[0].duration_ns",
            "steps.scael[0].duration_ns",
            "expect[0].metric",
            "there is no step 'scael'",
        ),
        ("steps.scale[0].duration_ns", "steps.scale.duration_ns", "expect[0].metric", "does 'scale' 3 times"),
        ("value: 4.1s", "value: 4.1", "expect[0].value", "a time needs a unit"),
        ("value: 4.1s", "value: [4.1s]", "expect[0].value", "needs a finite number, or text with a unit"),
        ("value: 4.1s", "value: .inf", "expect[0].value", "needs a finite number, or text with a unit"),
        ("tolerance: 20%", "tolerance: 20", "expect[0].tolerance", "a time needs a unit"),
        ("kind: predicted", "kind: guess", "expect[0].kind", "not one of the legal values"),
        (", source: a guess", "", "expect[0]", "the key 'source' is missing"),
    ],
)
def test_expected_values_are_checked_with_the_file(
    spoil: Spoil, old: str, new: str, path: str, message: str
) -> None:
    (problem,) = spoil((old, new))
    assert problem.path == path
    assert message in problem.message


def test_steps_of_all_ranks_and_rounds_are_counted(right: str) -> None:
    text = right.replace("- name: app", "- name: app\n    count: 2").replace(
        "steps.scale[0]", "steps.fill[0]"
    )
    assert loader.loads(text).expect[0].metric == "steps.fill[0].duration_ns"
