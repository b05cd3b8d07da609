"""Measured against simulated."""

import pytest

from gpusim.errors import InputError
from gpusim.study import validate as study


def with_rows(small, rows, extra=""):
    text = small.read_text()
    small.write_text(text + extra + "expect:\n" + "".join(f"  - {row}\n" for row in rows))
    return small


def row(metric, value, tolerance="5%"):
    ending = "" if tolerance is None else f", tolerance: {tolerance}"
    return f'{{metric: {metric}, value: {value}, source: "a test", kind: predicted{ending}}}'


def test_rows_are_compared_after_a_run(small):
    file = with_rows(small, [row("faults.serviced", 4), row("steps.fill.duration_ns", "1s")])
    found = study.validate(file)
    assert [one.ok for one in found.rows] == [True, False]
    assert not found.in_tolerance
    assert not found.died
    first = study.as_rows([found])[0]
    assert set(first) == {
        "scenario", "source", "metric", "unit", "measured", "simulated", "error", "tolerance", "kind", "ok",
    }  # fmt: skip


def test_a_file_without_rows_is_refused(small):
    with pytest.raises(InputError, match="no rows to validate"):
        study.validate(small)


def test_a_program_that_dies_as_expected_is_fine(small):
    text = small.read_text().replace('HSA_XNACK: "1"', 'HSA_XNACK: "0"').replace("hipMallocManaged", "malloc")
    small.write_text(text)
    file = with_rows(small, [row("outcome", "vm_fault", None)])
    found = study.validate(file)
    assert found.outcome == "vm_fault"
    assert found.in_tolerance
    assert not found.died


def test_the_shipped_files_are_found():
    files = study.shipped_files()
    assert files == sorted(files)
