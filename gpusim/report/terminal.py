"""The answer on a terminal: what was asked, what came out, why, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gpusim.errors import InputError
from gpusim.report import parts
from gpusim.report.io_paths import io_paths
from gpusim.report.moving import movers
from gpusim.report.uncertainty import uncertainty
from gpusim.result import text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpusim.result import Result
    from gpusim.result.expect import Checked


def answer(result: Result, checked: Sequence[Checked] = ()) -> list[RenderableType]:
    """The report that `gpusim run` prints: `checked` are the scenario's expectations, compared."""
    summary = result.summary
    lines: list[RenderableType] = parts.header(summary)
    if summary["attribution"] is not None:
        lines += [
            parts.heading(f"Where {text.time(summary['makespan_ns'])} went"),
            parts.breakdown(summary["attribution"], summary["makespan_ns"]),
        ]
    if summary["steps"]:
        lines += ["", parts.steps(summary)]
    if summary["faults"]["raised"]:
        lines += ["", parts.faults(summary)]
        fates = parts.fates(summary)
        lines += [fates] if fates else []
    moved = parts.migrations(summary)
    if moved is not None:
        lines += ["", moved]
    files = io_paths(summary)
    if files is not None:
        lines += ["", files]
    if summary["links"] or summary["resources"]:
        lines += [parts.heading("In use"), parts.links(summary)]
    moving = movers(result)
    if moving is not None:
        lines += [parts.heading("Who moves data"), moving]
    if "uncertainty" in summary:
        lines += [parts.heading("How sure"), *uncertainty(summary["uncertainty"])]
    if checked:
        lines += ["", parts.checked(checked)]
    remarks = parts.remarks(summary)
    if remarks:
        lines += ["", *remarks]
    lines += ["", *variants(result), engine(result)]
    if "trace" in summary:
        lines.append(traced(summary["trace"]))
    return lines


def variants(result: Result) -> list[RenderableType]:
    """That this is one run of those that the scenario's `sweep` compares, and how to have them all."""
    try:
        scenario = result.scenario
    except InputError:  # the result has none beside it
        return []
    if scenario.sweep is None:
        return []
    points = math.prod(len(values) for values in scenario.sweep.over.values())
    file = scenario.source or "FILE"
    words = f"this is the scenario as written; its sweep has {points} variants: gpusim sweep {file}"
    return [Text(words, style="bright_black", overflow="fold")]


def traced(trace: Mapping[str, Any]) -> Text:
    """How large the trace is, and what it lacks."""
    words = f"trace of {text.size(trace['bytes'])}, to be opened at ui.perfetto.dev"
    lost = ", ".join(f"{text.count(count)} {what}" for what, count in trace["dropped"].items())
    return Text(words + (f"; dropped from it: {lost}" if lost else ""), style="bright_black", overflow="fold")


def engine(result: Result) -> Text:
    """What the simulation itself took, and where the files are."""
    facts = result.summary["engine"]
    words = []
    if "events" in facts:
        words.append(f"{text.count(facts['events'])} events")
    if "wall_s" in facts:
        words.append(f"{text.time(facts['wall_s'] * 1e9)} of wall time")
    where = f"; files in {result.path}" if result.path else ""
    return Text(", ".join(words) + where, style="bright_black", overflow="fold")
