"""Expected against simulated."""

from types import SimpleNamespace

import pytest

from gpusim.errors import InputError


def row(metric, value, tolerance="5%", **more):
    return SimpleNamespace(
        metric=metric, value=value, tolerance=tolerance, source="FAU004", kind="predicted", **more
    )


def test_a_row_has_the_fields_of_the_contract(first_touch):
    (found,) = first_touch.check([row("steps.fill.duration_ns", "1s", "20%")])
    assert found.as_dict() == {
        "scenario": "managed-first-touch",
        "source": "FAU004",
        "metric": "steps.fill.duration_ns",
        "unit": "ns",
        "measured": 1e9,
        "simulated": 1.1e9,
        "error": pytest.approx(0.1),
        "tolerance": "20%",
        "kind": "predicted",
        "ok": True,
    }


@pytest.mark.parametrize(
    ("metric", "value", "tolerance", "ok"),
    [
        ("steps.fill.duration_ns", "1s", "10%", True),  # exactly at the edge
        ("steps.fill.duration_ns", "1s", "9.9%", False),
        ("steps.fill.duration_ns", "1s", "100ms", True),
        ("steps.fill.duration_ns", "1s", "99ms", False),
        ("steps.fill.duration_ns", 1.1e9, None, True),
        ("steps.fill.bandwidth_gb_per_s", "3.9GB/s", "1%", True),
        ("steps.fill.bandwidth_gb_per_s", 3.9, "0.1GB/s", True),
        ("migrations.host_to_device.bytes", "4GiB", "0%", True),
        ("faults.serviced", 2048, 0, True),
        ("faults.serviced", 2000, "1%", False),
        ("faults.serviced", 2000, 48, True),
        ("faults.failed", 0, "5%", True),
        ("steps.fill.bytes / steps.fill.duration_ns", "3.9GB/s", "1%", True),
        ("makespan_ns / steps.fill.duration_ns", 2.0, 0.2, True),
        ("makespan_ns / steps.fill.duration_ns", 1.0, "5%", False),
        ("makespan_ns - steps.fill.duration_ns", "1.2736s", "0.1%", True),
        ("outcome", "completed", None, True),
        ("outcome", "vm_fault", None, False),
        ("attribution.host_memory", "30%", "20%", True),
        ("attribution.host_memory", 0.30, "0.05", True),
    ],
)
def test_values_with_units_and_tolerances(first_touch, metric, value, tolerance, ok):
    (found,) = first_touch.check([row(metric, value, tolerance)])
    assert found.ok is ok


def test_nothing_simulated_is_out_of_tolerance(first_touch):
    (found,) = first_touch.check([row("migrations.device_to_host.bandwidth_gb_per_s", "1GB/s")])
    assert (found.simulated, found.error, found.ok) == (None, None, False)


def test_every_wrong_row_is_reported_with_its_place(first_touch):
    rows = [
        row("steps.scael.duration_ns", "1s"),
        row("steps.scale.duration_ns", "1 parsec"),
        row("steps.scale.duration_ns", "1s", 0.2),
        row("steps.scale.duration_ns", "1s", "-3%"),
        row("faults.serviced", "many"),
    ]
    rows.append(row("steps.fill.duration_ns", True))
    with pytest.raises(InputError) as caught:
        first_touch.check(rows)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == [
        "expect[0].metric",
        "expect[1].value",
        "expect[2].tolerance",
        "expect[3].tolerance",
        "expect[5].value",
    ]


def test_a_scenario_brings_its_own_rows(first_touch):
    assert first_touch.check() == []


def test_a_step_that_a_dying_program_does_not_reach_is_out_of_tolerance(first_touch):
    wanted = row("steps.later.duration_ns", "1s")
    with pytest.raises(InputError, match="no such metric"):
        first_touch.check([wanted])
    first_touch.summary["outcome"] = "vm_fault"
    (found,) = first_touch.check([wanted])
    assert (found.measured, found.simulated, found.ok) == (1e9, None, False)
    with pytest.raises(InputError, match="no such metric"):
        first_touch.check([row("links.none.bytes", "1GiB")])
