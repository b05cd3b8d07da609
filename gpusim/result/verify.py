"""Checks that any result must pass, recomputed from what is in it. `explain --verify` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpusim.kinds import Kind
from gpusim.result.schema import kind_column
from gpusim.rundata import FAULT_COUNTERS

if TYPE_CHECKING:
    import pandas as pd

_REL = 1e-9  # picoseconds kept as float64 nanoseconds
_ABS_NS = 1e-3  # one picosecond


@dataclass(frozen=True, slots=True)
class Check:
    """One law, whether the result keeps it, and the numbers."""

    law: str
    ok: bool
    detail: str


def verify(summary: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> list[Check]:
    """Every law that applies to what was recorded."""
    return [
        *_attribution(summary),
        *_steps(summary),
        *_counters(summary["faults"]),
        *(_fault_table(summary, tables["faults"]) if "faults" in tables else ()),
        *(_migrations(summary, tables["migrations"]) if "migrations" in tables else ()),
        *(_links(summary, tables["links"]) if "links" in tables else ()),
        *(_spans(tables["spans"]) if "spans" in tables else ()),
    ]


def _attribution(summary: Mapping[str, Any]) -> Iterator[Check]:
    if summary["attribution"] is None:
        return
    if summary["makespan_ns"]:
        total = sum(summary["attribution"].values())
        yield Check("the breakdown of the run sums to 100 %", abs(total - 1) < _REL, f"{100 * total:.10g} %")
    steps = [row for row in summary["steps"] if row["attribution"]]
    if steps:
        off = max(abs(sum(row["attribution"].values()) - 1) for row in steps)
        yield Check(
            "the breakdown of every step sums to 100 %",
            off < _REL,
            f"{len(steps)} steps, worst {100 * off:.2g} % off",
        )


def _steps(summary: Mapping[str, Any]) -> Iterator[Check]:
    end = summary["makespan_ns"] * (1 + _REL) + _ABS_NS
    bad = [row["path"] for row in summary["steps"] if not 0 <= row["start_ns"] <= row["end_ns"] <= end]
    yield Check(
        "every step lies within the run", not bad, f"{len(summary['steps'])} steps, outside: {_few(bad)}"
    )


def _counters(faults: Mapping[str, Any]) -> Iterator[Check]:
    there = [name for name in FAULT_COUNTERS if name in faults]
    total = sum(faults[name] for name in there)
    detail = f"{faults['raised']:,} = {' + '.join(f'{faults[name]:,} {name}' for name in there) or '0'}"
    yield Check("raised faults are the sum of their fates", total == faults["raised"], detail)
    for split in ("per_gpu", "per_process"):
        parts = faults[split].values()
        bad = [
            name
            for name in ("raised", *there)
            if parts and sum(part.get(name, 0) for part in parts) != faults[name]
        ]
        yield Check(f"faults {split.replace('_', ' ')} sum to the whole", not bad, f"differ: {_few(bad)}")


def _fault_table(summary: Mapping[str, Any], faults: pd.DataFrame) -> Iterator[Check]:
    rows = int(faults["count"].sum())
    serviced = summary["faults"].get("serviced", 0)
    yield Check(
        "every serviced fault is on record", rows == serviced, f"{rows:,} on record, {serviced:,} counted"
    )
    if not rows:
        return
    latency = faults["latency_ns"]
    slack = latency.abs() * _REL + _ABS_NS
    pieces = [kind_column(kind) for kind in Kind if kind_column(kind) in faults.columns]
    if pieces:
        off = (faults[pieces].sum(axis=1) - latency).abs()
        worst = f"{len(pieces)} pieces, worst {off.max():.3g} ns off"
        yield Check("the pieces of every fault tile its latency", bool((off <= slack).all()), worst)
    off = (faults["replayed_ns"] - faults["raised_ns"] - latency).abs()
    times_slack = faults["replayed_ns"].abs() * _REL + _ABS_NS
    yield Check(
        "latency is from raised to replayed",
        bool((off <= times_slack).all()),
        f"worst {off.max():.3g} ns off",
    )
    order = [faults[name] for name in ("raised_ns", "started_ns", "mapped_ns", "replayed_ns")]
    late = sum(int((before > after + times_slack).sum()) for before, after in pairwise(order))
    yield Check("raised, started, mapped, replayed follow each other", late == 0, f"{late} out of order")


def _migrations(summary: Mapping[str, Any], table: pd.DataFrame) -> Iterator[Check]:
    counted = sum(total["bytes"] for total in summary["migrations"].values())
    recorded = round(float((table["bytes"] * table["count"]).sum()))
    slack = counted * _REL if (table["count"] > 1).any() else 0
    yield Check(
        "migrated bytes are the sum of the migrations",
        abs(counted - recorded) <= slack,
        f"{counted:,} counted, {recorded:,} on record",
    )


def _links(summary: Mapping[str, Any], table: pd.DataFrame) -> Iterator[Check]:
    uses = summary["links"] | summary["resources"]
    moved = table.groupby("name", observed=True)["bytes"].sum()
    bad = [name for name, use in uses.items() if name in moved.index and int(moved[name]) != use["bytes"]]
    yield Check(
        "bytes over time are the bytes that went in and came out",
        not bad,
        f"{len(uses)} resources, differ: {_few(bad)}",
    )
    over = sorted({str(name) for name in table.loc[table["busy_fraction"] > 1 + 1e-6, "name"]})
    yield Check("nothing is in use for longer than time passes", not over, f"over 100 %: {_few(over)}")
    makespan_ns = summary["makespan_ns"]
    capacity = table.groupby("name", observed=True)["capacity_gb_per_s"].max()
    fast = [
        name
        for name, use in uses.items()
        if name in capacity.index and use["bytes"] > capacity[name] * makespan_ns * (1 + 1e-6)
    ]
    yield Check("nothing carries more than its capacity", not fast, f"over: {_few(fast)}")


def _spans(spans: pd.DataFrame) -> Iterator[Check]:
    bad = int(((spans["end_ns"] < spans["start_ns"]) | (spans["start_ns"] < 0)).sum())
    yield Check("every span ends after it starts", bad == 0, f"{len(spans):,} spans, {bad} do not")
    links = spans[["cause", "queued_behind", "released_by"]]
    lost = int((links > len(spans)).sum().sum())
    yield Check("every link of a span leads to a span", lost == 0, f"{lost} lead nowhere")


def _few(names: list[str]) -> str:
    return (
        "none"
        if not names
        else ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    )
