"""Expected against simulated, row by row: what `expect:` asks for and `gpusim validate` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from gpusim import quantity
from gpusim.errors import InputError, Problem
from gpusim.result import paths


class ExpectRow(Protocol):
    """A row of `expect:`; `value` is a number, or text with a unit; `tolerance` is `20%` or an amount."""

    @property
    def metric(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def tolerance(self) -> Any: ...
    @property
    def source(self) -> str: ...
    @property
    def kind(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Checked:
    """One row after the run.

    `measured` and `simulated` are in `unit` (`ns`, `bytes`, `GB/s`, `fraction`, or None for counts and
    words). `error` is (simulated - measured) / measured, None for words, for a measured 0 and where nothing
    was simulated.
    """

    scenario: str
    source: str
    metric: str
    unit: str | None
    measured: float | int | str
    simulated: float | int | str | None
    error: float | None
    tolerance: str
    kind: str
    ok: bool

    def as_dict(self) -> dict[str, Any]:
        """The row as `validate --json` prints it."""
        return asdict(self)


def check(summary: Mapping[str, Any], rows: Iterable[ExpectRow]) -> list[Checked]:
    """Every row against a summary. Raises InputError with all rows that name no metric or have no legal
    value.
    """
    checked: list[Checked] = []
    problems: list[Problem] = []
    for number, row in enumerate(rows):
        try:
            checked.append(_check(summary, row))
        except InputError as error:
            problems += [_placed(problem, number) for problem in error.problems]
    if problems:
        raise InputError(problems)
    return checked


def _placed(problem: Problem, number: int) -> Problem:
    path = f"expect[{number}]" + (f".{problem.path}" if problem.path in ("value", "tolerance") else ".metric")
    message = (
        problem.message if path.endswith(("value", "tolerance")) else f"{problem.path} {problem.message}"
    )
    return Problem(message, path=path, read=problem.read, legal=problem.legal, nearest=problem.nearest)


def _check(summary: Mapping[str, Any], row: ExpectRow) -> Checked:
    simulated = _simulated(summary, row.metric)
    unit = paths.unit_of(row.metric)
    if isinstance(simulated, str) or (unit is None and isinstance(row.value, str) and not _number(row.value)):
        measured: float | int | str = str(row.value)
        return _checked(summary, row, None, measured, simulated, None, str(simulated) == measured)
    measured = amount(row.value, unit, "value")
    if simulated is None:
        return _checked(summary, row, unit, measured, None, None, False)
    within = tolerance(row.tolerance, unit, measured)
    error = (simulated - measured) / abs(measured) if measured else None
    # a hair of slack, so that a value exactly at the edge does not fail by the last bit of a float
    ok = abs(simulated - measured) <= within * (1 + 1e-12)
    return _checked(summary, row, unit, measured, simulated, error, ok)


def _simulated(summary: Mapping[str, Any], metric: str) -> paths.Value:
    """The value of a metric; None for a step that the program did not live to see."""
    try:
        return paths.lookup(summary, metric)
    except InputError:
        if summary["outcome"] == "completed" or paths.step_name_of(metric) is None:
            raise
        return None


def _checked(
    summary: Mapping[str, Any],
    row: ExpectRow,
    unit: str | None,
    measured: float | int | str,
    simulated: float | int | str | None,
    error: float | None,
    ok: bool,
) -> Checked:
    allowed = "" if row.tolerance is None else str(row.tolerance)
    kind = str(getattr(row.kind, "value", row.kind))
    return Checked(
        summary["scenario"], row.source, row.metric, unit, measured, simulated, error, allowed, kind, ok
    )


def amount(value: Any, unit: str | None, what: str) -> float:
    """A number in `unit` (the metric's name carries it: `duration_ns`), or text with its own unit."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(
            [Problem("is not an amount", path=what, read=repr(value), legal="a number, or text with a unit")]
        )
    if isinstance(value, str) and unit in _READERS and not (unit == "fraction" and _number(value)):
        read, scale = _READERS[unit]
        try:
            return read(value) / scale
        except quantity.QuantityError as error:
            raise InputError([Problem(error.why, path=what, read=error.read, legal=error.legal)]) from None
    if isinstance(value, str) and not _number(value):
        raise InputError(
            [
                Problem(
                    "is not a number",
                    path=what,
                    read=repr(value),
                    legal="a plain number: this metric has no unit",
                )
            ]
        )
    number = float(value)
    return int(number) if number.is_integer() and unit is None else number


def tolerance(value: Any, unit: str | None, measured: float) -> float:
    """How far off the simulated value may be, in the metric's unit: `20%` of the measured value, or an
    amount.
    """
    if value is None:
        return 0.0
    if isinstance(value, str) and value.strip().endswith("%"):
        digits = value.strip()[:-1].strip()
        if not _number(digits) or float(digits) < 0:
            raise InputError(
                [Problem("is not a percentage", path="tolerance", read=repr(value), legal="e.g. 20%")]
            )
        return abs(measured) * float(digits) / 100
    if unit is not None and not isinstance(value, str):
        legal = f"a percentage such as 20%, or an amount with a unit, {_EXAMPLES[unit]}"
        raise InputError([Problem("is ambiguous", path="tolerance", read=repr(value), legal=legal)])
    return amount(value, unit, "tolerance")


_READERS: dict[str | None, tuple[Callable[[str], float], float]] = {
    "ns": (quantity.parse_duration, quantity.NS),
    "bytes": (quantity.parse_size, 1),
    "GB/s": (quantity.parse_rate, quantity.GB),
    "fraction": (quantity.parse_fraction, 1),
    "s": (quantity.parse_duration, quantity.S),
}
_EXAMPLES = {
    "ns": "e.g. 0.2s",
    "bytes": "e.g. 64KiB",
    "GB/s": "e.g. 0.5GB/s",
    "fraction": 'e.g. "0.02"',
    "s": "e.g. 2s",
}


def _number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False
