"""A resource over time as a picture can show it: few enough bins, none of them cut short."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_BINS = 96  # wider than what repeats at the scale of the run's bins, which would show as a comb
_FEWEST = 24
_COMB = 3  # gaps


def gathered(rows: pd.DataFrame, column: str, bins: int = _BINS) -> tuple[list[float], list[float]]:
    """Edges in nanoseconds, and per bin the sum of `column` over the bin's length: `bytes` gives GB/s.

    Neighbouring bins are put together, more of them where few would show what repeats as a comb; a last bin that the
    end of the run cut short joins the one before it.
    """
    edges, rates = _gathered(rows, column, bins)
    while bins > _FEWEST and _gaps(rates) > _COMB:
        bins //= 2
        edges, rates = _gathered(rows, column, bins)
    return edges, rates


def _gaps(rates: list[float]) -> int:
    """How often use stops and begins again, next to nothing counted as nothing."""
    least = 0.05 * max(rates)
    begun = sum(one <= least < other for one, other in pairwise(rates))
    return begun - (1 if rates[0] <= least else 0)


def _gathered(rows: pd.DataFrame, column: str, bins: int) -> tuple[list[float], list[float]]:
    edges = [*rows["start_ns"].tolist(), float(rows["end_ns"].iloc[-1])]
    values = rows[column].tolist()
    width = -(-len(values) // bins)
    starts = list(range(0, len(values), width))
    if len(starts) > 1 and edges[-1] - edges[starts[-1]] < 0.5 * (edges[starts[1]] - edges[0]):
        starts.pop()
    bounds = [*starts, len(values)]
    kept = [edges[at] for at in bounds]
    sums = [sum(values[low:high]) for low, high in pairwise(bounds)]
    return kept, [part / (end - start) for part, (start, end) in zip(sums, pairwise(kept), strict=True)]
