"""Stacked bars of fractions with the labels inside the parts, and a key for the parts that are too narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpusim.report.plots.theme import WIDTH, text_width
from gpusim.result import text
from gpusim.result.colours import colour, text_on
from gpusim.result.shares import label, largest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 14  # points of the labels in bars
_KEY_SIZE = 13
_KEY_LINE = 0.30  # inches


def stacked(
    axes: Axes, rows: Sequence[Mapping[str, float]], *, height: float, parts: int = 10
) -> dict[str, float]:
    """One bar for each row of fractions, from the top down, each 1 wide.

    Returns the kinds that no bar had room to name, with their largest fraction, largest first.
    """
    box = axes.get_position()
    inches = box.width * WIDTH
    named: set[str] = set()
    unnamed: dict[str, float] = {}
    for number, fractions in enumerate(rows):
        kept = largest(fractions, parts, 0.004)
        at = 0.0
        for kind, fraction in kept.items():
            fill = colour(kind)
            axes.barh(-number, fraction, left=at, height=height, color=fill, edgecolor="white", linewidth=1.2)
            words, whole = _fitting(label(kind), text.percent(fraction, 0), fraction * inches - 0.12)
            if words:
                axes.text(
                    at + fraction / 2, -number, words, ha="center", va="center", size=_SIZE,
                    color=text_on(fill), linespacing=1.2,
                )  # fmt: skip
            if whole:
                named.add(kind)
            else:
                unnamed[kind] = max(fraction, unnamed.get(kind, 0.0))
            at += fraction
    axes.set_xlim(0, 1)
    axes.set_ylim(-len(rows) + 0.5, 0.5)
    left = {kind: fraction for kind, fraction in unnamed.items() if kind not in named}
    return dict(sorted(left.items(), key=lambda item: -item[1]))


def _fitting(name: str, share: str, inches: float) -> tuple[str, bool]:
    """Name and share if there is room, else the share alone, else nothing; and whether the name is in it."""
    if max(text_width(name, _SIZE), text_width(share, _SIZE)) <= inches:
        return f"{name}\n{share}", True
    return (share if text_width(share, _SIZE) <= inches else ""), False


def key(axes: Axes, kinds: Mapping[str, float], *, height: float) -> None:
    """Coloured squares with names, in lines that wrap, in a figure of `height` inches."""
    from matplotlib.patches import Rectangle

    box = axes.get_position()
    inches, deep = box.width * WIDTH, box.height * height
    axes.set_xlim(0, inches)
    axes.set_ylim(-deep, 0)
    axes.set_axis_off()
    x, y = 0.0, -_KEY_LINE / 2
    for kind in kinds:
        words = label(kind)
        width = 0.26 + text_width(words, _KEY_SIZE)
        if x + width > inches:
            x, y = 0.0, y - _KEY_LINE
        if y < -deep:
            return
        axes.add_patch(Rectangle((x, y - 0.085), 0.17, 0.17, facecolor=colour(kind), edgecolor="none"))
        axes.text(x + 0.26, y, words, size=_KEY_SIZE, va="center_baseline")
        x += width + 0.35
