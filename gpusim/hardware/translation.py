"""UTCL1 and UTCL2: LRU translation caches whose hits and misses are arithmetic, not events.

Models reach and the added latency of a miss. Left out: ways and banks, hit-on-miss, the separate 4 KiB and large-page
arrays of UTCL2, page-walk caches (a walk has one cost). An entry covers a 2 MiB fragment; a step looks up the first
page of each operand. Steps in host memory are not looked up: the link hides it. Source of latencies: `LAT001`-`LAT053`
as solved in the profile.
"""

from __future__ import annotations

from gpusim.hardware.gpu_spec import TlbSpec
from gpusim.hardware.gpuvm import Vm

FRAGMENT_PAGES = 512  # a PDE0 used as PTE: 2 MiB of contiguous VRAM


class Tlb:
    """One LRU translation cache."""

    __slots__ = ("_entries", "_held", "hits", "misses")

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._held: dict[int, None] = {}
        self.hits = 0
        self.misses = 0

    def hit(self, key: int) -> bool:
        """Look `key` up and make it the youngest entry."""
        held = self._held
        if key in held:
            del held[key]
            held[key] = None
            self.hits += 1
            return True
        if len(held) >= self._entries:
            del held[next(iter(held))]
        held[key] = None
        self.misses += 1
        return False

    def clear(self) -> None:
        self._held.clear()


class Translation:
    """The translation caches of one GPU: a UTCL1 per compute unit, a UTCL2 per XCD."""

    def __init__(self, utcl1: TlbSpec, utcl2: TlbSpec, *, compute_units: int, xcds: int) -> None:
        self._miss1 = utcl1.miss
        self._walk = utcl2.miss
        self._reach1 = utcl1.entries
        self._reach2 = utcl2.entries
        self._utcl1 = [Tlb(utcl1.entries) for _ in range(compute_units)]
        self._utcl2 = [Tlb(utcl2.entries) for _ in range(xcds)]

    def added_ps(self, unit: int, vm: Vm, fragment: int) -> int:
        """Latency that translating one access adds on compute unit `unit`; `fragment` names the entry."""
        key = (fragment << 16) | vm.vmid  # there may be more address spaces than 16 VMIDs
        if self._utcl1[unit].hit(key):
            return 0
        # units are numbered as workgroups are dealt out: to one die after another
        if self._utcl2[unit % len(self._utcl2)].hit(key):
            return self._miss1
        return self._miss1 + self._walk

    def mean_random_ps(self, fragments: int) -> float:
        """Mean added latency of one access to `fragments` equally likely entries, LRU in the steady state."""
        miss1 = max(0.0, 1.0 - self._reach1 / fragments)
        miss2 = max(0.0, 1.0 - self._reach2 / fragments)
        return miss1 * self._miss1 + miss2 * self._walk

    def stream_ps(self, steps_per_fragment: int) -> int:
        """Mean added latency of one model step of a stream in one operand.

        Steps are handed out in order, so that those of one fragment run on as many compute units, as long as there
        are enough: each is its unit's first there, and the first of each XCD also misses in UTCL2.
        """
        firsts = min(steps_per_fragment, len(self._utcl2))
        return self._miss1 + self._walk * firsts // steps_per_fragment

    def flush(self) -> None:
        """A heavyweight flush: nothing is held any more."""
        for tlb in self._utcl1:
            tlb.clear()
        for tlb in self._utcl2:
            tlb.clear()

    def counts(self) -> dict[str, int]:
        """Hits and misses of stepwise accesses, by level."""
        return {
            "utcl1_hits": sum(tlb.hits for tlb in self._utcl1),
            "utcl1_misses": sum(tlb.misses for tlb in self._utcl1),
            "utcl2_hits": sum(tlb.hits for tlb in self._utcl2),
            "utcl2_misses": sum(tlb.misses for tlb in self._utcl2),
        }
