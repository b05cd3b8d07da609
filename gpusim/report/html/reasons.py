"""What limits the run and what would help it, as far as its spans were recorded."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from gpusim.kinds import DEFINITIONS, LABELS
from gpusim.report.html.sections import section
from gpusim.report.html.tables import Cell, table
from gpusim.report.why import waiting
from gpusim.result import text
from gpusim.result.colours import colour, text_on
from gpusim.study import limits as study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusim.report.why import Why
    from gpusim.result import Result
    from gpusim.study.gains import Gain
    from gpusim.study.limits import Limit, Phase

_LEAST = 0.0005  # of the makespan: what is used less is not listed
_NAMED = 0.12  # of the run: a phase as long has room for its name
_ASK = (
    "<p>Not recorded: <code>gpusim run --record spans</code> keeps what each part waited for. Then this page says what "
    "would help, what each resource has of the critical path, and how long others waited for it.</p>"
)


def helps(result: Result, found: Why | None) -> str:
    """How much shorter the run would be if one kind of work were faster."""
    title = "What would help"
    if found is None:
        return section(title, _ASK) if result.summary["makespan_ns"] else ""
    whole = result.summary["makespan_ns"]
    if not found.gains or not whole:
        return section(title, "<p>Nothing on the critical path could be faster by itself.</p>")
    verified = any(gain.resimulated_ns is not None for gain in found.gains)
    simulated = ("twice as fast, simulated",) if verified else ()
    heads = ("if this were faster", "of the path", "twice as fast", "free", *simulated, "less")
    best = max((1 - gain.free_ns / whole for gain in found.gains), default=0.0)
    rows = [_gain(gain, whole, best, verified=verified) for gain in found.gains]
    said = (
        "<p>The whole run would take so much less. Predicted by timing the recorded spans anew: each begins when all "
        "that it waited for has ended, so what was hidden behind the critical path comes to light. "
        "<code>gpusim explain --verify</code> simulates it.</p>"
    )
    return section(title, said, table(heads, rows, right=range(1, len(heads) - 1), name="what would help"))


def _gain(gain: Gain, whole_ns: float, best: float, *, verified: bool) -> list[Cell]:
    twice, free = (1 - ns / whole_ns for ns in (gain.twice_ns, gain.free_ns))
    cells = [
        Cell(LABELS[gain.kind], html=_kind(gain)),
        Cell(text.percent(gain.share), gain.share),
        _less(gain.twice_ns, whole_ns),
        _less(gain.free_ns, whole_ns),
    ]
    if verified:
        there = gain.resimulated_ns
        cells.append(Cell("–") if there is None else _less(there, whole_ns))
    scale = 100 / best if best > 0 else 0.0
    fill = colour(gain.kind.name.lower())
    bar = (
        f'<div class="gain"><i style="width:{scale * max(free, 0):.1f}%;background:{fill};opacity:.45"></i>'
        f'<i style="width:{scale * max(twice, 0):.1f}%;background:{fill}"></i></div>'
    )
    return [*cells, Cell("", twice, bar)]


def _kind(gain: Gain) -> str:
    return f'<span title="{escape(DEFINITIONS[gain.kind])}">{escape(LABELS[gain.kind])}</span>'


def _less(after_ns: float, before_ns: float) -> Cell:
    off = after_ns / before_ns - 1
    return Cell(f"{100 * off:+.1f} %", off)


def limited(result: Result, found: Why | None) -> str:
    """Each resource beside what it could do, and what binds from start to end."""
    listed = found.limits if found is not None else study.limits(result, None)
    rows = [_limit(one) for one in listed if max(one.path or 0.0, one.use) >= _LEAST]
    if not rows:
        return ""
    heads = (
        "resource",
        "group",
        "of the path",
        "in use",
        "busiest",
        "of its ceiling",
        "waiting for it",
    )
    said = (
        "<p><b>Of the path</b>: its part of the critical path, the chain of work that had to end for the run to end. "
        "<b>In use</b>: of the run, and in its busiest moment. <b>Of its ceiling</b>: bytes moved, of those that it "
        "could have moved in the whole run. <b>Waiting for it</b>: how many waited for others there at a time, in the "
        "mean; of a drive that somebody flushes that is not known, since what it writes then is anybody's.</p>"
    )
    made = table(heads, rows, right=range(2, 7), name="what limits it")
    phases = _phases(found.phases, result.summary["makespan_ns"]) if found is not None else ""
    return section("What limits it", said, made, phases)


def _limit(one: Limit) -> list[Cell]:
    def share(value: float | None) -> Cell:
        return Cell("–") if value is None else Cell(text.percent(value), value)

    return [
        Cell(one.name),
        Cell(one.group),
        *map(share, (one.path, one.use, one.peak, one.ceiling)),
        Cell(waiting(one.queueing), one.queueing),
    ]


def _phases(phases: Sequence[Phase], whole_ns: float) -> str:
    if not phases or not whole_ns:
        return ""
    blocks, rows = [], []
    for phase in phases:
        part = (phase.end_ns - phase.start_ns) / whole_ns
        kind, fill = LABELS[phase.kind], colour(phase.kind.name.lower())
        when = f"{text.time(phase.start_ns)} to {text.time(phase.end_ns)}"
        inside = f"<span>{escape(kind)}</span>" if part >= _NAMED else ""
        blocks.append(
            f'<div style="flex:{part:.6f};background:{fill};color:{text_on(fill)}" '
            f'title="{escape(f"{kind}, {when}")}">{inside}</div>'
        )
        rows.append(
            (
                Cell(text.time(phase.start_ns), phase.start_ns),
                Cell(text.time(phase.end_ns), phase.end_ns),
                kind,
                Cell(text.percent(phase.share), phase.share),
                phase.resource or "–",
                Cell(text.percent(phase.use), phase.use) if phase.resource else Cell("–"),
            )
        )
    heads = ("from", "to", "mostly", "of the phase", "used most", "in use")
    return (
        "<h3>What binds, from start to end</h3>"
        '<figure class="stack"><div class="bar" role="img" aria-label="what binds, from start to end">'
        f"{''.join(blocks)}</div></figure>"
        + table(heads, rows, right=(0, 1, 3, 5), name="what binds, from start to end")
    )
