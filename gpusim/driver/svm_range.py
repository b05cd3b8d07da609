"""svm_range and its list: which addresses the driver treats alike (`kfd_svm.md` 2.1).

Ranges of a process never overlap, so the interval tree that the driver keeps is here a sorted map by first page: it
answers the same questions (which range holds a page, which share a page with a part) with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sortedcontainers import SortedList

from gpusim.driver.attributes import CPU, Attributes
from gpusim.engine.stages import Do, Stages, Transfer
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind

if TYPE_CHECKING:
    from gpusim.driver.vram import SvmBo

__all__ = ["CPU", "SvmRange", "SvmRangeList", "exclusively", "largest_range_pages", "pieces"]


class SvmRange:
    """Pages first..last of a process. `bo_on` is the GPU that holds its buffer object `bo`, `vram_pages` those in use.

    `busy` is its migrate mutex: whoever moves or maps its pages holds it until the PTEs are valid.
    `sequence` counts invalidations: a restore that finds another one at its end than at its start was raced.
    """

    __slots__ = (
        "_waiting",
        "attributes",
        "bo",
        "bo_on",
        "busy",
        "deferred",
        "first",
        "granule_pages",
        "last",
        "mapped",
        "registered",
        "sequence",
        "validated_by",
        "validated_ps",
        "vram_pages",
    )

    def __init__(self, first: int, last: int, *, attributes: Attributes, registered: bool) -> None:
        self.first = first
        self.last = last
        self.attributes = attributes
        self.granule_pages = attributes.granule_pages
        self.registered = registered
        self.bo_on = CPU
        self.bo: SvmBo | None = None
        self.busy = False
        self._waiting: list[Callable[[], None]] | None = None
        self.vram_pages = 0
        self.mapped = False
        self.validated_ps: int | None = None
        self.validated_by = 0  # the span at whose end that was
        self.sequence = 0
        self.deferred = False

    @property
    def pages(self) -> int:
        return self.last - self.first + 1

    @property
    def location(self) -> int:
        """actual_loc: the GPU that may hold pages of it, or CPU."""
        return self.bo_on if self.vram_pages else CPU

    def set_attributes(self, attributes: Attributes) -> None:
        self.attributes = attributes
        self.granule_pages = attributes.granule_pages

    def acquire(self, granted: Callable[[], None]) -> None:
        """Take the migrate mutex: `granted` is called when it is free."""
        if not self.busy:
            self.busy = True
            granted()
        elif self._waiting is None:
            self._waiting = [granted]
        else:
            self._waiting.append(granted)

    def release(self) -> None:
        """Let the migrate mutex go, to the first who waits."""
        if self._waiting:
            self._waiting.pop(0)()
        else:
            self.busy = False

    def abandon(self) -> None:
        """Its process has died, and with it perhaps the holder of the mutex: who waits goes on."""
        waiting, self._waiting = self._waiting, None
        self.busy = False
        for granted in waiting or ():
            granted()

    def granule(self, page: int) -> tuple[int, int]:
        """The granule around a page, clipped to the range."""
        first = page - page % self.granule_pages
        last = first + self.granule_pages - 1
        return first if first > self.first else self.first, last if last < self.last else self.last


class SvmRangeList:
    """The ranges of one process by address; they never overlap.

    Faults come in bursts, and each is looked up several times: the range found last is kept, and so is the gap between
    two ranges where none was found last.
    """

    def __init__(self) -> None:
        self._firsts: SortedList[int] = SortedList()
        self._ranges: dict[int, SvmRange] = {}  # by first page
        self._found: SvmRange | None = None
        self._gap_first = 0  # no range has a page of these
        self._gap_last = -1
        self._top = -1  # nor of those behind this one

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[SvmRange]:
        return map(self._ranges.__getitem__, self._firsts)

    def find(self, page: int) -> SvmRange | None:
        """The range that holds a page."""
        found = self._found
        if found is not None and found.first <= page <= found.last:
            return found
        if page > self._top or self._gap_first <= page <= self._gap_last:
            return None
        firsts = self._firsts
        position = firsts.bisect_right(page)
        if position:
            found = self._ranges[firsts[position - 1]]
            if page <= found.last:
                self._found = found
                return found
            self._gap_first = found.last + 1
        else:
            self._gap_first = 0
        self._gap_last = firsts[position] - 1  # there is one: `page` is not behind the last
        return None

    def within(self, first: int, last: int) -> list[SvmRange]:
        """Ranges that share a page with first..last, by address."""
        start = self.find(first)
        found = [self._ranges[key] for key in self._firsts.irange(first, last)]
        if start is not None and start.first < first:
            found.insert(0, start)
        return found

    def gap_around(self, page: int, first: int, last: int) -> tuple[int, int]:
        """The part of first..last around `page` that no range covers; `page` is in no range."""
        if first == last:
            return first, last
        if page > self._top:
            return max(first, self._top + 1), last
        if not self._gap_first <= page <= self._gap_last:
            self.find(page)
        return max(first, self._gap_first), min(last, self._gap_last)

    def add(self, new: SvmRange) -> None:
        self._firsts.add(new.first)
        self._ranges[new.first] = self._found = new
        self._top = max(self._top, new.last)
        if new.first <= self._gap_last and new.last >= self._gap_first:
            if new.last < self._gap_last:  # the rest of the gap: faults come upwards more often than not
                self._gap_first = new.last + 1
            else:
                self._gap_last = new.first - 1

    def remove(self, old: SvmRange) -> None:
        """Raises KeyError if it is not there."""
        if self._ranges.get(old.first) is not old:
            raise KeyError(old.first)
        self._found = None
        del self._ranges[old.first]
        self._firsts.remove(old.first)
        self._gap_last = -1
        if old.last == self._top:
            self._top = self._ranges[self._firsts[-1]].last if self._ranges else -1

    def shrink(self, old: SvmRange, first: int, last: int) -> None:
        """It covers first..last of its pages from now on."""
        self.remove(old)
        old.first, old.last = first, last
        self.add(old)


def largest_range_pages(vram_bytes: list[int], divisor: int, least_pages: int, most_pages: int) -> int:
    """Pages of the largest registered range: the smallest VRAM over `divisor`, clamped, a power of two."""
    pages = min(vram // divisor // 4096 for vram in vram_bytes)
    pages = max(least_pages, min(pages, most_pages))
    return 1 << (pages.bit_length() - 1)


def pieces(first: int, last: int, most_pages: int) -> Iterator[tuple[int, int]]:
    """first..last in pieces of at most `most_pages`, cut where addresses are multiples of it."""
    while first <= last:
        end = min(last, first - first % most_pages + most_pages - 1)
        yield first, end
        first = end + 1


def exclusively(svm: SvmRange, stages: Stages) -> Stages:
    """Work through `stages` with the migrate mutex of a range held."""
    if svm.busy:
        yield Transfer(Kind.LOCK_WAIT, svm.acquire)
    else:
        svm.busy = True
    try:
        yield from stages
    except SimulatedFailure:
        svm.release()
        raise
    yield Do(svm.release)
