"""VRAM of one GPU as the driver accounts for it: pages of hipMalloc, and buffer objects of SVM ranges.

KFD counts hipMalloc against a limit and refuses what exceeds it (`amdgpu_amdkfd_reserve_mem_limit`). SVM ranges are
checked against the same limit, but hold none of it: their buffer objects can be evicted, oldest first. Left out:
fragmentation, what the firmware and page tables take, and graphics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpusim.spec import PAGE_BYTES

if TYPE_CHECKING:
    from gpusim.driver.kfd_process import KfdProcess
    from gpusim.driver.svm_range import SvmRange


_STRUCT_PAGE = 64  # bytes of RAM for each page of VRAM that SVM can migrate to


def zone_device_bytes(vram_bytes: list[int], ram_bytes: int) -> int:
    """RAM that the struct pages of ZONE_DEVICE take, 1.6 % of all VRAM (`kfd_svm.md` 3.4).

    0 where they would take more than half of the RAM: no such machine would be set up for SVM.
    """
    taken = sum(vram_bytes) // PAGE_BYTES * _STRUCT_PAGE
    return taken if 2 * taken <= ram_bytes else 0


class SvmBo:
    """The buffer object of an SVM range, as large as the range was; `ranges` are the pieces that it was cut into since.

    `evicting` says that a worker moves its pages out; those who need it or its memory wait for `gone`.
    """

    __slots__ = ("_waiting", "evicting", "pages", "process", "ranges", "used_ps")

    def __init__(self, process: KfdProcess, svm: SvmRange, now_ps: int) -> None:
        self.process = process
        self.ranges: dict[SvmRange, None] = {svm: None}
        self.pages = svm.pages
        self.evicting = False
        self.used_ps = now_ps  # when the driver or, where that is followed, a wavefront last used it
        self._waiting: list[Callable[[], None]] = []

    def when_gone(self, call: Callable[[], None]) -> None:
        """Wait for its eviction fence."""
        self._waiting.append(call)

    def gone(self) -> None:
        """The fence is signalled: whoever waited looks again."""
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()


class Vram:
    """Pages in use by hipMalloc (`allocated`) and by the buffer objects of SVM ranges, in order of allocation."""

    __slots__ = ("allocated", "bos", "name", "pages", "peak", "used")

    def __init__(self, name: str, size_bytes: int) -> None:
        self.name = name
        self.pages = size_bytes // PAGE_BYTES
        self.used = 0
        self.peak = 0
        self.allocated = 0
        self.bos: dict[SvmBo, None] = {}

    @property
    def free(self) -> int:
        return self.pages - self.used

    def within_limit(self, pages: int) -> bool:
        """Would KFD's limit let another `pages` be allocated? SVM ranges count only while they migrate."""
        return self.allocated + pages <= self.pages

    def reserve(self, pages: int) -> bool:
        """Count pages against the limit; False if it does not let them be allocated."""
        if not self.within_limit(pages):
            return False
        self.allocated += pages
        return True

    def release(self, pages: int) -> None:
        """Pages no longer count against the limit."""
        self.allocated -= pages

    def take(self, pages: int) -> None:
        """Memory for what the limit has admitted; the caller has made room for it."""
        if pages > self.free:
            raise RuntimeError(f"{self.name}: {pages} pages taken, {self.free} are free")
        self.used += pages
        self.peak = max(self.peak, self.used)

    def give_back(self, pages: int) -> None:
        """hipFree: memory and limit."""
        self.used -= pages
        self.allocated -= pages

    def add(self, bo: SvmBo) -> None:
        """A new buffer object; the caller has made room for it."""
        self.take(bo.pages)
        self.bos[bo] = None

    def remove(self, bo: SvmBo) -> None:
        """A buffer object goes; once only."""
        if bo in self.bos:
            del self.bos[bo]
            self.used -= bo.pages
            bo.gone()
