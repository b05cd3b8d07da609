"""How sure an answer is, on a terminal: its band, and the numbers that it hangs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gpusim.report import parts
from gpusim.result import text
from gpusim.result.uncertainty import band_words, draws_words

if TYPE_CHECKING:
    from rich.console import RenderableType

_DIM = "bright_black"
_ROWS = 8
_FEWEST = 20  # draws that say what an answer hangs on


def nothing_named(found: Mapping[str, Any]) -> str:
    """Why there is no number that the answer hangs on."""
    if found["draws"] < _FEWEST:
        return f"too few draws to say what it hangs on: {_FEWEST} or more say it"
    return "no number moves it by itself" if found["explained"] is None else "nothing"


def uncertainty(found: Mapping[str, Any]) -> list[RenderableType]:
    """The section of `gpusim run`."""
    lines: list[RenderableType] = [
        Text(band_words(found), style="bold"),
        Text(draws_words(found), style=_DIM),
    ]
    hangs = found["parameters"]
    if not hangs:
        lines.append(Text(nothing_named(found), style=_DIM))
        return lines
    made = parts.table("hangs on", "value", "range", "answer at its ends", "rank corr.", "grade", right=(4,))
    for one in hangs[:_ROWS]:
        low, high = (text.value(one[end], found["unit"]) for end in ("at_low", "at_high"))
        made.add_row(
            one["path"],
            one["value"],
            f"{one['range'][0]} to {one['range'][1]}",
            f"{low} to {high}",
            f"{one['rank_correlation']:+.2f}",
            one["grade"],
        )
    lines.append(made)
    if len(hangs) > _ROWS:
        lines.append(Text(f"and {len(hangs) - _ROWS} more in summary.json", style=_DIM))
    return lines
