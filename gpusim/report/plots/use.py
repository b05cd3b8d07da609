"""How busy links, fault workers, engines, memories and locks are over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.report.plots.bands import bands
from gpusim.report.plots.series import gathered
from gpusim.report.plots.theme import FAINT, GROUP_COLOURS, LEFT, QUIET, WIDTH, new_figure, time_unit
from gpusim.result import text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpusim.result import Result

_ROWS = 8
_ROW = 0.62  # inches
_ORDER = ("worker", "link", "engine", "memory", "lock")


def draw(result: Result) -> Figure | None:
    """The figure, or None when nothing was in use."""
    table = result.tables["links"]
    busy = table.groupby(["group", "name"], observed=True)["busy_ns"].sum()
    busy = busy[busy > 0].sort_values(ascending=False, kind="stable")
    makespan_ns = result.summary["makespan_ns"]
    if busy.empty:
        return None
    shares = {
        (str(group), str(name)): float(value) / makespan_ns
        for (group, name), value in zip(busy.index.tolist(), busy.tolist(), strict=True)
    }
    kept = sorted(shares, key=lambda item: (item[0] == "lock", -shares[item]))[:_ROWS]
    kept.sort(
        key=lambda item: (_ORDER.index(item[0]) if item[0] in _ORDER else 9, -round(shares[item], 3), item[1])
    )
    title = _finding(shares)
    subtitle = "share of time in use over time (full height: always), and over the whole run"
    left, width = LEFT + 0.20, 0.90 - LEFT - 0.20
    program = bands(result.summary, width * WIDTH)
    height = 2.85 + program.height + _ROW * len(kept)
    figure, top = new_figure(result, title, subtitle, height=height)
    height = figure.get_figheight()
    scale, unit = time_unit(makespan_ns)
    above = program.height / height
    program.draw(figure.add_axes((left, top - above, width, above)), scale)
    deep = _ROW * len(kept) / height
    axes = figure.add_axes((left, top - (program.height + 0.12) / height - deep, width, deep))
    edge = ("axes fraction", "data")
    for number, (group, name) in enumerate(kept):
        rows = table[(table["name"] == name) & (table["group"] == group)]
        edges, fractions = gathered(rows, "busy_ns")
        base = -number - 1.0
        heights = [base + 0.8 * min(value, 1.0) for value in fractions]
        edges = [edge / scale for edge in edges]
        axes.stairs(
            heights, edges, baseline=base, fill=True, color=GROUP_COLOURS.get(group, QUIET), linewidth=0
        )
        for line in (base, base + 0.8):
            axes.axhline(line, color=FAINT, linewidth=0.9, zorder=0)
        shown = f"{name} (lock)" if group == "lock" else name
        axes.annotate(
            shown, (0, base + 0.4), (-10, 0), xycoords=edge, textcoords="offset points", ha="right",
            va="center_baseline", size=14,
        )  # fmt: skip
        axes.annotate(
            text.percent(shares[group, name], 0), (1, base + 0.4), (10, 0), xycoords=edge,
            textcoords="offset points", ha="left", va="center_baseline", size=15, weight="bold",
            color=GROUP_COLOURS.get(group, QUIET),
        )  # fmt: skip
    axes.set_xlim(0, makespan_ns / scale)
    axes.set_ylim(-len(kept) - 0.08, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"simulated time ({unit})")
    return figure


def _finding(shares: dict[tuple[str, str], float]) -> str:
    """The busiest, and the busiest of another sort. A lock is named only when nothing else was in use."""
    servers = {item: share for item, share in shares.items() if item[0] != "lock"}
    ordered = sorted((servers or shares).items(), key=lambda item: (-round(item[1], 3), item[0][1]))
    (group, name), share = ordered[0]
    like = sum(kind == group and round(part, 3) == round(share, 3) for (kind, _), part in ordered) - 1
    several = f" and {like} more like it are" if like else " is"
    title = f"{name}{several} in use {text.percent(share, 0)} of the time"
    others = [(other, part) for (kind, other), part in ordered[1:] if kind != group and part >= 0.005]
    return title + (f", {others[0][0]} {100 * others[0][1]:.0f} %" if others else "")
