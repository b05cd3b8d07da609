"""From RunData to the contract of summary.json: integers of picoseconds become nanoseconds here, nowhere
earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.errors import InvariantError
from gpusim.kinds import Kind
from gpusim.result.answer import answer, by_hand
from gpusim.result.io_summary import io_summary
from gpusim.result.numbers import bandwidth, fractions, latency_block
from gpusim.result.schema import SCHEMA_VERSION
from gpusim.rundata import FAULT_COUNTERS, FaultCounts, ResourceUse, RunData, StepData
from gpusim.version import version

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusim.scenario.schema import Scenario


def build(scenario: Scenario, data: RunData) -> dict[str, Any]:
    """The summary of a run, ready for `json.dumps`.

    Raises InvariantError when the attribution does not cover the makespan, or a step's its duration: a
    breakdown that does not add up must never reach a reader.
    """
    check_attribution("the run", data.attribution, data.makespan_ps)
    for step in data.steps:
        check_attribution(f"step {step.path}", step.attribution, step.end_ps - step.start_ps)
    summary: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "scenario": scenario.name,
        "question": scenario.question or None,
        "answer": None,
        "bound_by": data.bound_by,
        "formula": None,
        "formula_off": None,
        "outcome": data.outcome,
        "processes": [
            {
                "name": p.name,
                "outcome": p.outcome,
                "error": p.error,
                "end_ns": p.end_ps / 1000,
                **({"kfd": dict(p.kfd)} if p.kfd else {}),
            }
            for p in data.processes
        ],
        "makespan_ns": data.makespan_ps / 1000,
        "steps": [_step(step) for step in data.steps],
        "faults": _faults(data),
        "counters": {gpu: dict(counts) for gpu, counts in data.counters.items()},
        "migrations": {
            total.direction: {
                "count": total.count,
                "bytes": total.bytes,
                "time_ns": total.time_ps / 1000,
                "bandwidth_gb_per_s": bandwidth(total.bytes, total.time_ps),
            }
            for total in data.migrations
        },
        "thrash": thrash(data),
        "links": {use.name: _use(use, data.makespan_ps) for use in data.uses if use.group == "link"},
        "resources": {
            use.name: {"group": use.group} | _use(use, data.makespan_ps)
            for use in data.uses
            if use.group != "link"
        },
        "io": io_summary(data),
        "attribution": fractions(data.attribution),
        "notes": list(data.notes),
        "seed": data.seed,
        "version": version(),
        "not_modelled": list(data.not_modelled),
        "engine": dict(data.engine),
    }
    summary["answer"] = answer(summary, scenario.answer, [str(row.metric) for row in scenario.expect or ()])
    summary["formula"], summary["formula_off"] = by_hand(summary, data.formulas, scenario.answer)
    return summary


def check_attribution(what: str, parts: Mapping[Kind, int] | None, whole_ps: int) -> None:
    """Refuse a breakdown that does not tile what it breaks down, to the picosecond."""
    if parts is None:
        return
    total = sum(parts.values())
    if total != whole_ps or any(part < 0 for part in parts.values()):
        listed = ", ".join(f"{Kind(kind).name}={part}" for kind, part in parts.items() if part)
        raise InvariantError(f"the attribution of {what} sums to {total} ps, not to {whole_ps} ps: {listed}")


def thrash(data: RunData) -> dict[str, Any]:
    """What moved between memories over what kernels asked for: more than 1 says that pages came for nothing."""
    moved = sum(total.bytes for total in data.migrations)
    useful = sum(step.bytes for step in data.steps if step.kind == "launch")
    triggers = data.tables.get("migrations", {}).get("trigger", ())
    return {
        "moved_bytes": moved,
        "useful_bytes": useful,
        "ratio": moved / useful if useful else None,
        "evictions": sum(trigger == "TTM_EVICTION" for trigger in triggers),
    }


def _step(step: StepData) -> dict[str, Any]:
    duration_ps = step.end_ps - step.start_ps
    return {
        "path": step.path.removeprefix("steps."),
        "name": step.name,
        "process": step.process,
        "thread": step.thread,
        "kind": step.kind,
        "start_ns": step.start_ps / 1000,
        "end_ns": step.end_ps / 1000,
        "duration_ns": duration_ps / 1000,
        "bytes": step.bytes,
        "bandwidth_gb_per_s": bandwidth(step.bytes, duration_ps),
        "attribution": fractions(step.attribution),
    }


def _use(use: ResourceUse, makespan_ps: int) -> dict[str, Any]:
    busy_ps = sum(int(part) for part in use.busy_ps_per_bin)
    return {"bytes": use.bytes, "busy_fraction": busy_ps / makespan_ps if makespan_ps else None}


def _counters(parts: Iterable[FaultCounts]) -> dict[str, int]:
    """Sums of the counters that any part has; a counter that nobody keeps stays absent, `raised` is the sum
    of all.
    """
    found: dict[str, int] = {}
    for part in parts:
        for name, count in part.counts.items():
            found[name] = found.get(name, 0) + int(count)
    unknown = set(found) - set(FAULT_COUNTERS)
    if unknown:
        raise InvariantError(f"unknown fault counters: {', '.join(sorted(unknown))}")
    ordered = {name: found[name] for name in FAULT_COUNTERS if name in found}
    return {"raised": sum(ordered.values())} | ordered


def _peak(raised: Any, started: Any, rows: NDArray[Any] | slice) -> int:
    """The most served faults that waited for a worker at the same time."""
    import numpy as np

    begins = np.sort(np.asarray(raised, dtype=np.int64)[rows])
    ends = np.sort(np.asarray(started, dtype=np.int64)[rows])
    if not begins.size:
        return 0
    left = np.searchsorted(ends, begins, side="right")  # who has been taken up by then
    return int((np.arange(1, begins.size + 1) - left).max())


def _vectors(parts: Sequence[FaultCounts], counters: Mapping[str, int]) -> dict[str, Any]:
    """What reached the driver, the share of it that only repeated another fault, and the CPU time of interrupts."""
    vectors = sum(part.vectors for part in parts)
    useful = min(vectors, counters.get("serviced", 0) + counters.get("failed", 0))
    return {
        "count": vectors,
        "duplicate_fraction": (vectors - useful) / vectors if vectors else None,
        "interrupt_cpu_ns": sum(part.interrupt_ps for part in parts) / 1000,
    }


def _faults(data: RunData) -> dict[str, Any]:
    import numpy as np

    table = data.tables.get("faults")
    latencies = None if table is None else np.asarray(table["latency_ps"], dtype=np.int64)

    def block(parts: Iterable[FaultCounts], rows: NDArray[Any] | slice) -> dict[str, Any]:
        parts = list(parts)
        counters = _counters(parts)
        return counters | {
            "vectors": _vectors(parts, counters)
            | {"queue_peak": None if table is None else _peak(table["raised_ps"], table["started_ps"], rows)},
            "latency_ns": None if latencies is None else latency_block(latencies[rows]),
        }

    def split(key: str) -> dict[str, Any]:
        names = list(dict.fromkeys(getattr(part, key) for part in data.faults))
        column = np.asarray([] if table is None else table[key], dtype=object)
        return {
            name: block((part for part in data.faults if getattr(part, key) == name), column == name)
            for name in names
        }

    return block(data.faults, slice(None)) | {"per_gpu": split("gpu"), "per_process": split("process")}
