"""svm_range and its list: which addresses the driver treats alike (`kfd_svm.md` 2.1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

CPU = -1  # a location: host memory; GPUs are 0, 1, ...


class SvmRange:
    """Pages first..last of a process. `bo_on` is the GPU that holds its buffer object, `vram_pages` those in use."""

    __slots__ = (
        "bo_on",
        "first",
        "granule_pages",
        "last",
        "mapped",
        "registered",
        "validated_ps",
        "vram_pages",
    )

    def __init__(self, first: int, last: int, *, granule_pages: int, registered: bool) -> None:
        self.first = first
        self.last = last
        self.granule_pages = granule_pages
        self.registered = registered
        self.bo_on = CPU
        self.vram_pages = 0
        self.mapped = False
        self.validated_ps: int | None = None

    @property
    def pages(self) -> int:
        return self.last - self.first + 1

    @property
    def location(self) -> int:
        """actual_loc: the GPU that may hold pages of it, or CPU."""
        return self.bo_on if self.vram_pages else CPU

    def granule(self, page: int) -> tuple[int, int]:
        """The granule around a page, clipped to the range."""
        first = page - page % self.granule_pages
        return max(first, self.first), min(first + self.granule_pages - 1, self.last)


class SvmRangeList:
    """The ranges of one process by address; they never overlap."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ranges: list[SvmRange] = []

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[SvmRange]:
        return iter(self._ranges)

    def find(self, page: int) -> SvmRange | None:
        """The range that holds a page."""
        position = bisect_right(self._firsts, page)
        if not position:
            return None
        found = self._ranges[position - 1]
        return found if page <= found.last else None

    def within(self, first: int, last: int) -> list[SvmRange]:
        """Ranges that share a page with first..last, by address."""
        start = bisect_right(self._firsts, first)
        if start and self._ranges[start - 1].last >= first:
            start -= 1
        return self._ranges[start : bisect_right(self._firsts, last)]

    def gap_around(self, page: int, first: int, last: int) -> tuple[int, int]:
        """The part of first..last around `page` that no range covers; `page` is in no range."""
        position = bisect_right(self._firsts, page)
        if position > 0:
            first = max(first, self._ranges[position - 1].last + 1)
        if position < len(self._ranges):
            last = min(last, self._firsts[position] - 1)
        return first, last

    def add(self, new: SvmRange) -> None:
        position = bisect_right(self._firsts, new.first)
        self._firsts.insert(position, new.first)
        self._ranges.insert(position, new)

    def remove(self, old: SvmRange) -> None:
        """Raises KeyError if it is not there."""
        position = bisect_right(self._firsts, old.first) - 1
        if position < 0 or self._ranges[position] is not old:
            raise KeyError(old.first)
        del self._firsts[position]
        del self._ranges[position]


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
