"""A process's memory as Linux keeps it: VMAs and where each of their pages lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

from sortedcontainers import SortedDict

from gpusim.errors import SimulatedFailure
from gpusim.spec import PAGE_BYTES

if TYPE_CHECKING:
    from gpusim.linux.mapped_file import MappedFile
    from gpusim.linux.sharing import Frames

NOWHERE: Final = 0  # never touched, or freed
RAM: Final = 1
VRAM: Final = 2  # a device-private page of GPU g is VRAM + g
FILE: Final = 253  # a page of the page cache that is mapped; stores fault
FILE_WRITE: Final = 254  # the same, dirty: stores do not fault
SWAPPED: Final = 255  # on the swap device
HUGE_PAGES: Final = 512  # base pages in a huge page


#: 2 MiB of pages that lie in one place, by that place
_ALIKE: Final = [bytes([place]) * HUGE_PAGES for place in range(256)]


class VmaKind(StrEnum):
    """What lies behind a VMA."""

    ANONYMOUS = "anonymous"  # malloc of large blocks, hipMallocManaged
    PINNED = "pinned"  # hipHostMalloc
    DEVICE = "device"  # hipMalloc: address space only
    FILE = "file"  # mmap of a file


@dataclass(frozen=True, slots=True)
class Rights:
    """What a VMA allows."""

    read: bool
    write: bool


READ_WRITE: Final = Rights(read=True, write=True)
READ_ONLY = Rights(read=True, write=False)
NO_RIGHTS = Rights(read=False, write=False)


class Vma:
    """A mapping of pages first..last (virtual page numbers); `where` has one byte a page for anonymous memory.

    `huge` has one byte for each aligned block of 2 MiB that is one huge page, where the VMA may have any; after a fork
    `shared` has one byte a page that says which of `frames` it is, 0 where nobody else can have it. The kernel may make
    huge pages at first touch if `wants_huge`. `pins` are parts, first and last page, whose pages stay where they are:
    hipHostRegister has pinned them. mprotect and munmap of a part split a VMA in Linux; here it stays whole and knows
    the rights of its parts. `in_place` says that it is the
    initial heap or stack, which the driver keeps in host memory. `gone` says that its process has died: work that was
    on its way finds no pages in it, and gives it none. `held` are pages in VRAM that CPU threads have faulted on and
    wait for: nobody else can move them. `numa` is the NUMA node to which the program has bound its pages, -1 if it has
    not. `backing` is the file behind one of kind FILE; copies of its pages that are the process's own lie in RAM.
    """

    __slots__ = (
        "_parts",
        "backing",
        "first",
        "frames",
        "gone",
        "held",
        "huge",
        "in_place",
        "kind",
        "last",
        "name",
        "numa",
        "pins",
        "shared",
        "wants_huge",
        "where",
    )

    def __init__(self, name: str, first: int, pages: int, kind: VmaKind, *, in_place: bool = False) -> None:
        self.name = name
        self.first = first
        self.last = first + pages - 1
        self.kind = kind
        self.where = bytearray(pages if kind in (VmaKind.ANONYMOUS, VmaKind.FILE) else 0)
        self.numa = -1
        self.backing: MappedFile | None = None
        self.gone = False
        self.held: set[int] = set()
        self.in_place = in_place
        self.wants_huge = False
        self.pins: list[tuple[int, int]] = []
        self.huge: bytearray | None = None
        self.shared: bytearray | None = None
        self.frames: Frames | None = None
        self._parts: SortedDict[int, Rights | None] | None = (
            None  # first page of a part -> its rights, None: unmapped
        )

    @property
    def memory_node(self) -> int:
        """Where its pages in host memory lie: what is not bound, at the first NUMA node."""
        return max(0, self.numa)

    @property
    def has_parts(self) -> bool:
        """Have the rights of any part ever been changed?"""
        return self._parts is not None

    def rights(self, page: int) -> Rights | None:
        """What is allowed on a page; None where nothing is mapped any more."""
        if self._parts is None:
            return READ_WRITE
        found: Rights | None = self._parts.peekitem(self._parts.bisect_right(page) - 1)[1]
        return found

    def allow(self, first: int, last: int, rights: Rights | None) -> None:
        """Pages first..last have these rights from now on; None unmaps them for good."""
        if self._parts is None:
            self._parts = SortedDict({self.first: READ_WRITE})
        after = self.rights(last + 1) if last < self.last else None
        for key in list(self._parts.irange(first, last)):
            del self._parts[key]
        self._parts[first] = rights
        if last < self.last:
            self._parts[last + 1] = after

    def unmapped(self, first: int, last: int) -> bool:
        """Has a part of first..last been unmapped?"""
        return self._parts is not None and any(rights is None for *_, rights in self.parts(first, last))

    def parts(self, first: int, last: int) -> Iterator[tuple[int, int, Rights | None]]:
        """first..last cut where the rights change: (first page, last page, rights)."""
        if self._parts is None:
            yield first, last, READ_WRITE
            return
        starts = [first, *self._parts.irange(first + 1, last)]
        for start, following in zip(starts, [*starts[1:], last + 1], strict=True):
            yield start, following - 1, self.rights(start)

    @property
    def pages(self) -> int:
        return self.last - self.first + 1

    def pin(self, first: int, last: int) -> None:
        """Pages first..last stay where they are from now on."""
        self.pins = sorted([*self.pins, (first, last)])

    def unpin(self, first: int, last: int) -> None:
        """Pages first..last may move again, as far as they were pinned."""
        kept: list[tuple[int, int]] = []
        for start, end in self.pins:
            kept += [
                (low, high)
                for low, high in ((start, min(end, first - 1)), (max(start, last + 1), end))
                if low <= high
            ]
        self.pins = kept

    def pinned_in(self, first: int, last: int) -> list[tuple[int, int]]:
        """The parts of first..last that are pinned, by address."""
        return [
            (max(start, first), min(end, last)) for start, end in self.pins if start <= last and end >= first
        ]

    def movable(self, first: int, last: int) -> list[tuple[int, int]]:
        """The parts of first..last that are not pinned, by address."""
        if not self.pins:
            return [(first, last)]
        found: list[tuple[int, int]] = []
        for start, end in self.pinned_in(first, last):
            if start > first:
                found.append((first, start - 1))
            first = end + 1
        if first <= last:
            found.append((first, last))
        return found

    def count(self, first: int, last: int, place: int) -> int:
        """Pages of first..last (virtual page numbers) that lie at `place`."""
        where = self.where
        start, end = first - self.first, last - self.first + 1
        if first == last and where:
            return 1 if where[start] == place else 0
        if where.find(place, start, end) < 0:  # four times as fast as to count
            return 0
        if end - start == HUGE_PAGES and where.startswith(_ALIKE[place], start):
            return HUGE_PAGES
        return where.count(place, start, end)

    def in_memory(self, page: int) -> bool:
        """Has the CPU a page in host memory mapped?"""
        return self.where[page - self.first] in (RAM, FILE, FILE_WRITE)

    def of_file(self, first: int, last: int) -> int:
        """Pages of first..last that are mapped from the page cache."""
        if self.backing is None:
            return 0
        return self.count(first, last, FILE) + self.count(first, last, FILE_WRITE)

    def held_at(self, first: int, last: int, place: int) -> list[int]:
        """Pages of first..last at `place` that a CPU thread holds."""
        return [
            page for page in self.held if first <= page <= last and self.where[page - self.first] == place
        ]

    def move(self, first: int, last: int, place: int) -> None:
        """Pages first..last lie at `place` from now on."""
        length = last - first + 1
        self.where[first - self.first : last - self.first + 1] = bytes([place]) * length

    def leave_ram(self, first: int, last: int) -> int:
        """Pages of first..last leave RAM: how many that frees. What others map as well stays with them."""
        found = self.count(first, last, RAM)
        if self.frames is not None and self.shared is not None:
            start, end = first - self.first, last - self.first + 1
            marked = end - start - self.shared.count(0, start, end)
            if marked:
                found += self.frames.leave(self, start, end) - marked
        return found

    def gather(self, first: int, last: int, place: int) -> None:
        """Pages of first..last that are in RAM or nowhere lie at `place` from now on; huge pages are split for it.

        Where a file is behind them, only those that are in RAM.
        """
        start, end = first - self.first, last - self.first + 1
        if self.backing is not None:
            self.where[start:end] = self.where[start:end].replace(bytes([RAM]), bytes([place]))
        elif first == last:
            if self.where[start] in (NOWHERE, RAM):
                self.where[start] = place
        elif end - start == HUGE_PAGES and self.where.startswith(_ALIKE[NOWHERE], start):
            self.where[start:end] = _ALIKE[place]
        else:
            self.where[start:end] = self.where[start:end].translate(_to(place))
        self.split_huge(first, last)

    def blocks(self, first: int, last: int) -> range:
        """Indices into `huge` of the whole aligned 2 MiB blocks in first..last."""
        base = self.first // HUGE_PAGES
        return range(-(-first // HUGE_PAGES) - base, (last + 1) // HUGE_PAGES - base)

    def make_huge(self, block: int) -> None:
        """One block (an index into `huge`) is a huge page from now on."""
        if self.huge is None:
            self.huge = bytearray(self.last // HUGE_PAGES - self.first // HUGE_PAGES + 1)
        self.huge[block] = 1

    def split_huge(self, first: int, last: int) -> None:
        """Huge pages that share a page with first..last become base pages."""
        if self.huge is not None:
            base = self.first // HUGE_PAGES
            start, end = first // HUGE_PAGES - base, last // HUGE_PAGES - base + 1
            self.huge[start:end] = bytes(end - start)

    def huge_in(self, first: int, last: int) -> int:
        """Huge pages that lie wholly in first..last."""
        if self.huge is None:
            return 0
        blocks = self.blocks(first, last)
        return self.huge.count(1, blocks.start, max(blocks.start, blocks.stop))

    def vanish(self) -> None:
        """Its process has died, and its pages have been given back."""
        self.where = bytearray(len(self.where))
        self.gone = True


@cache
def _to(place: int) -> bytes:
    """A translation table that moves what is in RAM or nowhere."""
    table = bytearray(range(256))
    table[NOWHERE] = table[RAM] = place
    return bytes(table)


class HostMemory:
    """The RAM of a node, in pages; all processes share it. Each of its NUMA nodes has an equal part.

    What is bound to a NUMA node has to fit there. What is not takes what is left anywhere, as Linux falls back to other
    nodes; its accesses cost what those of the first node do.
    """

    def __init__(self, size_bytes: int, numa_nodes: int = 1) -> None:
        self.pages = size_bytes // PAGE_BYTES
        self.used = 0
        self.peak = 0
        self.bound = [0] * numa_nodes  # pages that programs have bound to each NUMA node

    def take(self, pages: int, what: str, numa: int = -1) -> None:
        """Allocate pages, bound to a NUMA node or not (-1).

        Raises SimulatedFailure `host_out_of_memory` when there are not enough.
        """
        if numa >= 0:
            room = self.pages // len(self.bound)
            if self.bound[numa] + pages > room:
                raise SimulatedFailure(
                    "host_out_of_memory",
                    f"{what}: needs {pages * PAGE_BYTES} more bytes of NUMA node {numa}, to which it is bound, "
                    f"{(room - self.bound[numa]) * PAGE_BYTES} of {room * PAGE_BYTES} are free",
                )
        if self.used + pages > self.pages:
            raise SimulatedFailure(
                "host_out_of_memory",
                f"{what}: needs {pages * PAGE_BYTES} more bytes of host memory, "
                f"{(self.pages - self.used) * PAGE_BYTES} of {self.pages * PAGE_BYTES} are free",
            )
        self.used += pages
        if numa >= 0:
            self.bound[numa] += pages
        self.peak = max(self.peak, self.used)

    def give_back(self, pages: int, numa: int = -1) -> None:
        """`numa` as when they were taken."""
        self.used -= pages
        if numa >= 0:
            self.bound[numa] -= pages


_BASE = 0x7F00_0000_0000 // PAGE_BYTES  # of what is mapped first


class AddressSpace:
    """The VMAs of one process by address. Addresses are handed out upwards and never used again."""

    def __init__(self) -> None:
        self._vmas: SortedDict[int, Vma] = SortedDict()
        self._top = _BASE
        self._found: Vma | None = None  # the one found last

    def map(self, name: str, pages: int, kind: VmaKind, align_pages: int, *, in_place: bool = False) -> Vma:
        """Make a VMA of `pages` whose first page is a multiple of `align_pages`."""
        first = -(-self._top // align_pages) * align_pages
        self._top = first + pages + 1  # a hole keeps neighbours from merging
        vma = Vma(name, first, pages, kind, in_place=in_place)
        self._vmas[first] = vma
        return vma

    def unmap(self, vma: Vma) -> None:
        del self._vmas[vma.first]
        self._found = None

    def find(self, page: int) -> Vma | None:
        """The VMA that holds a virtual page."""
        found = self._found
        if found is not None and found.first <= page <= found.last:
            return found
        position = self._vmas.bisect_right(page) - 1
        if position < 0:
            return None
        vma: Vma = self._vmas.peekitem(position)[1]
        if page > vma.last:
            return None
        self._found = vma
        return vma

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._vmas.values())
