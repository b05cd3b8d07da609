"""What the page says of the run. Each function gives a section, or an empty text when the run has nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from gpusim.kinds import DEFINITIONS, Kind
from gpusim.report.html.charts import SERIES, Line, bands, distribution, over_time, stack
from gpusim.report.html.tables import Cell, table
from gpusim.report.io_paths import limit_of
from gpusim.report.plots.series import gathered
from gpusim.report.plots.theme import rate_unit, time_unit
from gpusim.result import text
from gpusim.result.groups import grouped, working
from gpusim.result.io_summary import IO_PATHS, OTHER_PATHS
from gpusim.result.schema import kind_column
from gpusim.result.shares import label

if TYPE_CHECKING:
    import pandas as pd

    from gpusim.result import Result

Summary = Mapping[str, Any]
_BARS = 6  # steps with a bar of their own
_BINS = 256  # of a line over time: a zoomed chart shows more than a picture
_POINTS = 400  # of a distribution


def section(title: str, *content: str, folded: bool = False) -> str:
    """A titled section; empty without content. `folded` ones open when their title is pressed."""
    inside = "".join(content)
    if not inside:
        return ""
    if folded:
        return f"<section><details><summary><h2>{escape(title)}</h2></summary>{inside}</details></section>"
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def head(result: Result) -> str:
    """Question, answer, what bound it, how to check it."""
    summary = result.summary
    outcome = summary["outcome"]
    state = "" if outcome == "completed" else f' <span class="bad">{escape(outcome)}</span>'
    asked = f'<p class="question">{escape(summary["question"])}</p>' if summary["question"] else ""
    facts = [("simulated", text.time(summary["makespan_ns"]))]
    facts += [("bound by", summary["bound_by"])] if summary["bound_by"] else []
    facts += [("by hand", summary["formula"])] if summary["formula"] else []
    facts += [(f"error of {p['name']}", p["error"]) for p in summary["processes"] if p["error"]]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in facts)
    return (
        f"<header><h1>{escape(summary['scenario'])}{state}</h1>{asked}"
        f'<p class="answer">{_code(summary["answer"]["text"])}</p><dl>{listed}</dl></header>'
    )


def _code(words: str) -> str:
    """`first` in backticks becomes code."""
    parts = escape(words).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def breakdown(result: Result) -> str:
    """Where the time went: a bar, and each kind with its definition."""
    summary = result.summary
    attribution = summary["attribution"]
    if attribution is None:
        return section("Where the time went", "<p>Not recorded: run with <code>--record summary</code>.</p>")
    if not attribution:
        return ""
    whole = summary["makespan_ns"]
    rows = [
        (
            label(kind),
            Cell(text.percent(part), part),
            Cell(text.time(part * whole), part * whole),
            DEFINITIONS[Kind[kind.upper()]],
        )
        for kind, part in sorted(attribution.items(), key=lambda item: -item[1])
        if part > 0
    ]
    made = table(("kind", "share", "time", "what it is"), rows, right=(1, 2), name="time by kind")
    title = f"Where {text.time(whole)} went"
    return section(title, stack(attribution, name=title), made)


def steps(result: Result) -> str:
    """The steps of the program: a bar for the longest, a table for all."""
    groups = grouped(result.summary["steps"], split_first=True)
    doing = sorted(
        (g for g in groups if g.attribution and g.kind not in ("repeat", "parallel")),
        key=lambda g: -g.total_ns,
    )
    bars = "".join(
        f"<h3>{escape(group.label)} <small>{text.time(group.mean_ns)}{' each' if len(group.rows) > 1 else ''}"
        f"</small></h3>{stack(group.attribution or {}, name=group.label)}"
        for group in doing[:_BARS]
    )
    rows = [
        (
            group.label,
            group.kind,
            Cell(text.time(group.start_ns), group.start_ns),
            Cell(text.time(group.mean_ns), group.mean_ns),
            Cell(text.size(group.bytes_each) if group.bytes_each else "–", group.bytes_each),
            Cell(text.rate(group.bandwidth_gb_per_s), group.bandwidth_gb_per_s or 0),
        )
        for group in groups
    ]
    heads = ("step", "verb", "start", "time", "bytes", "rate")
    made = table(heads, rows, right=(2, 3, 4, 5), name="steps") if rows else ""
    return section("Step by step", bars, made)


def timeline(result: Result) -> str:
    """What was carried and what was busy over time, under the steps of the program."""
    uses, end_ns = result.tables["links"], result.summary["makespan_ns"]
    if not end_ns or uses.empty:
        return ""
    scale, unit = time_unit(end_ns)
    charts = []
    carriers = uses[uses["group"].isin(["link", "memory"])]
    moved = carriers.groupby(["group", "name"], observed=True)["bytes"].sum()
    moved = moved[moved > 0].sort_values(ascending=False, kind="stable")
    for group, title in (("link", "What links carry"), ("memory", "What memories carry")):
        names = [str(name) for one, name in moved.index if one == group][:SERIES]
        series = {name: gathered(uses[uses["name"] == name], "bytes", _BINS) for name in names}
        if series:
            factor, rate = rate_unit(max(max(values) for _, values in series.values()))
            lines = [_line(name, *found, scale, factor) for name, found in series.items()]
            charts.append(over_time(title, lines, end=end_ns / scale, unit=unit, y_unit=rate))
    others = uses[~uses["group"].isin(["link", "memory"])]
    busy = others.groupby("name", observed=True)["busy_ns"].sum().sort_values(ascending=False, kind="stable")
    names = [str(name) for name, spent in busy.items() if spent > 0][:SERIES]
    if names:
        lines = [
            _line(name, *gathered(uses[uses["name"] == name], "busy_ns", _BINS), scale, 0.01)
            for name in names
        ]
        charts.append(
            over_time(
                "How busy workers, engines and locks are",
                lines,
                end=end_ns / scale,
                unit=unit,
                y_unit="%",
                top=100.0,
            )
        )
    if not charts:
        return ""
    doing = [
        (group.label, group.start_ns, group.end_ns)
        for group in grouped(working(result.summary["steps"]))
        if group.end_ns > group.start_ns
    ]
    tools = (
        '<p class="tools"><button type="button" data-zoom="in">zoom in</button> '
        '<button type="button" data-zoom="out">zoom out</button> '
        '<button type="button" data-zoom="all">all</button> <small>or drag across a chart</small></p>'
    )
    return section("Over time", f'<div class="times">{tools}{bands(doing, end_ns)}{"".join(charts)}</div>')


def _line(name: str, edges: list[float], values: list[float], scale: float, factor: float) -> Line:
    return Line(name, [edge / scale for edge in edges], [value / factor for value in values])


def faults(result: Result) -> str:
    """Fault counters, the distribution of latencies, the life of the mean fault."""
    whole = result.summary["faults"]
    if not whole["raised"]:
        return ""
    blocks = {"all": whole} | whole["per_gpu"]
    blocks |= {name: block for name, block in whole["per_process"].items() if name not in blocks}
    rows = []
    for name, block in blocks.items():
        latency = block["latency_ns"] or {}
        times = [
            Cell(text.time(latency.get(key)), latency.get(key))
            for key in ("p50", "p95", "p99", "max", "mean")
        ]
        counts = [
            Cell(text.count(block.get(key)), block.get(key)) for key in ("raised", "serviced", "duplicates")
        ]
        rows.append((name, *counts, *times))
    heads = ("faults", "raised", "serviced", "duplicates", "p50", "p95", "p99", "max", "mean")
    made = table(heads, rows, right=range(1, 9), name="faults")
    drawn = ""
    if "faults" in result.tables and not result.tables["faults"].empty:
        drawn = _latencies(result.tables["faults"], whole["latency_ns"])
    return section("Page faults", drawn, made)


def _latencies(rows: pd.DataFrame, latency: Mapping[str, float]) -> str:
    import numpy as np

    ordered = rows[["latency_ns", "count"]].sort_values("latency_ns", kind="stable")
    values = ordered["latency_ns"].to_numpy()
    share = (ordered["count"].cumsum() / ordered["count"].sum()).to_numpy()
    picked = np.unique(np.linspace(0, len(values) - 1, _POINTS).astype(int))
    curve = [(float(values[at]), float(share[at])) for at in picked]
    points = [
        (latency[key], portion, f"{key}: {text.time(latency[key])}")
        for key, portion in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    ]
    chart = distribution("Share of the faults that are done within a time", points, curve)
    weight = rows["count"] / rows["count"].sum()
    means = {
        kind.name.lower(): float((rows[kind_column(kind)] * weight).sum())
        for kind in Kind
        if kind_column(kind) in rows.columns
    }
    total = sum(means.values())
    if not total:
        return chart
    life = stack({kind: part / total for kind, part in means.items() if part > 0}, name="the mean fault")
    return f"{chart}<h3>The mean fault <small>{text.time(latency['mean'])}, first send to replay</small></h3>{life}"


def files(result: Result) -> str:
    """Which path file requests took, why, what they spent their time on, and what limited them."""
    rows, bars = [], []
    for path in IO_PATHS + OTHER_PATHS:
        for way, block in result.summary["io"].get(path, {}).items():
            if not (block["requests"] or block["errors"]):
                continue
            reasons = "; ".join(f"{why} ({text.count(count)})" for why, count in block["reasons"].items())
            errors = "; ".join(f"{code} ({text.count(count)})" for code, count in block["errors"].items())
            latency = block["latency_ns"]
            used = limit_of(block)
            rows.append(
                (
                    f"{path} {way}",
                    Cell(text.count(block["requests"]), block["requests"]),
                    Cell(text.size(block["bytes"]), block["bytes"]),
                    Cell(text.rate(block["bandwidth_gb_per_s"]), block["bandwidth_gb_per_s"]),
                    Cell(text.time(latency["p50"]), latency["p50"]),
                    Cell(text.time(latency["p99"]), latency["p99"]),
                    used,
                    reasons,
                    errors or "–",
                )
            )
            if block["time"]:
                title = f"{path} {way}"
                bars.append(f"<h3>{title} <small>where its requests spend their time</small></h3>")
                bars.append(stack(block["time"], name=title))
    if not rows:
        return ""
    heads = ("path", "requests", "bytes", "rate", "p50", "p99", "limited by", "why this path", "errors")
    made = table(heads, rows, right=range(1, 6), name="paths of file requests")
    return section("Which path file requests took", made, *bars)


def moved(result: Result) -> str:
    """Migrations by direction, and everything that was in use."""
    summary = result.summary
    rows = [
        (
            name.replace("_", " "),
            Cell(text.count(total["count"]), total["count"]),
            Cell(text.size(total["bytes"]), total["bytes"]),
            Cell(text.time(total["time_ns"]), total["time_ns"]),
            Cell(text.rate(total["bandwidth_gb_per_s"]), total["bandwidth_gb_per_s"] or 0),
        )
        for name, total in summary["migrations"].items()
        if total["count"]
    ]
    heads = ("direction", "migrations", "bytes", "time", "rate")
    made = section("Migrations", table(heads, rows, right=range(1, 5), name="migrations")) if rows else ""
    uses = [("link", name, use) for name, use in summary["links"].items()]
    uses += [(use["group"], name, use) for name, use in summary["resources"].items()]
    used = sorted((u for u in uses if u[2]["busy_fraction"]), key=lambda use: -use[2]["busy_fraction"])
    seconds = summary["makespan_ns"]
    body = [
        (
            name,
            group,
            Cell(text.percent(use["busy_fraction"]), use["busy_fraction"]),
            Cell(text.size(use["bytes"]) if use["bytes"] else "–", use["bytes"]),
            Cell(text.rate(use["bytes"] / seconds) if use["bytes"] and seconds else "–", use["bytes"]),
        )
        for group, name, use in used
    ]
    if not body:
        return made
    heads = ("resource", "group", "busy", "bytes", "mean rate")
    idle = ", ".join(name for _, name, use in uses if not use["busy_fraction"])
    rest = f"<p><small>idle: {escape(idle)}</small></p>" if idle else ""
    return made + section("In use", table(heads, body, right=(2, 3, 4), name="resources"), rest)
