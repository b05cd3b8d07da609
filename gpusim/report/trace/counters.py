"""Counters of a trace: faults so far, migration throughput, and what each resource carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.report.trace.kfd import PAGE_FAULT, PAGE_MIGRATE, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusim.report.trace.perfetto import Trace
    from gpusim.result import Result

MOST_POINTS = 4096  # of one counter; beyond that, values are means over equal bins
_RATES = ("link", "memory", "engine")


def counters(trace: Trace, part_of: Callable[[str], int], result: Result, records: Sequence[Record]) -> None:
    """All counters; those of unified memory are named by KFD node, the one host first."""
    gpus = sorted({record.gpu for record in records if record.gpu}, key=lambda gpu: int(gpu[4:-1]))
    for gpu in gpus:
        own = [record for record in records if record.gpu == gpu]
        device = f"[Device {1 + int(gpu[4:-1])}]"
        served = [record.end_ns for record in own if record.category == PAGE_FAULT]
        if served:
            name = f"Unified Memory Page Faults {device}"
            trace.counter(part_of(gpu), name, "faults", faults_so_far(served))
        moves = [(r.start_ns, r.end_ns, r.size_bytes) for r in own if r.category == PAGE_MIGRATE]
        if moves:
            name = f"Unified Memory Migration Throughput {device}"
            trace.counter(part_of(gpu), name, "GB/s", throughput(moves))
    table = result.tables["links"]
    for resource, rows in table.groupby("name", observed=True):
        if not rows["busy_ns"].any():
            continue
        rate = rows["group"].iloc[0] in _RATES and rows["bytes"].any()
        values = rows["bandwidth_gb_per_s"] if rate else 100 * rows["busy_fraction"]
        points = _changes(rows["start_ns"].tolist(), values.tolist())
        points.append((float(rows["end_ns"].iloc[-1]), 0.0))
        word = "" if rate else " busy"
        trace.counter(part_of(str(resource)), f"{resource}{word}", "GB/s" if rate else "%", points)


def faults_so_far(served_ns: Sequence[float]) -> list[tuple[float, float]]:
    """How many faults were served, from 0; exact at each point."""
    times = sorted(served_ns)
    stride = -(-len(times) // MOST_POINTS)
    counts = [*range(stride, len(times), stride), len(times)]
    return [(0.0, 0.0), *((times[count - 1], float(count)) for count in counts)]


def throughput(moves: Sequence[tuple[float, float, int]]) -> list[tuple[float, float]]:
    """GB/s of migrations (start, end, bytes), each spread evenly over its time: the area is what was moved."""
    import numpy as np

    edges = np.unique(np.asarray([(start, max(end, start + 1)) for start, end, _ in moves]))
    if len(edges) > MOST_POINTS:
        edges = np.linspace(edges[0], edges[-1], MOST_POINTS)
    moved = _moved_by(edges, moves)
    rates = np.diff(moved) / np.diff(edges)
    points = _changes(edges[:-1].tolist(), rates.tolist())
    return [*points, (float(edges[-1]), 0.0)]


def _moved_by(edges: NDArray[Any], moves: Sequence[tuple[float, float, int]]) -> NDArray[Any]:
    """Bytes moved up to each edge: the integral of a rate that changes where a migration starts or ends."""
    import numpy as np

    starts = np.asarray([start for start, _, _ in moves])
    ends = np.asarray([max(end, start + 1) for start, end, _ in moves])
    rates = np.asarray([size for _, _, size in moves]) / (ends - starts)
    times = np.concatenate([starts, ends])
    changes = np.concatenate([rates, -rates])
    order = np.argsort(times, kind="stable")
    times, rate = times[order], np.cumsum(changes[order])
    area = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(times))])
    found: NDArray[Any] = np.interp(edges, times, area)
    return found


def _changes(times: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """The points at which the value is another than before."""
    kept: list[tuple[float, float]] = []
    for time_ns, value in zip(times, values, strict=True):
        if not kept or kept[-1][1] != value:
            kept.append((time_ns, value))
    return kept
