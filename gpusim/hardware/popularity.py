"""How often items are used, and what share of the accesses an LRU cache of them serves.

Items are ranked; rank r is used in proportion to r ** -exponent (0: all alike). The continuous form of that law stands
for the sums, so that drawing and adding up need no table. LRU in the steady state keeps what has been used within a
characteristic time (Che's approximation), which is solved by bisection.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log

import numpy as np
import numpy.typing as npt

_BINS = 256
_SCATTER = 0x9E3779B97F4A7C15  # odd: spreads ranks over positions (Fibonacci hashing)


class Popularity:
    """`items` items. `scattered`: where an item lies has nothing to do with its rank; else the popular come first."""

    def __init__(self, items: int, exponent: float, *, scattered: bool = False) -> None:
        self.items = items
        self.exponent = exponent
        self.scattered = scattered

    def below(self, rank: float) -> float:
        """Share of the accesses that go to ranks below `rank`; ranks begin at 0."""
        one_less = 1.0 - self.exponent
        if abs(one_less) < 1e-9:
            return log(1.0 + rank) / log(1.0 + self.items)
        return (_power(rank, one_less) - 1.0) / (_power(self.items, one_less) - 1.0)

    def draw(self, generator: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
        """Positions of items: `count` independent accesses."""
        part = generator.random(count)
        one_less = 1.0 - self.exponent
        if abs(one_less) < 1e-9:
            rank = np.exp(part * log(1.0 + self.items)) - 1.0
        else:
            rank = (part * (_power(self.items, one_less) - 1.0) + 1.0) ** (1.0 / one_less) - 1.0
        position = np.minimum(rank.astype(np.int64), self.items - 1)
        if self.scattered:
            spread = (position.astype(np.uint64) * np.uint64(_SCATTER)) >> np.uint64(11)
            position = (spread.astype(np.float64) * (self.items / 2.0**53)).astype(np.int64)
        return position

    def lru_share(self, entries: int, items_per_entry: int) -> float:
        """Share of accesses that an LRU cache serves whose `entries` each hold so many neighbouring items."""
        return _lru_share(self.items, self.exponent, self.scattered, entries, items_per_entry)


def _power(rank: float, exponent: float) -> float:
    return float((1.0 + rank) ** exponent)


@lru_cache(maxsize=512)
def _lru_share(items: int, exponent: float, scattered: bool, entries: int, group: int) -> float:
    groups = -(-items // group)
    if entries >= groups:
        return 1.0
    if exponent == 0:
        return entries / groups
    law = Popularity(items, exponent)
    edges = np.unique(np.concatenate(([0.0], np.floor(np.geomspace(1, groups, _BINS)))))
    counts = np.diff(edges)
    if scattered:  # each group has one popular item, and others of any rank
        mass = np.diff([law.below(edge) for edge in edges])
        mass += counts * (1.0 - mass.sum()) / groups
    else:
        mass = np.diff([law.below(min(edge * group, items)) for edge in edges])
    each = mass / counts
    low, high = 0.0, 60.0 + log(groups)  # of the logarithm of the characteristic time
    for _ in range(60):
        middle = (low + high) / 2
        kept = float((counts * -np.expm1(-each * exp(middle))).sum())
        low, high = (low, middle) if kept > entries else (middle, high)
    return float((mass * -np.expm1(-each * exp(low))).sum())
