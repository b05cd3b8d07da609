"""The `io` block of summary.json: requests by path and direction, why they went there, and what limited them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpusim.result.numbers import bandwidth, fractions, latency_block
from gpusim.rundata import IoTotal, RunData

if TYPE_CHECKING:
    from numpy.typing import NDArray

IO_PATHS = ("fastpath", "fallback")
OTHER_PATHS = ("posix", "rejected")  # there only when a program uses it
#: a resource that is in use for less than this share of the time does not hold requests back
FULL = 2 / 3
IO_DIRECTIONS = ("read", "write")


def io_summary(data: RunData) -> dict[str, Any]:
    """{} when the run does not model file I/O."""
    rows = data.tables.get("io")
    if rows is None:
        return {}
    totals = {(total.path, total.direction): total for total in data.io}
    used = [path for path in OTHER_PATHS if any(path == total.path for total in data.io)]
    made: dict[str, Any] = {
        path: {way: _block(totals.get((path, way)), _rows_of(rows, path, way)) for way in IO_DIRECTIONS}
        for path in (*IO_PATHS, *used)
    }
    if data.io_statistics:
        made["statistics"] = data.io_statistics
    return made


def _rows_of(rows: Mapping[str, Any], path: str, direction: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Latencies in picoseconds, and how many requests each stands for."""
    import numpy as np

    mask = (np.asarray(rows["path"], dtype=object) == path) & (
        np.asarray(rows["direction"], dtype=object) == direction
    )
    starts, ends = (np.asarray(rows[name], dtype=np.int64)[mask] for name in ("start_ps", "end_ps"))
    counts = np.asarray(rows["count"], dtype=np.int64)[mask]
    return ends - starts, counts


def _block(total: IoTotal | None, rows: tuple[NDArray[Any], NDArray[Any]]) -> dict[str, Any]:
    if total is None:
        return {
            "requests": 0,
            "bytes": 0,
            "bandwidth_gb_per_s": None,
            "latency_ns": latency_block([]),
            "first_call_ns": None,
            "later_calls_ns": None,
            "cpu_ns": None,
            "time": None,
            "limits": {},
            "limited_by": None,
            "in_flight": None,
            "reasons": {},
            "errors": {},
        }
    later = total.requests - 1
    limits = dict(total.limits)
    span = total.last_end_ps - total.first_start_ps
    return {
        "requests": total.requests,
        "bytes": total.bytes,
        # from the first request to the last answer: requests overlap, their latencies must not be added up
        "bandwidth_gb_per_s": bandwidth(total.bytes, span),
        "latency_ns": _latencies(total, *rows),
        "first_call_ns": total.first_latency_ps / 1000 if total.requests else None,
        "later_calls_ns": (total.latency_ps - total.first_latency_ps) / later / 1000 if later > 0 else None,
        "cpu_ns": None if total.cpu_ps is None else total.cpu_ps / 1000,
        "time": fractions(total.kinds) if total.kinds is None or any(total.kinds.values()) else {},
        "limits": limits,
        "limited_by": _limit(limits) if total.requests else None,
        "in_flight": total.latency_ps / span if span > 0 else None,  # by Little's law
        "reasons": dict(total.reasons),
        "errors": dict(total.errors),
    }


def _limit(limits: Mapping[str, float]) -> str:
    """What is full, and else those who ask: they have too few requests in flight."""
    fullest = max(limits, key=limits.__getitem__, default="submitter")
    return fullest if limits.get(fullest, 0.0) >= FULL else "submitter"


def _latencies(total: IoTotal, latencies: NDArray[Any], counts: NDArray[Any]) -> dict[str, Any]:
    """Mean and maximum from exact sums; percentiles by nearest rank over rows that may stand for many."""
    import numpy as np

    if not total.requests:
        return latency_block([])
    order = np.argsort(latencies, kind="stable")
    reached = np.cumsum(counts[order])

    def rank(percent: int) -> float:
        wanted = -(-percent * int(reached[-1]) // 100)
        return int(latencies[order][np.searchsorted(reached, wanted)]) / 1000

    return {
        "count": total.requests,
        "mean": total.latency_ps / total.requests / 1000,
        "p50": rank(50),
        "p95": rank(95),
        "p99": rank(99),
        "max": total.longest_ps / 1000,
    }
