"""How long faults take: the cumulative distribution, and what the mean fault's life consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusim.kinds import Kind
from gpusim.report.plots.bars import key, stacked
from gpusim.report.plots.theme import BLUE, INK, LEFT, WIDTH, new_figure, text_width
from gpusim.result import text
from gpusim.result.schema import kind_column
from gpusim.result.shares import REST, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpusim.result import Result

_CURVES = 16  # thin lines for single processes, at most
_SIZE = 15  # points of the words beside percentiles


def draw(result: Result) -> Figure | None:
    """The figure, or None for a run without serviced faults."""
    if "faults" not in result.tables or result.tables["faults"].empty:
        return None
    faults = result.tables["faults"]
    latency = result.summary["faults"]["latency_ns"]
    pieces = _mean_pieces(faults)
    title = _finding(latency)
    served = f"{text.count(latency['count'])} fault{'s' if latency['count'] > 1 else ''}"
    if 1 < len(faults["process"].cat.categories) <= _CURVES:
        served += "; thin lines: single processes"
    largest = max(pieces, key=lambda kind: pieces[kind], default=None)
    subtitle = served if largest is None else f"{served}; most of it: {label(largest)}"
    figure, top = new_figure(result, title, subtitle)
    axes = figure.add_axes((LEFT + 0.065, 0.415, 0.87, top - 0.415))
    marks = _marks(latency)
    _curves(axes, faults, marks)
    _draw_marks(axes, marks)
    strip = figure.add_axes((LEFT + 0.065, 0.165, 0.87, 0.085))
    unnamed = stacked(strip, [pieces], height=1.0)
    unnamed.pop(REST, None)
    strip.set_axis_off()
    mean = f"The mean fault, {text.time(latency['mean'])}, from first send to replay"
    figure.text(LEFT + 0.065, 0.262, mean, size=14, va="bottom")
    key(figure.add_axes((LEFT + 0.065, 0.065, 0.87, 0.085)), unnamed, height=figure.get_figheight())
    return figure


def _finding(latency: dict[str, float]) -> str:
    half, most = text.time(latency["p50"]), text.time(latency["max"])
    if latency["count"] == 1:
        return f"The only fault takes {half}"
    if latency["max"] <= 1.1 * latency["p50"]:
        return f"Every fault takes about {half}"
    if latency["count"] < 100:
        return f"Half of the faults take {half} or less, the slowest {most}"
    return f"Half of the faults take {half} or less, 1 % take more than {text.time(latency['p99'])}"


def _mean_pieces(faults: pd.DataFrame) -> dict[str, float]:
    """Fraction of the mean latency by kind."""
    weight = faults["count"] / faults["count"].sum()
    means = {
        kind.name.lower(): float((faults[kind_column(kind)] * weight).sum())
        for kind in Kind
        if kind_column(kind) in faults.columns
    }
    whole = sum(means.values())
    return {kind: part / whole for kind, part in means.items() if part > 0} if whole else {}


def _curve(faults: pd.DataFrame) -> tuple[Any, Any]:
    import numpy as np

    ordered = faults[["latency_ns", "count"]].sort_values("latency_ns", kind="stable")
    share = ordered["count"].cumsum() / ordered["count"].sum()
    values = ordered["latency_ns"].to_numpy()
    return np.concatenate([values[:1], values]), np.concatenate([[0.0], share.to_numpy()]) * 100


def _curves(axes: Axes, faults: pd.DataFrame, marks: list[Mark]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    processes = faults["process"].cat.categories
    if 1 < len(processes) <= _CURVES:
        for process in processes:
            axes.step(
                *_curve(faults[faults["process"] == process]), where="post", color="#9EC3DD", linewidth=1.2
            )
    values, shares = _curve(faults)
    axes.step(values, shares, where="post", color=BLUE, linewidth=3)
    axes.set_xscale("log")
    low, high = max(values[0], 1.0), max(values[-1], 1.0)
    left = low / 1.15
    axes.set_xlim(left, _right_end(left, high, marks, axes.get_position().width * WIDTH))
    axes.set_ylim(0, 102)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])
    axes.set_ylabel("faults done")
    axes.set_xlabel("latency")
    subs = (1.0,) if high / low > 300 else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both")


def _tick(value_ns: float) -> str:
    """`500 µs`, without the zeros of `text.time`."""
    number, unit = text.time(value_ns).split(" ")
    return f"{float(number.replace(',', '')):g} {unit}"


Mark = tuple[float, int, str]  # latency, percent of the faults, words


def _marks(latency: dict[str, float]) -> list[Mark]:
    """The percentiles to show; those that fall together share a point and its words."""
    shown: list[tuple[float, int, list[str]]] = []
    for name, share in (("p50", 50), ("p95", 95), ("p99", 99)):
        if shown and latency[name] < shown[-1][0] * 1.02:
            shown[-1] = (latency[name], share, [*shown[-1][2], name])
        else:
            shown.append((latency[name], share, [name]))
    return [(value, share, f"{', '.join(names)}  {text.time(value)}") for value, share, names in shown]


def _draw_marks(axes: Axes, marks: list[Mark]) -> None:
    """A point on the curve, a line down to the axis, the value beside it."""
    for level, (value, share, words) in zip((36, 22, 8), marks, strict=False):
        axes.plot([value, value], [0, share], color=BLUE, linewidth=1.2, linestyle=(0, (2, 2)))
        axes.plot([value], [share], "o", color=BLUE, markersize=9, markeredgecolor="white", zorder=5)
        axes.annotate(
            words, (value, level), (7, 0), textcoords="offset points", size=_SIZE, color=INK, va="center",
            zorder=6, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip


def _right_end(left: float, high: float, marks: list[Mark], inches: float) -> float:
    """Where a logarithmic axis of this width must end for the curve and all words to fit."""
    ends = [high * 1.05]
    for value, _, words in marks:
        share = (text_width(words, _SIZE) + 0.25) / inches
        ends.append(left * (value / left) ** (1 / (1 - share)))
    return max(ends)
