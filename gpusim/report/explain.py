"""Where the time went and what limits it, for the whole run, for each step, and for the life of a fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gpusim.kinds import DEFINITIONS, Kind
from gpusim.report import parts, why
from gpusim.report.io_paths import io_paths
from gpusim.result import text
from gpusim.result.groups import grouped
from gpusim.result.schema import kind_column
from gpusim.result.shares import label, largest, percentages

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from gpusim.report.why import Why
    from gpusim.result import Result
    from gpusim.result.verify import Check

_STEPS = 8
_DEFINED = 6
_DIM = "bright_black"


def explanation(
    result: Result, checks: Sequence[Check] | None = None, reasons: Why | None = None
) -> list[RenderableType]:
    """The report of `gpusim explain`; `checks` are those of --verify, `reasons` what its spans say."""
    summary = result.summary
    lines = parts.header(summary)
    attribution = summary["attribution"]
    lines += [
        parts.heading(f"Where {text.time(summary['makespan_ns'])} went"),
        parts.breakdown(attribution, summary["makespan_ns"], rows=len(Kind)),
    ]
    if reasons is not None:
        lines += why.sections(reasons, summary["makespan_ns"])
    if attribution:
        lines += [parts.heading("What these are"), _definitions(attribution)]
    steps = _steps(summary)
    if steps is not None:
        lines += [parts.heading("Step by step"), steps]
    lives = _lives(result)
    if lives is not None:
        lines += [parts.heading("The life of a fault"), lives]
    files = io_paths(summary)
    if files is not None:
        lines += [parts.heading("Which way file requests went"), files]
    lines += [parts.heading("In use"), parts.links(summary)]
    lines += [parts.heading("Span by span"), *_spans(result)]
    remarks = parts.remarks(summary)
    if remarks:
        lines += ["", *remarks]
    if checks is not None:
        lines += [parts.heading("Checks"), _checks(checks)]
    return lines


def as_json(
    result: Result, checks: Sequence[Check] | None = None, reasons: Why | None = None
) -> dict[str, Any]:
    """The same as data, for `explain --json`."""
    summary = result.summary
    kept = (
        "io",
        "scenario",
        "question",
        "answer",
        "bound_by",
        "formula",
        "formula_off",
        "outcome",
        "makespan_ns",
        "attribution",
    )
    lives = _lives_data(result)
    made: dict[str, Any] = {key: summary[key] for key in kept}
    made["steps"] = [
        {
            "name": group.name,
            "kind": group.kind,
            "count": len(group.rows),
            "duration_ns": group.mean_ns,
            "attribution": group.attribution,
        }
        for group in grouped(summary["steps"], split_first=True)
    ]
    made["fault"] = None if lives is None else {name: parts for name, (parts, _) in lives.items()}
    made["notes"] = summary["notes"]
    made["not_modelled"] = summary["not_modelled"]
    made["why"] = None if reasons is None else why.as_data(reasons)
    if checks is not None:
        made["checks"] = [{"law": check.law, "ok": check.ok, "detail": check.detail} for check in checks]
    return made


def _definitions(attribution: dict[str, float]) -> RenderableType:
    made = parts.table("", "")
    made.show_header = False
    for kind in list(largest(attribution, _DEFINED))[:_DEFINED]:
        if kind.upper() in Kind.__members__:
            made.add_row(label(kind), Text(DEFINITIONS[Kind[kind.upper()]], style=_DIM))
    return made


def _steps(summary: Any) -> RenderableType | None:
    groups = [group for group in grouped(summary["steps"], split_first=True) if group.attribution]
    if not groups:
        return None
    made = parts.table("step", "time", "of which", right=(1,))
    for group in sorted(groups, key=lambda group: -group.total_ns)[:_STEPS]:
        fractions = largest(group.attribution or {}, 6, 0.005)
        shown = percentages(fractions)
        words = ", ".join(f"{label(kind)} {shown[kind]:.1f} %" for kind in fractions)
        made.add_row(group.label, text.time(group.mean_ns), words)
    return made


def _lives_data(result: Result) -> dict[str, tuple[dict[str, float], float]] | None:
    """Nanoseconds by kind and their sum, of the mean fault and the slowest; None without faults."""
    faults = result.tables.get("faults")
    if faults is None or faults.empty:
        return None
    pieces = [(kind, kind_column(kind)) for kind in Kind if kind_column(kind) in faults.columns]
    weight = faults["count"] / faults["count"].sum()
    worst = faults.iloc[int(faults["latency_ns"].to_numpy().argmax())]
    mean = {kind.name.lower(): float((faults[name] * weight).sum()) for kind, name in pieces}
    slowest = {kind.name.lower(): _number(worst, name) for kind, name in pieces}
    return {"mean": (mean, sum(mean.values())), "slowest": (slowest, sum(slowest.values()))}


def _number(row: pd.Series[Any], name: str) -> float:
    return float(row[name])


def _lives(result: Result) -> RenderableType | None:
    lives = _lives_data(result)
    if lives is None:
        return None
    made = parts.table("", "mean fault", "", "slowest fault", "", right=(1, 2, 3, 4))
    (mean, mean_ns), (slowest, slowest_ns) = lives["mean"], lives["slowest"]
    for kind in sorted(mean, key=lambda kind: -mean[kind]):
        if mean[kind] or slowest[kind]:
            made.add_row(
                label(kind),
                text.time(mean[kind]),
                text.percent(mean[kind] / mean_ns),
                text.time(slowest[kind]),
                text.percent(slowest[kind] / slowest_ns),
            )
    made.add_row(Text("sum", style=_DIM), text.time(mean_ns), "100.0 %", text.time(slowest_ns), "100.0 %")
    return made


def _spans(result: Result) -> list[RenderableType]:
    """With spans: what every part spent, and what of it was contention. Without: how to get them."""
    if "spans" not in result.tables:
        words = "not recorded: run with --record spans to see how much of each kind is waiting for others"
        return [Text(words, style=_DIM)]
    spans = result.tables["spans"]
    took = spans["end_ns"] - spans["start_ns"]
    sums = spans.assign(took=took, waited=took - spans["alone_ns"]).groupby("kind", observed=True)
    totals = sums.agg(
        count=("took", "size"), took=("took", "sum"), waited=("waited", "sum"), longest=("took", "max")
    )
    made = parts.table(
        "over all parts", "spans", "time", "of it waiting for others", "longest", right=(1, 2, 3, 4)
    )
    for kind, row in totals.sort_values("took", ascending=False).head(12).iterrows():
        made.add_row(
            label(str(kind)),
            text.count(_number(row, "count")),
            text.time(_number(row, "took")),
            text.percent(_number(row, "waited") / _number(row, "took") if row["took"] else 0.0),
            text.time(_number(row, "longest")),
        )
    return [made]


def _checks(checks: Sequence[Check]) -> RenderableType:
    made = parts.table("", "", "")
    made.show_header = False
    for check in checks:
        state = Text("ok", style="green") if check.ok else Text("BROKEN", style="bold red")
        made.add_row(state, check.law, Text(check.detail, style=_DIM))
    return made
