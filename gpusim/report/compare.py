"""What `gpusim compare` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from gpusim.report import parts
from gpusim.result import text
from gpusim.result.shares import label

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpusim.study.compare import Comparison, Delta

_DIM = "bright_black"
_ROWS = 12
_CHANGES = 30


def comparison(found: Comparison) -> list[RenderableType]:
    """The report for a terminal."""
    whole = found.whole
    ratio = whole.b_ns / whole.a_ns if whole.a_ns else 0.0
    first = Text("A ", style="bold").append(_name(found.a.summary), style="none")
    second = Text("B ", style="bold").append(_name(found.b.summary), style="none")
    change = f"{100 * (ratio - 1):+.1f} %" if whole.a_ns else ""
    verdict = f"A takes {text.time(whole.a_ns)}, B takes {text.time(whole.b_ns)}: {change}"
    if whole.significant is False:
        verdict += ", which is within chance"
    lines: list[RenderableType] = [first, second, Text(verdict, style="bold")]
    lines += [parts.heading("By kind of work on the critical path"), _kinds(found)]
    if found.runs == 1:
        words = "one run of each: --replications N says whether a difference is more than chance"
        lines.append(Text(words, style=_DIM))
    lines += [parts.heading("What differs in the scenario"), _changes(found)]
    lines.append(parts.heading("Where they part"))
    if found.parting is None:
        lines.append(Text("nowhere: both do the same to the end", style=_DIM))
    else:
        parting = found.parting
        lines.append(Text(f"at {text.time(parting.at_ns)}, in {parting.table}"))
        made = parts.table("", "")
        made.show_header = False
        made.add_row("A", parting.a)
        made.add_row("B", parting.b)
        lines.append(made)
    return lines


def _name(summary: Any) -> str:
    return f"{summary['scenario']} · {summary['outcome']} · seed {summary['seed']}"


def _kinds(found: Comparison) -> RenderableType:
    several = found.runs > 1
    extra = ("95 % interval", "") if several else ()
    made = parts.table("", "A", "B", "difference", *extra, right=(1, 2, 3, 4) if several else (1, 2, 3))
    there = [delta for delta in found.kinds if delta.a_ns or delta.b_ns]
    there.sort(key=lambda delta: (-abs(delta.difference_ns), -delta.a_ns))
    shown = there if len(there) <= _ROWS + 1 else there[:_ROWS]
    for delta in shown:
        made.add_row(*_cells(label(delta.name), delta, several=several))
    rest = there[len(shown) :]
    if rest:  # so that the columns add up
        a_ns, b_ns = (sum(getattr(delta, key) for delta in rest) for key in ("a_ns", "b_ns"))
        difference = _signed(b_ns - a_ns)
        made.add_row(f"{len(rest)} others", text.time(a_ns), text.time(b_ns), difference, *[""] * len(extra))
    made.add_row(*_cells("sum", found.whole, several=several))
    return made


def _cells(words: str, delta: Delta, *, several: bool) -> list[str]:
    cells = [words, text.time(delta.a_ns), text.time(delta.b_ns), _signed(delta.difference_ns)]
    if several:
        cells += [f"± {text.time(delta.half_width_ns or 0.0)}", _judged(delta)]
    return cells


def _judged(delta: Delta) -> str:
    return "significant" if delta.significant else "within chance"


def _signed(ns: float) -> str:
    return f"{'-' if ns < 0 else '+'}{text.time(abs(ns))}" if ns else "0 s"


def _changes(found: Comparison) -> RenderableType:
    if not found.changes:
        return Text("nothing", style=_DIM)
    made = parts.table("", "A", "B")
    for change in found.changes[:_CHANGES]:
        made.add_row(
            change.path, change.a if change.a is not None else "–", change.b if change.b is not None else "–"
        )
    if len(found.changes) > _CHANGES:
        made.add_row(Text(f"and {len(found.changes) - _CHANGES} more", style=_DIM), "", "")
    return made


def as_data(found: Comparison) -> dict[str, Any]:
    """The same for `compare --json`."""
    parting = found.parting
    return {
        "a": found.a.summary["scenario"],
        "b": found.b.summary["scenario"],
        "replications": found.runs,
        "makespan": _delta(found.whole),
        "kinds": [{"kind": delta.name} | _delta(delta) for delta in found.kinds],
        "changes": [{"path": change.path, "a": change.a, "b": change.b} for change in found.changes],
        "parting": None
        if parting is None
        else {"at_ns": parting.at_ns, "table": parting.table, "a": parting.a, "b": parting.b},
    }


def _delta(delta: Delta) -> dict[str, Any]:
    return {
        "a_ns": delta.a_ns,
        "b_ns": delta.b_ns,
        "difference_ns": delta.difference_ns,
        "half_width_ns": delta.half_width_ns,
        "significant": delta.significant,
    }
