"""Where the time went: one bar for the run, one for each of its largest steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.report.plots.bands import WAITING
from gpusim.report.plots.bars import key, stacked
from gpusim.report.plots.theme import LEFT, QUIET, new_figure
from gpusim.result import text
from gpusim.result.groups import grouped, working
from gpusim.result.shares import REST, label, largest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpusim.result import Result

_STEPS = 5
_LEAST = 0.005  # of the run: shorter steps have no bar
_ROW = 0.95  # inches of a bar and the space below it


def draw(result: Result) -> Figure | None:
    """The figure, or None for a run without attribution."""
    summary = result.summary
    attribution = summary["attribution"]
    if not attribution:
        return None
    makespan_ns = summary["makespan_ns"]
    groups = [
        group
        for group in grouped(working(summary["steps"]), split_first=True)
        if group.kind not in WAITING
        and group.attribution
        and group.end_ns - group.start_ns > _LEAST * makespan_ns
    ]
    kept = sorted(groups, key=lambda group: -group.total_ns)[:_STEPS]
    groups = [group for group in groups if group in kept]
    title = _finding(attribution, makespan_ns)
    subtitle = f"Bound by {summary['bound_by']}" if summary["bound_by"] else ""
    bars = [("whole run", text.time(makespan_ns), attribution)]
    for group in groups:
        each = " each" if len(group.rows) > 1 else ""
        bars.append((group.label, text.time(group.mean_ns) + each, group.attribution or {}))
    height = max(2.65 + _ROW * len(bars), 5.2)
    figure, top = new_figure(result, title, subtitle, height=height)
    height = figure.get_figheight()
    foot = 1.12 / height
    left = LEFT + 0.155
    axes = figure.add_axes((left, foot, 0.965 - left, top - foot))
    unnamed = stacked(axes, [fractions for _, _, fractions in bars], height=0.78)
    axes.set_axis_off()
    for number, (name, took, _) in enumerate(bars):
        weight = "bold" if number == 0 else "normal"
        axes.annotate(
            name,
            (0, -number),
            (-12, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            size=15,
            weight=weight,
        )
        axes.annotate(
            took,
            (0, -number),
            (-12, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            size=14,
            color=QUIET,
        )
    unnamed.pop(REST, None)
    if unnamed:
        key(figure.add_axes((left, 0.46 / height, 0.965 - left, 0.60 / height)), unnamed, height=height)
    return figure


def _finding(attribution: dict[str, float], makespan_ns: float) -> str:
    parts = [(kind, part) for kind, part in largest(attribution, 3).items() if kind != REST]
    (first, share), *rest = parts
    whole = text.time(makespan_ns)
    name = label(first)
    name = name if name[0].isupper() or name[0].isdigit() else name[0].upper() + name[1:]
    if share >= 0.5 or not rest:
        return f"{name} takes {100 * share:.0f} % of the {whole}"
    second, more = rest[0]
    return f"{name} takes {100 * share:.0f} % of the {whole}, {label(second)} another {100 * more:.0f} %"
