"""UTCL1 and UTCL2: LRU translation caches whose hits and misses are arithmetic, not events.

A UTCL1 entry covers the fragment of its page, up to `Utcl1Spec.largest`. UTCL2 has two arrays: pages that the walker
returns as large ones go to one, with an entry for each, and 4 KiB pages to the other. What misses both is walked (see
`walker`). A step looks up the first page of each operand, and each further fragment that it covers. The closed forms
are for patterns where a test shows the same count. Left out: ways and banks, hit-on-miss, and the UTCL1s of scalar
and instruction caches. Source of latencies: `LAT001`-`LAT053` as solved in the profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, fsum
from typing import Final, NamedTuple

from gpusim.hardware.access import Touch
from gpusim.hardware.gpu_spec import Utcl1Spec, Utcl2Spec, WalkerSpec
from gpusim.hardware.gpuvm import Region
from gpusim.hardware.walker import LARGE_SHIFT, Lru, Walker

FRAGMENT_PAGES = 1 << LARGE_SHIFT  # a PDE0 used as PTE: 2 MiB


_HIT: Final = (0, 0)


class Added(NamedTuple):
    """What translation adds to a model step in the mean: latency, and table reads that occupy a walker."""

    latency_ps: int
    reads: float


class Translation:
    """The translation caches of one GPU: UTCL1s in front of the compute units, UTCL2 and walkers on each XCD."""

    def __init__(
        self, utcl1: Utcl1Spec, utcl2: Utcl2Spec, walker: WalkerSpec, *, compute_units: int, xcds: int
    ) -> None:
        self._miss1 = utcl1.miss
        self._read = walker.read
        self._reach1 = utcl1.entries
        self._reach2 = utcl2.entries
        self._small2 = utcl2.small_entries
        self._largest = (utcl1.largest >> 12).bit_length() - 1
        self._large = (utcl2.large >> 12).bit_length() - 1
        self._pde0 = walker.pde0
        self._shared_by = utcl1.shared_by
        self._xcds = xcds
        self._walkers = walker.walkers * xcds
        self._used = False  # since the last flush
        self._utcl1 = [Lru(utcl1.entries) for _ in range(-(-compute_units // utcl1.shared_by))]
        self._arrays = [(Lru(utcl2.entries), Lru(utcl2.small_entries)) for _ in range(xcds)]
        self._walker = [Walker(walker) for _ in range(xcds)]

    def added_ps(self, unit: int, region: Region, page: int, now_ps: int) -> int:
        """Latency that translating one access to `page` of `region` adds on compute unit `unit`."""
        own, end = self._look_up(unit, region, page, now_ps)
        return max(own, end - now_ps)

    def _look_up(self, unit: int, region: Region, page: int, now_ps: int) -> tuple[int, int]:
        """The same as what it takes without others, and when its walk has ended (0: none)."""
        self._used = True
        shift = region.fragments[page >> LARGE_SHIFT]
        virtual = region.first_page + page
        vmid = region.vm.vmid
        reach = shift if shift < self._largest else self._largest
        # an entry is named by address, size and address space
        if self._utcl1[unit // self._shared_by].hit((virtual >> reach << 20) | reach << 16 | vmid):
            return _HIT
        # units are numbered as workgroups are dealt out: to one die after another
        die = unit % self._xcds
        large, small = self._arrays[die]
        if shift >= self._large:
            reach = min(shift, LARGE_SHIFT)
            found = large.hit((virtual >> reach << 20) | reach << 16 | vmid)
        else:
            found = small.hit((virtual << 16) | vmid)
        if found:
            return self._miss1, 0
        reads, end = self._walker[die].walk(
            virtual, vmid, large=shift >= LARGE_SHIFT, now_ps=now_ps + self._miss1
        )
        return self._miss1 + reads * self._read, end

    def step_ps(self, unit: int, touches: Sequence[Touch], now_ps: int) -> int:
        """The same for all that a step touches: each fragment that it comes to is looked up.

        They come one after another to the wavefront, but ask for walkers all from now on: what is asked for in the
        future would keep walkers from those who need them before.
        """
        own = end = 0
        for operand, first, last in touches:
            region = operand.region
            page = first
            while page <= last:
                alone, ended = self._look_up(unit, region, page, now_ps)
                own += alone
                end = max(end, ended)
                shift = min(region.fragments[page >> LARGE_SHIFT], self._largest)
                page = ((region.first_page + page >> shift) + 1 << shift) - region.first_page
        return max(own, end - now_ps)

    # -- closed forms --------------------------------------------------------------------------------------------------

    def stream(self, step_pages: float, shift: int) -> Added | None:
        """One model step of a stream in one operand whose pages have fragments of 2**shift pages.

        Steps are handed out in order, so that those of one fragment run on as many compute units, as long as there
        are enough: each is its unit's first there, and the first of each XCD also misses in UTCL2. Directory entries
        are at hand but for the first page behind each. None where a unit comes back to a fragment.
        """
        fragment = float(1 << min(shift, self._largest))
        if fragment > step_pages * len(self._utcl1) * self._shared_by:
            return None
        lookups = max(1.0, step_pages / fragment)
        # an entry that several steps need is walked once on each die that they run on
        entry = 1.0 if shift < self._large else float(1 << min(shift, LARGE_SHIFT))
        walks = lookups * min(1.0, self._xcds * step_pages / entry)
        reads = 1.0
        if shift < LARGE_SHIFT:  # and on each die the first walk below a PDE0 reads that as well
            reads += min(self._xcds, FRAGMENT_PAGES / step_pages) * step_pages / FRAGMENT_PAGES / lookups
        return Added(round(lookups * self._miss1 + walks * reads * self._read), walks * reads)

    def independent(self, fragments: dict[int, int]) -> tuple[float, float]:
        """Mean added latency and table reads of one access to equally likely pages.

        `fragments[shift]` is how many fragments of 2**shift pages there are.
        """
        pages = sum(count << shift for shift, count in fragments.items())
        if not pages:
            return 0.0, 0.0
        first: dict[
            tuple[int, bool], int
        ] = {}  # UTCL1 entries by size, and whether UTCL2 holds them as large
        large: dict[int, int] = {}
        small = 0
        for shift, count in fragments.items():
            size = min(shift, self._largest)
            is_large = shift >= self._large
            first[size, is_large] = first.get((size, is_large), 0) + (count << shift - size)
            if is_large:
                size = min(shift, LARGE_SHIFT)
                large[size] = large.get(size, 0) + (count << shift - size)
            else:
                small += count << shift
        held = _held([(size, count) for (size, _), count in first.items()], self._reach1)
        missed1 = (pages - fsum(held)) / pages
        # UTCL2 is asked for what UTCL1 does not hold
        of_small = small - fsum(part for (_, is_large), part in zip(first, held, strict=True) if not is_large)
        of_small = min(of_small, float(max(0, small - self._small2)))
        of_large = (
            pages - small - fsum(part for (_, is_large), part in zip(first, held, strict=True) if is_large)
        )
        of_large = min(of_large, pages - small - fsum(_held(list(large.items()), self._reach2)))
        missed = (of_small + of_large) / pages
        tables = small / FRAGMENT_PAGES  # PTBs below the directory entries that the walk cache must hold
        deeper = max(0.0, 1.0 - self._pde0 / tables) * of_small / pages if tables else 0.0
        reads = missed + deeper
        return missed1 * self._miss1 + reads * self._read, reads

    def skewed(self, fragments: dict[int, int], held: Callable[[int, int], float]) -> tuple[float, float]:
        """The same for pages that are not equally likely.

        `held(entries, pages)` is the share of accesses that an LRU cache serves whose entries cover so many pages each.
        Sizes of fragment are weighted by their pages, each as if all pages had it.
        """
        pages = sum(count << shift for shift, count in fragments.items())
        latency = reads = 0.0
        for shift, count in fragments.items():
            weight = (count << shift) / pages
            missed1 = 1.0 - held(self._reach1, 1 << min(shift, self._largest))
            if shift >= self._large:
                missed = 1.0 - held(self._reach2, 1 << min(shift, LARGE_SHIFT))
            else:
                missed = 1.0 - held(self._small2, 1)
            missed = min(missed, missed1)
            if shift < LARGE_SHIFT:
                missed += min(missed, 1.0 - held(self._pde0, FRAGMENT_PAGES))
            latency += weight * (missed1 * self._miss1 + missed * self._read)
            reads += weight * missed
        return latency, reads

    @property
    def reads_per_ps(self) -> float:
        """Table reads of all walkers together when none is idle."""
        return self._walkers / self._read

    def flush(self) -> None:
        """A heavyweight flush: nothing is held any more."""
        if not self._used:
            return
        self._used = False
        for tlb in self._utcl1:
            tlb.clear()
        for large, small in self._arrays:
            large.clear()
            small.clear()
        for walker in self._walker:
            walker.flush()

    def counts(self) -> dict[str, int]:
        """Hits and misses of stepwise accesses by level, walks, and the table reads of these."""
        arrays = [array for pair in self._arrays for array in pair]
        return {
            "utcl1_hits": sum(tlb.hits for tlb in self._utcl1),
            "utcl1_misses": sum(tlb.misses for tlb in self._utcl1),
            "utcl2_hits": sum(array.hits for array in arrays),
            "utcl2_misses": sum(array.misses for array in arrays),
            "walks": sum(walker.walks for walker in self._walker),
            "table_reads": sum(walker.reads for walker in self._walker),
            "walk_wait_ps": sum(walker.waited_ps for walker in self._walker),
        }


def _held(entries: list[tuple[int, int]], capacity: int) -> list[float]:
    """Pages that `capacity` LRU entries cover in the steady state, of `count` entries of 2**shift pages each.

    All pages being equally likely, an entry is used in proportion to its pages; what is used before a characteristic
    time has passed stays (Che), which is solved by bisection where sizes differ.
    """
    if sum(count for _, count in entries) <= capacity:
        return [float(count << shift) for shift, count in entries]
    if len(entries) == 1:
        return [float(capacity << entries[0][0])]
    low, high = 0.0, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        kept = fsum(count * _stays(middle, shift) for shift, count in entries)
        low, high = (low, middle) if kept > capacity else (middle, high)
    return [(count << shift) * _stays(low, shift) for shift, count in entries]


def _stays(time: float, shift: int) -> float:
    """Probability that an entry of 2**shift pages has been used within `time`."""
    return 1.0 - exp(-time * (1 << shift))
