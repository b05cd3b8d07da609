"""What links and memories carry over time, under the steps of the program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpusim.report.plots.bands import bands
from gpusim.report.plots.series import gathered
from gpusim.report.plots.theme import (
    FAINT,
    GROUP_COLOURS,
    LEFT,
    QUIET,
    WIDTH,
    new_figure,
    rate_unit,
    time_unit,
)
from gpusim.result import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpusim.result import Result

_PANELS = 4
_PANEL = 1.45  # inches
_DWARFED = (
    30  # a peak this many times what is carried three quarters of the time would leave nothing else to see
)


def draw(result: Result) -> Figure | None:
    """The figure, or None when nothing was carried."""
    table = result.tables["links"]
    carriers = table[table["group"].isin(["link", "memory"])]
    moved = carriers.groupby(["group", "name"], observed=True)["bytes"].sum()
    moved = moved[moved > 0].sort_values(ascending=False, kind="stable")
    if moved.empty:
        return None
    links = [name for group, name in moved.index if group == "link"][:_PANELS]
    memories = [name for group, name in moved.index if group == "memory"][: max(_PANELS - len(links), 1)]
    names = [*links[: _PANELS - min(len(memories), 1)], *memories][:_PANELS]
    panels = {name: carriers[carriers["name"] == name] for name in names}
    title = _finding(panels)
    left, width = LEFT + 0.075, 0.965 - LEFT - 0.075
    program = bands(result.summary, width * WIDTH)
    panel_height = max(_PANEL, 3.6 / len(panels))
    height = 2.75 + program.height + panel_height * len(panels)
    subtitle = "bytes carried over time; averages are from the first byte to the last"
    figure, top = new_figure(result, title, subtitle, height=height)
    height = figure.get_figheight()
    scale, unit = time_unit(result.summary["makespan_ns"])
    above = program.height / height
    program.draw(figure.add_axes((left, top - above, width, above)), scale)
    end = result.summary["makespan_ns"] / scale
    at = top - (program.height + 0.1) / height
    for number, (name, panel) in enumerate(panels.items()):
        at -= panel_height / height
        axes = figure.add_axes((left, at, width, (panel_height - 0.52) / height))
        _panel(axes, name, panel, scale)
        axes.set_xlim(0, end)
        if number < len(panels) - 1:
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel(f"simulated time ({unit})")
    return figure


def _mean_rate(panel: pd.DataFrame) -> float:
    """GB/s from the first bin with traffic to the last."""
    used = panel[panel["bytes"] > 0]
    return float(used["bytes"].sum()) / float(used["end_ns"].max() - used["start_ns"].min())


def _capacity(panel: pd.DataFrame) -> float | None:
    capacity = float(panel["capacity_gb_per_s"].iloc[0])
    return None if math.isnan(capacity) else capacity


def _finding(panels: dict[str, pd.DataFrame]) -> str:
    name, panel = next(iter(panels.items()))
    rate, capacity = _mean_rate(panel), _capacity(panel)
    if capacity is None:
        return f"{name} carries {text.rate(rate)}"
    if rate < 0.01 * capacity:
        return f"{name} carries {text.rate(rate)} of the {text.rate(capacity)} that it can"
    return f"{name} carries {text.rate(rate)}, {100 * rate / capacity:.0f} % of what it can"


def _dwarfed(rates: Sequence[float]) -> bool:
    """Does one peak make all the rest invisible?"""
    used = sorted(rate for rate in rates if rate > 0)
    return bool(used) and used[-1] > _DWARFED * used[3 * (len(used) - 1) // 4]


def _panel(axes: Axes, name: str, panel: pd.DataFrame, scale: float) -> None:
    group = str(panel["group"].iloc[0])
    fill = GROUP_COLOURS[group]
    rate, capacity = _mean_rate(panel), _capacity(panel)
    edges, heights = gathered(panel, "bytes")
    peak = max(heights)
    steep = _dwarfed(heights)
    factor, unit = rate_unit(min(peak, 1.0) if steep else peak)
    least = min(value for value in heights if value > 0)
    floor = 10.0 ** math.floor(math.log10(max(least, peak / 1e4))) / factor if steep else 0.0
    axes.stairs(
        [max(value / factor, floor) for value in heights],
        [edge / scale for edge in edges],
        baseline=floor,
        fill=True,
        color=fill,
        linewidth=0,
    )
    near = capacity is not None and (steep or capacity < 2.5 * peak)
    ceiling = max(peak, capacity if near and capacity else 0.0) / factor
    if steep:
        axes.set_yscale("log")
        axes.set_ylim(floor, ceiling * 2)
    else:
        axes.set_ylim(0, ceiling * 1.08)
    words = f"{text.rate(rate)} on average"
    if capacity is not None:
        words += f", can carry {text.rate(capacity)}"
        if near:
            axes.axhline(capacity / factor, color=QUIET, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.set_title(name, loc="left", size=15, weight="bold", color=fill, pad=5)
    axes.set_title(words, loc="right", size=13, color=QUIET, pad=5)
    axes.set_ylabel(f"{unit}, log" if steep else unit, size=13)
    if steep:
        _decades(axes, floor, ceiling)
    else:
        axes.locator_params(axis="y", nbins=3)
    axes.grid(axis="y", color=FAINT)


def _decades(axes: Axes, floor: float, ceiling: float) -> None:
    """Ticks of a logarithmic axis: every power of ten, or every second one, in plain numbers."""
    first, last = round(math.log10(floor)), math.floor(math.log10(ceiling))
    powers = range(first, last + 1, 1 if last - first < 4 else 2)
    axes.set_yticks([10.0**power for power in powers], [f"{10.0**power:,g}" for power in powers])
    axes.tick_params(axis="y", which="minor", left=False)
