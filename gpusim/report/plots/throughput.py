"""What links and memories carry over time, under the steps of the program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpusim.report.plots.series import gathered
from gpusim.report.plots.theme import (
    FAINT,
    GROUP_COLOURS,
    LEFT,
    QUIET,
    lanes_of,
    new_figure,
    rate_unit,
    step_bands,
    time_unit,
)
from gpusim.result import text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpusim.result import Result

_PANELS = 4
_PANEL = 1.45  # inches


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
    steps = result.summary["steps"]
    lanes = lanes_of(steps)
    panel_height = max(_PANEL, 3.6 / len(panels))
    height = 2.75 + 0.36 * lanes + panel_height * len(panels)
    subtitle = "bytes carried over time; averages are from the first byte to the last"
    figure, top = new_figure(result, title, subtitle, height=height)
    height = figure.get_figheight()
    scale, unit = time_unit(result.summary["makespan_ns"])
    left, width = LEFT + 0.075, 0.965 - LEFT - 0.075
    bands = figure.add_axes((left, top - 0.36 * lanes / height, width, 0.36 * lanes / height))
    step_bands(bands, steps, scale)
    end = result.summary["makespan_ns"] / scale
    bands.set_xlim(0, end)
    at = top - (0.36 * lanes + 0.1) / height
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
    share = "" if capacity is None else f", {100 * rate / capacity:.0f} % of what it can"
    return f"{name} carries {text.rate(rate)}{share}"


def _panel(axes: Axes, name: str, panel: pd.DataFrame, scale: float) -> None:
    group = str(panel["group"].iloc[0])
    fill = GROUP_COLOURS[group]
    rate, capacity = _mean_rate(panel), _capacity(panel)
    edges, heights = gathered(panel, "bytes")
    peak = max(heights)
    factor, unit = rate_unit(peak)
    axes.stairs(
        [value / factor for value in heights],
        [edge / scale for edge in edges],
        fill=True,
        color=fill,
        linewidth=0,
    )
    near = capacity is not None and capacity < 2.5 * peak
    ceiling = max(peak, capacity if near and capacity else 0.0) / factor
    axes.set_ylim(0, ceiling * 1.08)
    words = f"{text.rate(rate)} on average"
    if capacity is not None:
        words += f", can carry {text.rate(capacity)}"
        if near:
            axes.axhline(capacity / factor, color=QUIET, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.set_title(name, loc="left", size=15, weight="bold", color=fill, pad=5)
    axes.set_title(words, loc="right", size=13, color=QUIET, pad=5)
    axes.set_ylabel(unit, size=13)
    axes.locator_params(axis="y", nbins=3)
    axes.grid(axis="y", color=FAINT)
