"""Numbers of a summary that several blocks have: rates, shares and latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fractions(parts: Mapping[Kind, int] | None) -> dict[str, float] | None:
    """Kind name -> fraction of the whole, in the order of kinds, zero kinds left out; None stays None."""
    if parts is None:
        return None
    whole = sum(parts.values())
    return {Kind(kind).name.lower(): parts[kind] / whole for kind in sorted(parts) if parts[kind]}


def bandwidth(size_bytes: int, duration_ps: int) -> float | None:
    """GB/s (1e9 bytes per second), None where nothing moved or no time passed."""
    return size_bytes * 1000 / duration_ps if size_bytes and duration_ps else None


def latency_block(latencies_ps: NDArray[Any] | Sequence[int]) -> dict[str, float | int | None]:
    """`{count, mean, p50, p95, p99, max}` in nanoseconds; percentiles by nearest rank, the mean from an exact
    sum.
    """
    import numpy as np

    values = np.sort(np.asarray(latencies_ps, dtype=np.int64))
    count = int(values.size)
    if count == 0:
        return {"count": 0, "mean": None, "p50": None, "p95": None, "p99": None, "max": None}
    # two halves, because a sum of many long latencies in picoseconds does not fit in 64 bits
    total = (int(np.sum(values >> 24)) << 24) + int(np.sum(values & 0xFFFFFF))

    def rank(percent: int) -> float:
        return int(values[-(-percent * count // 100) - 1]) / 1000

    return {
        "count": count,
        "mean": total / count / 1000,
        "p50": rank(50),
        "p95": rank(95),
        "p99": rank(99),
        "max": int(values[-1]) / 1000,
    }
