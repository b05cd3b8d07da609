"""The sentences of a scenario's `answer:`, filled in with what a run found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpusim.errors import InputError
from gpusim.result import paths, text
from gpusim.scenario import expression
from gpusim.scenario.answers import Blank, blanks, pieces


def filled_in(summary: Mapping[str, Any], sentences: Sequence[str]) -> dict[str, Any] | None:
    """`{text, metric, value, unit}`: the sentences whose metrics all have a value, and the first metric of them.

    None where there is no such sentence with a metric in it: then the answer is made up from the steps.
    """
    values: list[tuple[str, Any]] = []
    steps = {row["name"] for row in summary["steps"]}
    done = [sentence for sentence in sentences if steps.issuperset(steps_of(sentence))]
    words = [words for sentence in done if (words := _filled(summary, sentence, values)) is not None]
    if not values:
        return None
    metric, value = values[0]
    return {"text": " ".join(words), "metric": metric, "value": value, "unit": paths.unit_of(metric)}


def steps_of(sentence: str) -> list[str]:
    """The names of the steps that a sentence speaks of, in order."""
    metrics = (
        path for blank in blanks(sentence) for path in expression.metrics(expression.parse(blank.expression))
    )
    return [name for name in map(paths.step_name_of, metrics) if name is not None]


def _filled(summary: Mapping[str, Any], sentence: str, values: list[tuple[str, Any]]) -> str | None:
    """One sentence, its metrics added to `values`; None where one of them has no value in this run."""
    found: list[tuple[str, Any]] = []
    try:
        words = "".join(_pieces(summary, sentence, found))
    except (InputError, _NoValueError):  # of what this run has not: rounds, links, migrations
        return None
    values += found
    return " ".join(words.split())


class _NoValueError(Exception):
    """A metric is null in this run."""


def _pieces(summary: Mapping[str, Any], sentence: str, found: list[tuple[str, Any]]) -> Iterator[str]:
    for piece in pieces(sentence):
        if not isinstance(piece, Blank):
            yield piece
            continue
        value = paths.lookup(summary, piece.expression)
        if value is None:
            raise _NoValueError
        found.append((piece.expression, value))
        yield _words(value, piece)


def _words(value: int | float | str, blank: Blank) -> str:
    unit = paths.unit_of(blank.expression)
    if isinstance(value, str):
        return value
    if blank.percent or unit == "fraction":
        return text.percent(value)
    if unit == "ns":
        return text.time(value)
    if unit == "s":
        return text.time(value * 1e9)
    if unit == "bytes":
        return text.size(value)
    if unit == "GB/s":
        return text.rate(value)
    return text.count(value) if isinstance(value, int) or abs(value) >= 1000 else f"{value:.3g}"
