"""How sure the answer is: its band, and what moves it, for a result of `gpusim run --uncertainty N`."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from gpusim.report.html.sections import section
from gpusim.report.html.tables import Cell, table
from gpusim.report.uncertainty import nothing_named
from gpusim.result import text
from gpusim.result.uncertainty import band_words, draws_words

if TYPE_CHECKING:
    from gpusim.result import Result

_HEADS = ("hangs on", "value", "range", "grade", "at the low end", "at the high end", "rank corr.", "moves")


def sure(result: Result) -> str:
    """The section, below the answer; empty without draws."""
    found = result.summary.get("uncertainty")
    if found is None:
        return ""
    said = (
        f"<p>{escape(band_words(found))}</p>{_band(found)}<p><small>{escape(draws_words(found))}</small></p>"
    )
    hangs = found["parameters"]
    if not hangs:
        return section("How sure", said, f"<p><small>{escape(nothing_named(found))}</small></p>")
    low, high = _reach(found)
    rows = [_row(one, found, low, high) for one in hangs]
    note = (
        "<p><small>Each by itself at both ends of its range, all others as the profile has them. <b>Moves</b>: from "
        f"{escape(text.value(low, found['unit']))} on the left to {escape(text.value(high, found['unit']))} on the "
        "right; the line is the answer.</small></p>"
    )
    made = table(_HEADS, rows, right=(1, 4, 5, 6), name="what the answer hangs on")
    return section("How sure", said, made, note)


def _row(one: Mapping[str, Any], found: Mapping[str, Any], low: float, high: float) -> list[Cell]:
    unit, grade = found["unit"], one["grade"]
    ends = [one["at_low"], one["at_high"]]
    return [
        Cell(one["path"]),
        Cell(one["value"]),
        Cell(f"{one['range'][0]} to {one['range'][1]}"),
        Cell(grade, html=f'<span class="grade {escape(grade)}">{escape(grade)}</span>'),
        *(Cell(text.value(end, unit), end) for end in ends),
        Cell(f"{one['rank_correlation']:+.2f}", one["rank_correlation"]),
        Cell("", _moved(ends), _bar([end for end in ends if end is not None], found["value"], low, high)),
    ]


def _moved(ends: list[float | None]) -> float | None:
    one, other = ends
    return None if one is None or other is None else abs(other - one)


def _reach(found: Mapping[str, Any]) -> tuple[float, float]:
    """The least and the most of all that is shown."""
    shown = [found[key] for key in ("value", "p5", "p50", "p95")]
    shown += [one[end] for one in found["parameters"] for end in ("at_low", "at_high")]
    known = [value for value in shown if value is not None]
    return (min(known), max(known)) if known else (0.0, 0.0)


def _band(found: Mapping[str, Any]) -> str:
    """90 % of the draws as a bar, the answer as a line."""
    if found["p5"] is None or found["p95"] is None:
        return ""
    low, high = _reach(found)
    return f'<div class="band90">{_bar([found["p5"], found["p95"]], found["value"], low, high)}</div>'


def _bar(ends: list[float], value: float | None, low: float, high: float) -> str:
    wide = high - low
    if not ends or wide <= 0:
        return ""
    left, right = ((end - low) / wide for end in (min(ends), max(ends)))
    if value is not None and len(ends) == 1:  # at one end the run did not complete
        at = (value - low) / wide
        left, right = min(left, at), max(right, at)
    mark = ""
    if value is not None:
        mark = f'<b style="left:{(value - low) / wide:.2%}"></b>'
    return (
        f'<div class="reach"><i style="left:{left:.2%};width:{max(right - left, 0.004):.2%}"></i>{mark}</div>'
    )
