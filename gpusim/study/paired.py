"""Differences of runs with the same seeds: their mean, and how far chance may have moved it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

#: 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom; 1.96 from there on
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paired:
    """B less A over pairs of runs. `half_width` is that of the 95 % interval of the mean; None with one pair."""

    mean: float
    half_width: float | None
    pairs: int

    @property
    def significant(self) -> bool | None:
        """More than chance? None with one pair."""
        return None if self.half_width is None else abs(self.mean) > self.half_width


def paired(a: Sequence[float], b: Sequence[float]) -> Paired:
    """`a[i]` and `b[i]` share a seed, so that the chance which both share cancels out."""
    differences = [second - first for first, second in zip(a, b, strict=True)]
    return Paired(sum(differences) / len(differences), half_width(differences), len(differences))


def half_width(values: Sequence[float]) -> float | None:
    """Half of the 95 % confidence interval of the mean (Student's t); None for a single value."""
    count = len(values)
    if count < 2:
        return None
    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    quantile = _T[count - 2] if count - 2 < len(_T) else 1.96
    return quantile * sqrt(variance / count)
