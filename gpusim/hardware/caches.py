"""Which level serves an access: L1, L2, the Infinity Cache or HBM, as shares, and what that costs.

Hits are arithmetic: a footprint and the way it is walked give the share of accesses that each level serves, in the
steady state. A walk that comes back to each line in the same order (a ring, or passes over a buffer) hits a set of a
cache as long as the set holds its lines, and by the rule of replacement beyond; `Indexing.HASHED` lets lines fall
into sets at random, so that the number in one set is Poisson. Accesses drawn independently hit with the popularity of
what is held. Left out: the lines of other kernels in the same cache, and misses of the first walk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, lgamma, log, sqrt

import numpy as np

from gpusim.hardware.gpu_spec import CacheSpec, GpuSpec, Indexing, Replacement

_ROUNDS, _WARM = 24, 8  # of the walk through one set
_NOTHING = 1e-6  # picoseconds of latency
_SPREAD = 8.0  # standard deviations of the lines in a set that are summed


@dataclass(frozen=True, slots=True)
class Served:
    """Shares of accesses by the level that serves them, nearest first; the last is HBM's."""

    shares: tuple[float, ...]
    latencies_ps: tuple[int, ...]
    bandwidths: tuple[float, ...]  # bytes per second
    loaded: float = 1.0

    @property
    def hbm(self) -> float:
        """The share that HBM serves."""
        return self.shares[-1]

    @property
    def latency_ps(self) -> float:
        """Mean load to use on an idle GPU."""
        return sum(share * latency for share, latency in zip(self.shares, self.latencies_ps, strict=True))

    @property
    def cache_limit(self) -> float:
        """Bytes per second of all accesses together at which some cache is full; HBM is limited elsewhere."""
        caches = zip(self.shares[:-1], self.bandwidths[:-1], strict=True)
        return min((width / share for share, width in caches if share > _NOTHING), default=float("inf"))

    @staticmethod
    def mixed(parts: Sequence[tuple[float, Served]]) -> Served:
        """Accesses of several sorts, each with its bytes."""
        total = sum(weight for weight, _ in parts)
        first = parts[0][1]
        shares = [
            sum(weight * served.shares[level] for weight, served in parts) / total
            for level in range(len(first.shares))
        ]
        return replace(first, shares=tuple(shares))

    def rate(self, in_flight: float, waves: int) -> float:
        """Bytes per second of one of `waves` wavefronts that each keep `in_flight` bytes outstanding.

        The latency of HBM grows linearly with its use, up to `loaded` times; what waves have in flight is rate times
        latency (Little), which makes the rate the root of a quadratic.
        """
        free = waves * in_flight * 1e12
        idle = self.latency_ps
        growth = (self.loaded - 1.0) * self.hbm * self.latencies_ps[-1]
        if growth > _NOTHING:
            full = self.bandwidths[-1] / self.hbm  # rate at which HBM is full
            growth /= full  # picoseconds for each byte per second
            most = 2.0 * free / (idle + sqrt(idle * idle + 4.0 * growth * free))
            most = max(most, free / (idle + growth * full)) if most > full else most
        else:
            most = free / idle
        return min(most, self.cache_limit) / waves


class Caches:
    """The levels in front of the HBM of one GPU. `reach` says how much of a level one walker sees."""

    def __init__(self, spec: GpuSpec) -> None:
        self._levels: list[CacheSpec] = [
            level for level in (spec.l1, spec.l2, spec.infinity_cache) if level is not None
        ]
        self._l1 = spec.l1
        self._latencies = (*(level.latency for level in self._levels), spec.hbm.latency)
        self._bandwidths = (*(level.bandwidth for level in self._levels), spec.hbm.bandwidth)
        self._loaded = spec.hbm.loaded

    def all_miss(self) -> Served:
        """Every access goes to HBM: data that nobody has touched lately."""
        return self._served(lambda level: 0.0)

    def ring(self, footprint_bytes: int) -> Served:
        """One wavefront walks `footprint_bytes` in the same order again and again: one instance of each level."""
        return self._served(lambda level: ring_share(footprint_bytes / level.size, level))

    def passes(self, footprint_bytes: int, passes: int) -> Served:
        """All compute units together walk `footprint_bytes` `passes` times; the first walk misses.

        Each line belongs to one instance of a level. L1 has no share: which unit comes back is not fixed.
        """
        again = (passes - 1) / passes
        if again == 0:
            return self.all_miss()

        def share(level: CacheSpec) -> float:
            if level is self._l1:
                return 0.0
            return again * ring_share(footprint_bytes / (level.size * level.instances), level)

        return self._served(share)

    def independent(self, held_share: Callable[[int], float]) -> Served:
        """All units draw lines independently; a cache of so many bytes serves `held_share(bytes)` of the accesses.

        L1 and L2 are instances that each see all lines, the Infinity Cache is one.
        """
        return self._served(lambda level: held_share(level.size))

    def _served(self, hit: Callable[[CacheSpec], float]) -> Served:
        shares: list[float] = []
        left = 1.0
        for level in self._levels:
            share = hit(level)  # of all accesses: what a nearer level holds, this one would serve as well
            served = max(0.0, min(left, share - (1.0 - left)))
            shares.append(served)
            left -= served
        return Served((*shares, left), self._latencies, self._bandwidths, self._loaded)


def uniform_share(footprint_bytes: int) -> Callable[[int], float]:
    """Independent accesses, all lines equally likely."""
    return lambda size: min(1.0, size / footprint_bytes)


def ring_share(load: float, cache: CacheSpec) -> float:
    """Share of hits of a ring that is `load` times as large as the cache."""
    return _ring_share(load, cache.ways, cache.replacement, cache.indexing)


@lru_cache(maxsize=256)
def _ring_share(load: float, ways: int, replacement: Replacement, indexing: Indexing) -> float:
    mean = load * ways
    if indexing is Indexing.EVEN:
        low = int(mean)  # some sets have one line more than others
        more = mean - low
        if low == 0:
            return 1.0
        lines = (1 - more) * low * set_share(low, ways, replacement)
        return (lines + more * (low + 1) * set_share(low + 1, ways, replacement)) / mean
    width = _SPREAD * sqrt(mean) + _SPREAD
    least, most = max(1, int(mean - width)), int(mean + width)
    hits = sum(
        count * exp(count * log(mean) - mean - lgamma(count + 1)) * set_share(count, ways, replacement)
        for count in range(least, most + 1)
    )
    return min(1.0, hits / mean)


@lru_cache(maxsize=1024)
def set_share(lines: int, ways: int, replacement: Replacement) -> float:
    """Share of hits of a walk round and round through `lines` lines of one set of `ways`."""
    if lines <= ways:
        return 1.0
    if replacement is Replacement.LRU:
        return 0.0
    if replacement is Replacement.RANDOM:
        # a line stays through the misses of one round with probability (1 - 1/ways) each
        share = 0.5
        for _ in range(200):
            share = (1.0 - 1.0 / ways) ** ((1.0 - share) * lines)
        return share
    if lines > 4 * ways:
        return 0.0
    return _walk(lines, ways)


def _walk(lines: int, ways: int) -> float:
    """The same for `not_recent`, walked step by step: ways are marked as used; when all are, only the last stays so."""
    draw = np.random.default_rng(ways).random(_ROUNDS * lines).tolist()
    holds: list[int] = [-1] * ways
    way_of: dict[int, int] = {}
    marked: set[int] = set()
    hits = 0
    for step in range(_ROUNDS * lines):
        line = step % lines
        way = way_of.get(line, -1)
        if way >= 0:
            hits += step >= _WARM * lines
        else:
            free = [other for other in range(ways) if other not in marked]
            way = free[int(draw[step] * len(free))]
            way_of.pop(holds[way], None)
            holds[way] = line
            way_of[line] = way
        marked.add(way)
        if len(marked) == ways:
            marked = {way}
    return hits / ((_ROUNDS - _WARM) * lines)
