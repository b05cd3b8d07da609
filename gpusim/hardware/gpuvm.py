"""GPUVM state as wavefronts see it: which pages of a buffer one GPU can translate, and where they lie.

One byte a 4 KiB page says enough: not valid, in this GPU's VRAM, or in host memory. The bytes of a region are what
wavefronts search, so that finding the next page that would fault costs one `bytearray.find`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

INVALID = 0
LOCAL = 1  # in the VRAM of the GPU whose tables these are
HOST = 2  # in host memory, reached over the CPU link

_BLOCK_SHIFT = 9  # waiters are kept by 2 MiB of address space: a PDE0 entry


class Waiter(Protocol):
    """A wavefront that waits for a page. `valid_at` is told when the PTE became valid."""

    page: int

    def valid_at(self, time_ps: int) -> None: ...

    def sends_pending(self, now_ps: int) -> int: ...


class Region:
    """The translations of one buffer in one GPU's page tables for one VMID.

    `valid` has one byte a page. `first_page` is the virtual page number of byte 0.
    """

    __slots__ = ("_waiting", "first_page", "name", "on_invalidate", "pages", "pending", "valid", "vm")

    def __init__(self, vm: Vm, name: str, first_page: int, pages: int, *, state: int = INVALID) -> None:
        self.vm = vm
        self.name = name
        self.first_page = first_page
        self.pages = pages
        self.valid = bytearray([state]) * pages
        self._waiting: dict[int, list[Waiter]] = {}
        self.pending: dict[int, Any] = {}  # what listens to faults keeps here, by block of pages
        self.on_invalidate: list[Callable[[int, int], None]] = []

    def wait(self, page: int, waiter: Waiter) -> None:
        """Keep `waiter` until its `page` (an index into this region) is mapped."""
        block = page >> _BLOCK_SHIFT
        entries = self._waiting.get(block)
        if entries is None:
            self._waiting[block] = [waiter]
        else:
            entries.append(waiter)

    def map(self, first: int, last: int, state: int, time_ps: int) -> int:
        """Make the PTEs of pages first..last valid at `time_ps`; tell those who waited, and say how many."""
        self.valid[first : last + 1] = bytes([state]) * (last + 1 - first)
        waiting = self._waiting
        if not waiting:
            return 0
        blocks: Iterable[int] = range(first >> _BLOCK_SHIFT, (last >> _BLOCK_SHIFT) + 1)
        if last - first >> _BLOCK_SHIFT > len(waiting):
            blocks = sorted(waiting)
        told = 0
        for block in blocks:
            entries = waiting.pop(block, None)
            if entries is None:
                continue
            if first > block << _BLOCK_SHIFT or last < (block + 1 << _BLOCK_SHIFT) - 1:
                kept = [waiter for waiter in entries if not first <= waiter.page <= last]
                if kept:
                    waiting[block] = kept
                    entries = [waiter for waiter in entries if first <= waiter.page <= last]
            for waiter in entries:
                waiter.valid_at(time_ps)
            told += len(entries)
        return told

    def unmap(self, first: int, last: int) -> bool:
        """Invalidate pages first..last; True if any was valid. Wavefronts on their way through are told."""
        if self.valid.count(INVALID, first, last + 1) == last + 1 - first:
            return False
        for cut in list(self.on_invalidate):
            cut(first, last)
        self.valid[first : last + 1] = bytes(last + 1 - first)
        return True

    def try_again(self, time_ps: int) -> None:
        """Queues that were stopped go on: all that wait look for their pages anew."""
        waiting, self._waiting = self._waiting, {}
        for entries in waiting.values():
            for waiter in entries:
                waiter.valid_at(time_ps)

    def waiters(self) -> int:
        """Wavefronts that wait for a page of this region."""
        return sum(len(entries) for entries in self._waiting.values())

    def waiting(self) -> list[Waiter]:
        """Those who wait for a page of this region."""
        return [waiter for entries in self._waiting.values() for waiter in entries]

    def drop_waiters(self) -> None:
        """Forget all waiters: their process has died."""
        self._waiting.clear()


class Vm:
    """The address space of one process on one GPU: a VMID with its retry mode (SH_MEM_CONFIG.RETRY_DISABLE)."""

    __slots__ = ("dead", "gpu", "name", "regions", "retry", "stopped", "vmid")

    def __init__(self, name: str, vmid: int, *, retry: bool, gpu: int = 0) -> None:
        self.gpu = gpu
        self.name = name
        self.vmid = vmid
        self.retry = retry
        self.dead = False
        self.stopped = False  # its queues are evicted: wavefronts wait, and fault nothing
        self.regions: dict[int, Region] = {}

    def add(self, region: Region) -> None:
        self.regions[region.first_page] = region

    def remove(self, region: Region) -> None:
        del self.regions[region.first_page]
