"""What can be calculated from metrics."""

import pytest

from gpusim.errors import InputError
from gpusim.scenario import expression
from gpusim.scenario.metrics import check_metric, symbol_of

VALUES = {
    "a": 6.0,
    "b": 3.0,
    "steps.x[1:2].duration_ns.mean": 4.0,
    "links.gpu[0].pcie.h2d.bytes": 8.0,
    "zero": 0.0,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", 6),
        ("a / b", 2),
        ("a - b - 1", 2),
        ("a + b * 2", 12),
        ("(a + b) * 2", 18),
        ("a / (a - b) / 2", 1),
        ("2 * links.gpu[0].pcie.h2d.bytes / steps.x[1:2].duration_ns.mean", 4),
        ("a / zero", None),
    ],
)
def test_the_usual_rules_of_arithmetic(text, value):
    assert expression.evaluate(expression.parse(text), VALUES.__getitem__) == value


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("steps.x.duration_ns - steps.y.duration_ns", "ns"),
        ("steps.x.duration_ns / steps.y.duration_ns", None),
        ("steps.x.duration_ns / steps.y.duration_ns - 1", None),
        ("steps.x.duration_ns / 4096", "ns"),
        ("2 * steps.x.bytes", "bytes"),
        ("steps.x.bytes / makespan_ns", "GB/s"),
        ("steps.x.bytes / steps.x.bandwidth_gb_per_s", "ns"),
        ("attribution.hbm + attribution.compute", "fraction"),
        ("1 - attribution.hbm", None),
        ("makespan_ns * attribution.hbm", "ns"),
    ],
)
def test_units_are_kept_track_of(text, unit):
    assert symbol_of(text) == unit


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("makespan_ns + ", "ends too early"),
        ("(makespan_ns", "not closed"),
        ("makespan_ns )", "not expected"),
        ("1 + 2", "names no metric"),
        ("makespan_ns ** makespan_ns", "not expected"),
        ("makespan_ns + faults.raised", "has no meaning"),
        ("makespan_ns * makespan_ns", "has no meaning"),
        ("1 / makespan_ns", "has no meaning"),
        ("outcome / makespan_ns", "words cannot"),
        ("makespan_ns / steps.nothing.duration_ns", "there is no step"),
        ("(" * 30 + "makespan_ns" + ")" * 30 + " ", "too many parentheses"),
    ],
)
def test_nonsense_is_refused_with_a_reason(text, why):
    problem = check_metric(text, {"x": 1}, ["app"])
    assert problem is not None
    assert why in problem.message
    assert problem.legal


def test_an_expression_is_about_its_first_metric():
    assert expression.first_metric("2 * (steps.x.bytes / makespan_ns)") == "steps.x.bytes"
    assert expression.first_metric("steps.x[1: 2].bytes.mean") == "steps.x[1: 2].bytes.mean"


def test_deep_nesting_does_not_crash():
    with pytest.raises(InputError):
        expression.parse("(" * 100_000)
