"""Pictures that fit any width: lines are SVG that stretches, words are text beside it and keep their size."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from gpusim.result.colours import colour, text_on
from gpusim.result.shares import REST, label, largest, percentages

WIDE, HIGH = 10_000, 1000  # of the stretched drawing
EDGE = ' class="edge"'  # words that would stick out on the right
SERIES = 7  # colours that page.css has


@dataclass(frozen=True, slots=True)
class Line:
    """A step line: `values[i]` from `edges[i]` to `edges[i + 1]`, in the units of the chart."""

    name: str
    edges: Sequence[float]
    values: Sequence[float]


def stack(parts: Mapping[str, float], *, name: str, count: int = 10) -> str:
    """One bar of fractions by kind, with names inside where there is room and a key below for all."""
    kept = largest(parts, count, 0.004)
    shown = percentages(kept)
    blocks, keys = [], []
    for kind, fraction in kept.items():
        share = f"{shown[kind]:.1f} %" if shown[kind] else "<0.1 %"
        fill, words = colour(kind), f"{label(kind)} {share}"
        ink = text_on(fill)
        inside = f"<span>{escape(words)}</span>" if fraction >= 0.12 else ""
        blocks.append(
            f'<div style="flex:{fraction:.6f};background:{fill};color:{ink}" title="{escape(words)}">{inside}</div>'
        )
        mark = "" if kind == REST else f' title="{escape(kind)}"'
        keys.append(f'<li{mark}><i style="background:{fill}"></i>{escape(words)}</li>')
    return (
        f'<figure class="stack"><div class="bar" role="img" aria-label="{escape(name)}">{"".join(blocks)}</div>'
        f'<ul class="key">{"".join(keys)}</ul></figure>'
    )


def over_time(
    title: str, lines: Sequence[Line], *, end: float, unit: str, y_unit: str, top: float | None = None
) -> str:
    """Step lines over time from 0 to `end`; the page's script zooms them and reads values out."""
    highest = max((value for line in lines for value in line.values), default=0.0)
    ticks = nice_ticks(0.0, top if top is not None else highest * 1.05 or 1.0)
    ceiling = top if top is not None else max(ticks[-1], highest)
    drawn = "".join(
        f'<path class="s{number}" d="{_steps(line, end, ceiling)}"/>' for number, line in enumerate(lines)
    )
    data = {
        "end": end,
        "unit": unit,
        "yUnit": y_unit,
        "lines": [{"name": line.name, "x": _short(line.edges), "y": _short(line.values)} for line in lines],
    }
    x_ticks = nice_ticks(0.0, end)
    return _chart(
        title,
        drawn,
        x=[(tick / end, _number(tick), unit) for tick in x_ticks if tick <= end] if end else [],
        y=[(tick / ceiling, _number(tick), y_unit) for tick in ticks if tick <= ceiling],
        keys=[line.name for line in lines],
        data=data,
    )


def distribution(
    title: str, points: Sequence[tuple[float, float, str]], curve: Sequence[tuple[float, float]]
) -> str:
    """A cumulative distribution on a logarithmic axis: `curve` (x, share), `points` (x, share, words) named on it.

    Ticks are powers of ten in nanoseconds, with their words.
    """
    from gpusim.result import text

    low, high = max(curve[0][0], 1e-3), max(curve[-1][0], 1e-3)
    least, most = math.log10(low) - 0.05, math.log10(high) + 0.05
    wide = max(most - least, 1e-9)
    path: list[str] = []
    before = 0.0
    for x, share in curve:
        at = (math.log10(max(x, 1e-3)) - least) / wide * WIDE
        path.append(
            f"{'L' if path else 'M'}{at:.1f} {HIGH * (1 - before):.1f}L{at:.1f} {HIGH * (1 - share):.1f}"
        )
        before = share
    marks = "".join(
        f'<b class="mark" style="left:{(math.log10(x) - least) / wide:.2%};bottom:{share:.2%}"></b>'
        for x, share, _ in points
    )
    steps = [10.0**power for power in range(math.ceil(least), math.floor(most) + 1)]
    if len(steps) < 2:
        steps = [low, high] if high > low * 1.05 else [low]
    ticks = [((math.log10(tick) - least) / wide, text.time(tick, 2), "") for tick in steps]
    y = [(share, f"{100 * share:.0f}", "%") for share in (0, 0.25, 0.5, 0.75, 1)]
    words = "".join(f"<li>{escape(said)}</li>" for *_, said in points)
    chart = _chart(
        title, f'<path class="s0" d="{"".join(path)}"/>', x=ticks, y=y, keys=[], data=None, inside=marks
    )
    return f'{chart}<ul class="key">{words}</ul>'


def bands(groups: Sequence[tuple[str, float, float]], end: float) -> str:
    """The program's steps (name, start, end) over the charts, in as many rows as overlap; at most 4."""
    rows: list[float] = []
    blocks = []
    for number, (name, start, stop) in enumerate(sorted(groups, key=lambda group: (group[1], -group[2]))):
        row = next((row for row, free in enumerate(rows) if free <= start + 1e-6 * end), len(rows))
        if row >= 4:
            continue
        if row == len(rows):
            rows.append(0.0)
        rows[row] = stop
        a, b = start / end, stop / end
        blocks.append(
            f'<div class="band b{number % 4}" data-a="{a:.9g}" data-b="{b:.9g}" title="{escape(name)}" '
            f'style="left:{a:.4%};width:{b - a:.4%};top:{1.5 * row:g}em">{escape(name)}</div>'
        )
    return f'<div class="bands" style="height:{1.5 * max(len(rows), 1):g}em">{"".join(blocks)}</div>'


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers from `low` to beyond `high`, in steps of 1, 2 or 5."""
    span = max(high - low, 1e-12)
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [step * number for number in range(first, math.ceil(high / step - 1e-9) + 1)]


def _chart(
    title: str,
    drawn: str,
    *,
    x: Sequence[tuple[float, str, str]],
    y: Sequence[tuple[float, str, str]],
    keys: Sequence[str],
    data: Mapping[str, Any] | None,
    inside: str = "",
) -> str:
    grid = "".join(f'<path class="grid" d="M0 {HIGH * (1 - at):.1f}H{WIDE}"/>' for at, _, _ in y)
    up = "".join(
        f'<span style="bottom:{at:.2%}">{escape(words)}{_unit(unit, index == len(y) - 1)}</span>'
        for index, (at, words, unit) in enumerate(y)
    )
    across = "".join(
        f'<span style="left:{at:.2%}"{EDGE if at > 0.93 else ""}>{escape(words)}'
        f"{_unit(unit, index == len(x) - 1)}</span>"
        for index, (at, words, unit) in enumerate(x)
    )
    key = "".join(f'<li><i class="k{index}"></i>{escape(words)}</li>' for index, words in enumerate(keys))
    hidden = ""
    if data is not None:
        text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
        hidden = f'<script type="application/json">{text}</script><output></output>'
    zooms = ' class="chart zooms"' if data is not None else ' class="chart"'
    return (
        f"<figure{zooms}><figcaption>{escape(title)}</figcaption>"
        f'{f"""<ul class="key">{key}</ul>""" if key else ""}'
        f'<div class="frame"><div class="up">{up}</div><div class="plot">'
        f'<svg viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none" role="img" aria-label="{escape(title)}">'
        f"{grid}{drawn}</svg>{inside}</div>"
        f'<div class="across">{across}</div></div>{hidden}</figure>'
    )


def _unit(unit: str, there: bool) -> str:
    return f" {escape(unit)}" if there and unit else ""


def _steps(line: Line, end: float, ceiling: float) -> str:
    parts: list[str] = []
    for index, value in enumerate(line.values):
        start, stop = (WIDE * line.edges[at] / end for at in (index, index + 1))
        high = HIGH * (1 - min(value / ceiling, 1.0))
        parts.append(f"{'L' if parts else 'M'}{start:.1f} {high:.1f}H{stop:.1f}")
    return "".join(parts)


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.3g}"
