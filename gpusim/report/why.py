"""What limits a run and what would help, for a terminal and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gpusim.kinds import LABELS
from gpusim.report import parts
from gpusim.result import text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpusim.result import Result
    from gpusim.study.gains import Gain
    from gpusim.study.limits import Limit, Phase

_DIM = "bright_black"
_ROWS = 10


@dataclass(frozen=True, slots=True)
class Why:
    """What the spans of a run say: see `gpusim.study`."""

    limits: Sequence[Limit]
    phases: Sequence[Phase]
    gains: Sequence[Gain]
    makespan_ns: float = 0.0

    def _repr_html_(self) -> str:
        tables = (_gains(self.gains, self.makespan_ns), _limits(self.limits), _phases(self.phases))
        names = ("What would help", "What limits it", "From start to end")
        return "".join(
            f"<h4>{name}</h4>{shown_in_notebook(one)}" for name, one in zip(names, tables, strict=True)
        )


def shown_in_notebook(one: RenderableType) -> str:
    """A table of the terminal as HTML."""
    from rich.table import Table

    if not isinstance(one, Table):
        return f"<p>{escape(str(one))}</p>"
    heads = "".join(f"<th>{escape(str(column.header))}</th>" for column in one.columns)
    columns = [[escape(str(cell)) for cell in column.cells] for column in one.columns]
    rows = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in zip(*columns, strict=True)
    )
    return f"<table><tr>{heads}</tr>{rows}</table>"


def why(result: Result) -> Why | None:
    """From a result with spans; None without them."""
    from gpusim.study import gains, limits, spans

    found = spans.of(result)
    if found is None:
        return None
    return Why(
        limits.limits(result, found),
        limits.phases(result, found),
        gains.predicted(result, found),
        result.summary["makespan_ns"],
    )


def verified(result: Result, found: Why) -> Why:
    """The same, with each gain simulated as well."""
    from gpusim.study import gains

    return replace(found, gains=gains.verified(result.scenario, found.gains))


def sections(found: Why, makespan_ns: float) -> list[RenderableType]:
    """The parts of the report of `gpusim explain`."""
    lines: list[RenderableType] = [parts.heading("What would help"), _gains(found.gains, makespan_ns)]
    lines += [parts.heading("What limits it"), _limits(found.limits)]
    if found.phases:
        lines += [parts.heading("From start to end"), _phases(found.phases[: 2 * _ROWS])]
    return lines


def _gains(gains: Sequence[Gain], makespan_ns: float) -> RenderableType:
    if not gains or not makespan_ns:
        return Text("nothing on the critical path could be faster by itself", style=_DIM)
    verified = any(gain.resimulated_ns is not None for gain in gains)
    extra = ("re-simulated", "prediction off by") if verified else ()
    right = tuple(range(1, 4 + len(extra)))
    made = parts.table("if this were faster", "of the path", "twice as fast", "free", *extra, right=right)
    for gain in gains[:_ROWS]:
        cells = [
            LABELS[gain.kind],
            text.percent(gain.share),
            _less(gain.twice_ns, makespan_ns),
            _less(gain.free_ns, makespan_ns),
        ]
        if verified:
            there = gain.resimulated_ns
            cells += (
                ["–", "–"]
                if there is None
                else [
                    _less(there, makespan_ns),
                    f"{100 * (gain.twice_ns / there - 1):+.1f} %" if there else "–",
                ]
            )
        made.add_row(*cells)
    return made


def _less(after_ns: float, before_ns: float) -> str:
    return f"{100 * (after_ns / before_ns - 1):+.1f} %"


def _limits(limits: Sequence[Limit]) -> RenderableType:
    made = parts.table(
        "resource",
        "of the path",
        "in use",
        "busiest",
        "of its ceiling",
        "waiting for it",
        right=(1, 2, 3, 4, 5),
    )
    for limit in limits[: 2 * _ROWS]:
        if (limit.path or 0.0) < 0.0005 and limit.use < 0.0005:
            continue
        made.add_row(
            limit.name,
            "–" if limit.path is None else text.percent(limit.path),
            text.percent(limit.use),
            text.percent(limit.peak),
            "–" if limit.ceiling is None else text.percent(limit.ceiling),
            waiting(limit.queueing),
        )
    return made


def waiting(number: float | None) -> str:
    """How many waited at a time, in the mean over the run."""
    if number is None:
        return "–"
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.2f}" if number >= 0.005 else "0"


def _phases(phases: Sequence[Phase]) -> RenderableType:
    made = parts.table("from", "to", "mostly", "", "used most", "", right=(0, 1, 3, 5))
    for phase in phases:
        made.add_row(
            text.time(phase.start_ns),
            text.time(phase.end_ns),
            LABELS[phase.kind],
            text.percent(phase.share),
            phase.resource or "–",
            text.percent(phase.use) if phase.resource else "",
        )
    return made


def as_data(found: Why) -> dict[str, Any]:
    """The same for `--json`."""
    return {
        "gains": [
            {
                "kind": gain.kind.name.lower(),
                "share": gain.share,
                "twice_as_fast_ns": gain.twice_ns,
                "free_ns": gain.free_ns,
                "resimulated_ns": gain.resimulated_ns,
            }
            for gain in found.gains
        ],
        "limits": [
            {
                "name": limit.name,
                "group": limit.group,
                "path_fraction": limit.path,
                "busy_fraction": limit.use,
                "peak_busy_fraction": limit.peak,
                "ceiling_fraction": limit.ceiling,
                "queueing_fraction": limit.queueing,
            }
            for limit in found.limits
        ],
        "phases": [
            {
                "start_ns": phase.start_ns,
                "end_ns": phase.end_ns,
                "kind": phase.kind.name.lower(),
                "fraction": phase.share,
                "resource": phase.resource,
                "busy_fraction": phase.use,
            }
            for phase in found.phases
        ],
    }
