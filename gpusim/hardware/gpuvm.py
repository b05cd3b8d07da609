"""GPUVM state as wavefronts see it: which pages of a buffer one GPU can translate, and where they lie.

One byte a 4 KiB page says enough: not valid, in this GPU's VRAM, in host memory, or in the VRAM of another GPU. The
bytes of a region are what wavefronts search, so that finding the next page that would fault costs one
`bytearray.find`. One byte for each 2 MiB says how large the fragments are in which its pages are translated: VRAM is
contiguous, host memory is scattered unless who maps it says otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final

INVALID: Final = 0
LOCAL: Final = 1  # in the VRAM of the GPU whose tables these are
HOST: Final = 2  # in host memory, reached over the CPU link
PEER: Final = 3  # in the VRAM of GPU g: PEER + g
_NUMA: Final = 128  # in the memory of NUMA node n > 0: _NUMA + n


def host_state(numa: int) -> int:
    """How page tables say that a page lies in the memory of a NUMA node."""
    return HOST if numa == 0 else _NUMA + numa


BLOCK_SHIFT: Final = 9  # waiters are kept by 2 MiB of address space: a PDE0 entry
_BLOCK: Final = 1 << BLOCK_SHIFT
HUGE: Final = BLOCK_SHIFT  # fragment of a PDE0 used as PTE: log2 of its pages
_ALIKE: Final = [bytes([state]) * _BLOCK for state in range(256)]


class Waiter(ABC):
    """A wavefront that waits for a page. `valid_at` is told when the PTE became valid."""

    __slots__ = ("page",)

    page: int

    @abstractmethod
    def valid_at(self, time_ps: int) -> None: ...

    @staticmethod
    def valid_together(waiters: Sequence[Waiter], time_ps: int, last: int) -> None:
        """`valid_at` of all `waiters` of one region, whatever they are. Called on the first of them.

        Each waits for one of the pages up to `last` that all became valid together; -1: for any page, valid or not.
        """
        for waiter in waiters:
            waiter.valid_at(time_ps)

    @abstractmethod
    def sends_pending(self, now_ps: int) -> int: ...


class Region:
    """The translations of one buffer in one GPU's page tables for one VMID.

    `valid` has one byte a page, `fragments` one for each 512 pages: log2 of the pages of the largest fragment there.
    `first_page` is the virtual page number of byte 0. `writable` is what writes see of `valid`: pages that are mapped
    read-only are not valid there. It is kept only once `track_writes` has been called.
    """

    __slots__ = (
        "_align",
        "_sorted",
        "first_page",
        "fragments",
        "name",
        "on_invalidate",
        "pages",
        "pending",
        "valid",
        "vm",
        "waiting",
        "writable",
    )

    def __init__(self, vm: Vm, name: str, first_page: int, pages: int, *, state: int = INVALID) -> None:
        self.vm = vm
        self.name = name
        self.first_page = first_page
        self.pages = pages
        self.valid = bytearray([state]) * pages
        # a fragment is aligned: what the address of the buffer allows
        self._align = min(HUGE, (first_page & -first_page).bit_length() - 1) if first_page else HUGE
        # until it is mapped, a block counts as what its first touch will make of it
        self.fragments = bytearray([0 if vm.unified else self._align]) * -(-pages >> BLOCK_SHIFT)
        self.writable: bytearray | None = None
        self.waiting: dict[int, list[Waiter]] = {}  # by block
        self._sorted: dict[int, list[Waiter]] = {}  # by page, where blocks are mapped in parts
        self.pending: dict[int, Any] = {}  # what listens to faults keeps here, by block of pages
        self.on_invalidate: list[Callable[[int, int], None]] = []

    def wait(self, page: int, waiter: Waiter) -> None:
        """Keep `waiter` until its `page` (an index into this region) is mapped."""
        block = page >> BLOCK_SHIFT
        entries = self.waiting.get(block)
        if entries is None:
            self.waiting[block] = [waiter]
        else:
            entries.append(waiter)

    def track_writes(self) -> None:
        """Some of its pages may be mapped read-only: tell writes from reads from now on."""
        if self.writable is None:
            self.writable = bytearray(self.valid)

    def seen(self, write: bool) -> bytearray:
        """What an access of this kind finds: `valid`, or `writable`."""
        return self.writable if write and self.writable is not None else self.valid

    def map(
        self,
        first: int,
        last: int,
        state: int,
        time_ps: int,
        fragment: int | None = None,
        *,
        writable: bool = True,
    ) -> int:
        """Make the PTEs of pages first..last valid at `time_ps`; tell those who waited, and say how many.

        `fragment` is the largest that the memory behind them allows (log2 of pages); by default VRAM allows all. Not
        `writable`: without the write bit. Kernels launched before `track_writes` do not notice that.
        """
        count = last - first
        if count == 0:
            self.fragments[first >> BLOCK_SHIFT] = 0
        else:
            most = fragment if fragment is not None else HUGE if state == LOCAL else 0
            most = min(most, self._align)
            if count == _BLOCK - 1 and not first & count:  # a granule
                self.fragments[first >> BLOCK_SHIFT] = most
            else:
                self._set_fragments(first, last, most)
        if count == 0:
            self.valid[first] = state
        elif count == _BLOCK - 1:
            self.valid[first : last + 1] = _ALIKE[state]
        else:
            self.valid[first : last + 1] = bytes([state]) * (count + 1)
        if not writable:
            self.track_writes()
        if self.writable is not None:
            here = self.valid[first : last + 1] if writable else bytes(last + 1 - first)
            self.writable[first : last + 1] = here
        if not self.waiting and not self._sorted:
            return 0
        return self._tell(first, last, time_ps)

    def _tell(self, first: int, last: int, time_ps: int) -> int:
        """Let those go on who wait for pages first..last."""
        block, end = first >> BLOCK_SHIFT, last >> BLOCK_SHIFT
        if block == end:
            return self._tell_block(block, first, last, time_ps)
        waiting, by_page = self.waiting, self._sorted
        blocks: Iterable[int] = range(block, end + 1)
        if last - first >> BLOCK_SHIFT > len(waiting) + len(by_page):
            blocks = sorted(waiting.keys() | {page >> BLOCK_SHIFT for page in by_page})
        told = 0
        for block in blocks:
            told += self._tell_block(block, first, last, time_ps)
        return told

    def _tell_block(self, block: int, first: int, last: int, time_ps: int) -> int:
        """The same within one block."""
        by_page = self._sorted
        entries = self.waiting.pop(block, None)
        start, stop = block << BLOCK_SHIFT, block + 1 << BLOCK_SHIFT
        if entries is not None and (first > start or last < stop - 1):
            # a part of a block: sort by page, once for each waiter, whatever the number of parts
            for waiter in entries:
                page = waiter.page
                here = by_page.get(page)
                if here is None:
                    by_page[page] = [waiter]
                else:
                    here.append(waiter)
            entries = None
        if by_page:
            start = max(start, first)
            if last < stop - 1:
                stop = last + 1
            for page in range(start, stop):
                if page in by_page:
                    found = by_page.pop(page)
                    if entries is None:
                        entries = found
                    else:
                        entries.extend(found)
        if entries is None:
            return 0
        entries[0].valid_together(entries, time_ps, last)
        return len(entries)

    def _set_fragments(self, first: int, last: int, most: int) -> None:
        """Pages first..last become contiguous up to fragments of 2**most pages."""
        head, tail = first & _BLOCK - 1, (last + 1) & _BLOCK - 1
        if not head and (not tail or last + 1 == self.pages):  # the usual case: whole blocks
            block, end = first >> BLOCK_SHIFT, last + 1 >> BLOCK_SHIFT
            self.fragments[block:end] = bytes([most]) * (end - block)
            if tail:
                self.fragments[end] = min(most, tail.bit_length() - 1)
            return
        valid = self.valid
        for block in range(first >> BLOCK_SHIFT, (last >> BLOCK_SHIFT) + 1):
            start, stop = block << BLOCK_SHIFT, block + 1 << BLOCK_SHIFT
            here, end = max(first, start), min(last + 1, stop)
            shift = min(most, _largest_inside(here - start, end - start))
            others = end - here + valid.count(INVALID, start, here) + valid.count(INVALID, end, stop)
            if others < min(stop, self.pages) - start:  # others are mapped there: pieces remain pieces
                shift = min(shift, self.fragments[block])
            self.fragments[block] = shift

    def join(self, block: int) -> None:
        """The 512 pages of a block (counted from the start of the region) are contiguous."""
        self.fragments[block] = self._align

    def fragment_counts(self, pages: int) -> dict[int, int]:
        """How many fragments of 2**shift pages, by shift, the first `pages` pages have."""
        whole = pages >> BLOCK_SHIFT
        counts: dict[int, int] = {}
        for shift in range(HUGE + 1):
            number = self.fragments.count(shift, 0, whole)
            if number:
                counts[shift] = number << HUGE - shift
        rest = pages & _BLOCK - 1
        if rest:
            shift = self.fragments[whole]
            counts[shift] = counts.get(shift, 0) + -(-rest >> shift)
        return counts

    def unmap(self, first: int, last: int) -> bool:
        """Invalidate pages first..last; True if any was valid. Wavefronts on their way through are told."""
        if self.valid.count(INVALID, first, last + 1) == last + 1 - first:
            return False
        for cut in list(self.on_invalidate):
            cut(first, last)
        self.valid[first : last + 1] = bytes(last + 1 - first)
        if self.writable is not None:
            self.writable[first : last + 1] = bytes(last + 1 - first)
        return True

    def try_again(self, time_ps: int) -> None:
        """Queues that were stopped go on: all that wait look for their pages anew."""
        waiters = self.all_waiting()
        self.drop_waiters()
        for waiter in waiters:
            waiter.valid_at(time_ps)

    def waiters(self) -> int:
        """Wavefronts that wait for a page of this region."""
        return len(self.all_waiting())

    def all_waiting(self) -> list[Waiter]:
        """Those who wait for a page of this region."""
        parts = chain(self.waiting.values(), self._sorted.values())
        return [waiter for entries in parts for waiter in entries]

    def drop_waiters(self) -> None:
        """Forget all waiters: their process has died."""
        self.waiting.clear()
        self._sorted.clear()


def _largest_inside(start: int, end: int) -> int:
    """log2 of the largest aligned power of two of pages inside start..end-1."""
    shift = (end - start).bit_length() - 1
    while -(-start >> shift) + 1 << shift > end:
        shift -= 1
    return shift


class Vm:
    """The address space of one process on one GPU: a VMID with its retry mode (SH_MEM_CONFIG.RETRY_DISABLE).

    `unified`: on an APU, where host memory is as near as VRAM.
    """

    __slots__ = (
        "dead",
        "engine_accesses",
        "far",
        "far_from",
        "gpu",
        "name",
        "regions",
        "retry",
        "states",
        "steps_done",
        "stopped",
        "unified",
        "vmid",
    )

    def __init__(
        self,
        name: str,
        vmid: int,
        *,
        retry: bool,
        gpu: int = 0,
        unified: bool = False,
        gpus: int = 1,
        numa_nodes: int = 1,
    ) -> None:
        self.unified = unified
        #: what the bytes of a region can be; from `far_from` on pages lie behind a link
        others = tuple(host_state(numa) for numa in range(1, numa_nodes))
        self.states = (*range(PEER + gpus if gpus > 1 else PEER), *others)
        self.far_from = PEER if unified else HOST
        self.far = self.states[self.far_from :]
        self.gpu = gpu
        self.name = name
        self.vmid = vmid
        self.retry = retry
        self.dead = False
        self.stopped = False  # its queues are evicted: wavefronts wait, and fault nothing
        self.regions: dict[int, Region] = {}
        self.steps_done = 0  # wave steps of kernels that have ended
        self.engine_accesses = (
            0  # that had faulted and went through, of copy engines and the command processor
        )

    def add(self, region: Region) -> None:
        self.regions[region.first_page] = region

    def remove(self, region: Region) -> None:
        del self.regions[region.first_page]
