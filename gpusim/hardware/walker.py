"""The page-table walkers of one UTCL2: four-level tables, a cache for each directory level, few walks at a time.

GPUVM since gfx9 (`kfd_svm.md` 5.1): PDB2, PDB1, PDB0 and PTB, nine index bits each. A PTE translates 4 KiB; a PDE0
that is used as a PTE translates 2 MiB at once, one table read less. A walk starts below the lowest directory entry
that a walk cache holds and reads one entry a level from there on. Left out: that eight entries come with one 64-byte
read, and that a read may hit L2: `WalkerSpec.read` is what one read takes in the mean.
"""

from __future__ import annotations

from heapq import heapreplace
from typing import Final

from gpusim.hardware.gpu_spec import WalkerSpec

LEVEL_BITS: Final = 9  # index bits of a table
LARGE_SHIFT: Final = 9  # log2 of the pages that a PDE0 used as PTE translates


class Lru:
    """Keys held, the least recently used goes first."""

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


class Walker:
    """Walks for one UTCL2. Times in picoseconds."""

    __slots__ = ("_caches", "_free", "_read", "reads", "waited_ps", "walks")

    def __init__(self, spec: WalkerSpec) -> None:
        self._read = spec.read
        self._caches = (Lru(spec.pde0), Lru(spec.pde1), Lru(spec.pde2))
        self._free = [0] * spec.walkers  # when each walker has ended what it does; a heap
        self.walks = 0
        self.reads = 0
        self.waited_ps = 0

    def walk(self, page: int, vmid: int, *, large: bool, now_ps: int) -> tuple[int, int]:
        """Translate virtual page `page` from `now_ps` on; returns the table reads, and when the last one ends.

        `large`: the leaf is a PDE0, and no PTB is read.
        """
        reads = self.table_reads(page, vmid, large=large)
        free = self._free
        begin = free[0] if free[0] > now_ps else now_ps
        end = begin + reads * self._read
        heapreplace(free, end)
        self.walks += 1
        self.reads += reads
        self.waited_ps += begin - now_ps
        return reads, end

    def table_reads(self, page: int, vmid: int, *, large: bool) -> int:
        """Reads of a walk: the leaf, and each directory entry down from the lowest that is cached."""
        reads = 1
        for level in range(1 if large else 0, 3):
            key = (page >> LEVEL_BITS * (level + 1) << 16) | vmid
            if self._caches[level].hit(key):
                break
            reads += 1
        return reads

    def flush(self) -> None:
        """An invalidation takes directory entries along: pages may have become part of a larger one."""
        for cache in self._caches:
            cache.clear()
