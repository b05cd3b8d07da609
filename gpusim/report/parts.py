"""The building blocks of reports on a terminal: from a summary to what rich prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpusim.report.fitting import Fitting
from gpusim.result import text
from gpusim.result.colours import colour
from gpusim.result.groups import StepGroup, grouped
from gpusim.result.shares import REST, label, largest, percentages
from gpusim.rundata import FAULT_COUNTERS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpusim.result.expect import Checked

Summary = Mapping[str, Any]

_BAR = 32
_EIGHTHS = " ▏▎▍▌▋▊▉"
_DIM = "bright_black"
_STEP_ROWS = 12
_SPLIT_ROWS = 9  # of processes and GPUs
_ERRORS = 4
_NOTES = 10


def table(*columns: str, right: Sequence[int] = ()) -> Table:
    """A table without lines; `right` lists the columns that are aligned to the right."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=_DIM)
    for index, name in enumerate(columns):
        made.add_column(
            name, justify="right" if index in right else "left", no_wrap=index in right, overflow="fold"
        )
    return made


def heading(words: str) -> RenderableType:
    """A section's title with a line above it."""
    return Padding(Text(words, style="bold"), (1, 0, 0, 0))


def bar(fraction: float, style: str, width: int = _BAR) -> Text:
    """A bar of eighths of a character; anything above zero shows."""
    eighths = max(round(min(fraction, 1.0) * width * 8), 1 if fraction > 0 else 0)
    full, part = divmod(eighths, 8)
    return Text("█" * full + (_EIGHTHS[part] if part else ""), style=style)


def header(summary: Summary) -> list[RenderableType]:
    """Name, outcome, question, answer, what bounds it, and the line to check by hand."""
    completed = summary["outcome"] == "completed"
    first = Text(summary["scenario"], style="bold")
    first.append(" · ")
    first.append(summary["outcome"], style="green" if completed else "bold red")
    first.append(f" · {text.time(summary['makespan_ns'])} simulated · seed {summary['seed']}", style=_DIM)
    lines: list[RenderableType] = [first]
    facts = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    facts.add_column(style=_DIM, no_wrap=True)
    facts.add_column()
    if summary["question"]:
        facts.add_row("question", Text(" ".join(summary["question"].split()), style="italic"))
    facts.add_row("answer", Text(summary["answer"]["text"], style="bold" if completed else "bold red"))
    if summary["bound_by"]:
        facts.add_row("bound by", summary["bound_by"])
    if summary["formula"]:
        facts.add_row("by hand", summary["formula"])
    for words in _errors(summary):
        facts.add_row("error", words)
    return [*lines, facts]


def _errors(summary: Summary) -> list[str]:
    """What processes died of, unless the answer says it; those that say the same in one line."""
    completed = summary["outcome"] == "completed"
    who: dict[str, list[str]] = {}
    for process in summary["processes"]:
        if process["error"] and (completed or process["error"] not in summary["answer"]["text"]):
            who.setdefault(process["error"], []).append(process["name"])
    found = []
    for error, names in list(who.items())[:_ERRORS]:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        found.append(f"{names[0]}{others}: {error}")
    left = sum(len(names) for names in list(who.values())[_ERRORS:])
    return [*found, f"and {left} more processes: `processes` of summary.json has all"] if left else found


def breakdown(attribution: Mapping[str, float] | None, whole_ns: float, *, rows: int = 12) -> RenderableType:
    """A line and a bar for each kind; the percentages that are printed sum to 100."""
    if attribution is None:
        return Text("not recorded: run with --record summary", style=_DIM)
    parts = largest(attribution, rows, 0.0005)
    shown = percentages(parts)
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False, show_footer=True)
    made.add_column(footer=Text("sum", style=_DIM))
    made.add_column(width=_BAR)
    made.add_column(justify="right", footer=Text(f"{sum(shown.values()):.1f} %", style=_DIM))
    made.add_column(justify="right", footer=Text(text.time(whole_ns), style=_DIM))
    longest = max(parts.values(), default=1.0)
    for kind, fraction in parts.items():
        style = colour(kind) if kind != REST else _DIM
        cells = (bar(fraction / longest, style), f"{shown[kind]:.1f} %", text.time(fraction * whole_ns))
        made.add_row(label(kind), *cells)
    return made


def steps(summary: Summary) -> RenderableType:
    """Steps by name: time, spread, bytes, rate, and what most of it was spent on."""
    made = table("step", "verb", "time", "bytes", "rate", "mostly", right=(2, 3, 4))
    groups = grouped(summary["steps"], split_first=True)
    for group in groups[:_STEP_ROWS]:
        made.add_row(
            group.label,
            group.kind,
            text.time(group.mean_ns) + _spread(group),
            text.size(group.bytes_each) if group.bytes_each else "–",
            text.rate(group.bandwidth_gb_per_s),
            mostly(group.attribution),
        )
    if len(groups) > _STEP_ROWS:
        made.add_row(Text(f"and {len(groups) - _STEP_ROWS} more: the table `steps` has all", style=_DIM))
    untold = [g.label for g in groups[:_STEP_ROWS] if g.kind == "launch" and g.attribution is None]
    if untold and summary["attribution"] is not None:
        words = f"{', '.join(untold)}: waited for what began before; `--record spans` tells for what"
        return Group(made, Text(words, style=_DIM))
    return made


def mostly(attribution: Mapping[str, float] | None, count: int = 2) -> str:
    """`HBM 93 %, compute 6 %`."""
    if not attribution:
        return "–"
    parts = sorted(attribution.items(), key=lambda item: -item[1])[:count]
    return ", ".join(f"{label(kind)} {100 * part:.0f} %" for kind, part in parts if part >= 0.005)


def faults(summary: Summary) -> RenderableType:
    """Counters and latency percentiles; by GPU and process where there are several."""
    whole = summary["faults"]
    made = table(
        "faults",
        "raised",
        "serviced",
        "latency p50",
        "p95",
        "p99",
        "max",
        "mean",
        right=(1, 2, 3, 4, 5, 6, 7),
    )
    blocks = {"all": whole}
    for split in ("per_process", "per_gpu"):
        again = [block["raised"] for block in whole[split].values()] == [
            block["raised"] for block in list(blocks.values())[1:]
        ]
        if len(whole[split]) > 1 and not again:  # one rank per GPU would be said twice
            blocks |= whole[split]
    for name, block in list(blocks.items())[:_SPLIT_ROWS]:
        latency = block["latency_ns"] or {}
        cells = [text.time(latency.get(key)) for key in ("p50", "p95", "p99", "max", "mean")]
        made.add_row(name, text.count(block["raised"]), text.count(block.get("serviced")), *cells)
    if len(blocks) > _SPLIT_ROWS:
        made.add_row(Text(f"and {len(blocks) - _SPLIT_ROWS} more", style=_DIM))
    return made


def fates(summary: Summary) -> Text:
    """What became of the raised faults that were not serviced."""
    whole = summary["faults"]
    rest = [
        f"{text.count(whole[name])} {name.replace('_', ' ')}"
        for name in FAULT_COUNTERS
        if name != "serviced" and whole.get(name)
    ]
    vectors = whole.get("vectors", {})
    if vectors.get("duplicate_fraction"):
        share = text.percent(vectors["duplicate_fraction"])
        rest.append(f"{share} of {text.count(vectors['count'])} vectors at the driver led to no service")
    return Text("not serviced: " + ", ".join(rest), style=_DIM) if rest else Text("")


def links(summary: Summary, *, rows: int = 12) -> RenderableType:
    """Links first, then workers, engines, memories and locks that were in use; the busiest of each group
    first.
    """
    made = table("", "", "busy", "bytes", "mean rate", right=(2, 3, 4))
    uses = [("link", name, use) for name, use in summary["links"].items()]
    uses += [(use["group"], name, use) for name, use in summary["resources"].items()]
    order = ["link", "worker", "engine", "memory", "lock"]
    idle = [name for _, name, use in uses if not use["busy_fraction"]]
    uses = [item for item in uses if item[2]["busy_fraction"]]
    uses.sort(
        key=lambda item: (order.index(item[0]) if item[0] in order else 9, -(item[2]["busy_fraction"] or 0))
    )
    seconds = summary["makespan_ns"]
    for group, name, use in uses[:rows]:
        busy = use["busy_fraction"] or 0.0
        moves = group in ("link", "engine", "memory") and seconds
        rate = text.rate(use["bytes"] / seconds) if moves else "–"
        size = text.size(use["bytes"]) if moves else "–"
        made.add_row(name, bar(busy, "#0072B2", 20), text.percent(busy), size, rate)
    if len(uses) > rows:
        made.add_row(Text(f"and {len(uses) - rows} more: the table `links` has all", style=_DIM))
    if idle:
        listed = ", ".join(idle[:6]) + (f" and {len(idle) - 6} more" if len(idle) > 6 else "")
        return (
            Group(made, Text(f"idle: {listed}", style=_DIM)) if uses else Text(f"idle: {listed}", style=_DIM)
        )
    return made


def migrations(summary: Summary) -> RenderableType | None:
    """Pages that moved, by direction; None when none did."""
    moved = {name: total for name, total in summary["migrations"].items() if total["count"]}
    if not moved:
        return None
    made = table("migrations", "count", "bytes", "rate while migrating", right=(1, 2, 3))
    for name, total in moved.items():
        made.add_row(
            name.replace("_", " "),
            text.count(total["count"]),
            text.size(total["bytes"]),
            text.rate(total["bandwidth_gb_per_s"]),
        )
    return made


def checked(rows: Sequence[Checked]) -> RenderableType:
    """Expected against simulated: a line for each row, or two where the window is too narrow for one."""
    return Fitting(lambda: _checked_wide(rows), lambda: _checked_narrow(rows))


def _checked_wide(rows: Sequence[Checked]) -> RenderableType:
    made = table(
        "", "metric", "expected", "simulated", "error", "within", "kind", "source", right=(2, 3, 4, 5)
    )
    for row in rows:
        made.add_row(
            _verdict(row),
            row.metric,
            text.value(row.measured, row.unit),
            text.value(row.simulated, row.unit),
            _error(row),
            row.tolerance or "–",
            row.kind,
            row.source,
        )
    return made


def _checked_narrow(rows: Sequence[Checked]) -> RenderableType:
    lines: list[RenderableType] = []
    for row in rows:
        head = _verdict(row)
        head.append(f"  {row.metric}", style="default not bold")
        values = f"{text.value(row.simulated, row.unit)} for {text.value(row.measured, row.unit)}"
        words = f"{values}, {_error(row)} (within {row.tolerance or 0}); {row.kind}: {row.source}"
        lines += [head, Padding(Text(words, style=_DIM), (0, 0, 0, 5))]
    return Group(*lines)


def _verdict(row: Checked) -> Text:
    return Text("ok ", style="green") if row.ok else Text("OUT", style="bold red")


def _error(row: Checked) -> str:
    return "–" if row.error is None else f"{100 * row.error:+.1f} %"


def remarks(summary: Summary) -> list[RenderableType]:
    """Notes, then what the model leaves out."""
    notes = list(dict.fromkeys(summary["notes"]))
    lines: list[RenderableType] = [_hanging("note", note, "yellow") for note in notes[:_NOTES]]
    if len(notes) > _NOTES:
        lines.append(Text(f"and {len(notes) - _NOTES} more notes in summary.json", style=_DIM))
    if summary["not_modelled"]:
        lines.append(_hanging("not modelled", "; ".join(summary["not_modelled"]), _DIM))
    return lines


def _hanging(word: str, words: str, style: str) -> RenderableType:
    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_header=False)
    made.add_column(style=style, no_wrap=True)
    made.add_column()
    made.add_row(f"{word}:", words)
    return made


def _spread(group: StepGroup) -> str:
    if len(group.rows) == 1 or group.most_ns <= group.least_ns * 1.0005:
        return ""
    half = (group.most_ns - group.least_ns) / 2
    return f" ± {100 * half / group.mean_ns:.1f} %"
