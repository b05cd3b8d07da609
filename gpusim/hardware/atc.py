"""The address translation cache of a GPU: what ATS told it of CPU page tables (`kfd_svm.md` 5.2, 5.3).

Three arrays by the size of the translation, each LRU by fill and use. What an array gives up has to be asked for again.
"""

from __future__ import annotations

from functools import partial

from gpusim.hardware.ats_spec import AtsSpec
from gpusim.hardware.gpuvm import Region

SHIFTS = (0, 3, 9)  # log2 of the pages of a 4 KiB, 32 KiB and 2 MiB translation


class Atc:
    """Holds translations (region, first page, pages). Left out: banks and ways."""

    def __init__(self, spec: AtsSpec) -> None:
        sizes = (spec.entries_4k, spec.entries_32k, spec.entries_2m)
        self._size = dict(zip(SHIFTS, sizes, strict=True))
        self._held: dict[int, dict[tuple[Region, int], None]] = {shift: {} for shift in SHIFTS}
        self.fills = dict.fromkeys(SHIFTS, 0)
        self._watched: set[Region] = set()
        self.evictions = 0
        self.invalidations = 0

    def fill(self, region: Region, page: int, shift: int) -> tuple[int, int]:
        """Keep the translation of the aligned 2**shift pages around `page` of a region: the pages that it covers.

        The oldest of its array may have to go.
        """
        if region not in self._watched:
            self._watched.add(region)
            region.on_invalidate.append(partial(self.invalidate, region))
        held = self._held[shift]
        key = (region, region.first_page + page >> shift)
        held.pop(key, None)
        held[key] = None
        self.fills[shift] += 1
        if len(held) > self._size[shift]:
            oldest = next(iter(held))
            del held[oldest]
            self.evictions += 1
            oldest[0].unmap(*_pages(oldest, shift))
        return _pages(key, shift)

    def invalidate(self, region: Region, first: int, last: int) -> None:
        """Pages first..last are unmapped: forget all translations that share one."""
        for shift, held in self._held.items():
            start, end = region.first_page + first >> shift, region.first_page + last >> shift
            if end - start > len(held):
                keys = [key for key in held if key[0] is region and start <= key[1] <= end]
            else:
                keys = [(region, block) for block in range(start, end + 1) if (region, block) in held]
            for key in keys:
                del held[key]
            self.invalidations += len(keys)
            if shift:  # a large one goes as a whole
                for key in keys:
                    region.unmap(*_pages(key, shift))

    def held(self, shift: int) -> int:
        """Translations in one array."""
        return len(self._held[shift])


def _pages(key: tuple[Region, int], shift: int) -> tuple[int, int]:
    """First and last page of a translation, as indices into its region."""
    region, block = key
    first = (block << shift) - region.first_page
    return max(first, 0), min(first + (1 << shift), region.pages) - 1
