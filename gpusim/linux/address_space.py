"""A process's memory as Linux keeps it: VMAs and where each of their pages lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sortedcontainers import SortedDict

from gpusim.errors import SimulatedFailure
from gpusim.spec import PAGE_BYTES

NOWHERE = 0  # never touched, or freed
RAM = 1
VRAM = 2  # a device-private page of GPU g is VRAM + g


class VmaKind(StrEnum):
    """What lies behind a VMA."""

    ANONYMOUS = "anonymous"  # malloc of large blocks, hipMallocManaged
    PINNED = "pinned"  # hipHostMalloc
    DEVICE = "device"  # hipMalloc: address space only


@dataclass(frozen=True, slots=True)
class Rights:
    """What a VMA allows."""

    read: bool
    write: bool


READ_WRITE = Rights(read=True, write=True)
READ_ONLY = Rights(read=True, write=False)
NO_RIGHTS = Rights(read=False, write=False)


class Vma:
    """A mapping of pages first..last (virtual page numbers); `where` has one byte a page for anonymous memory.

    mprotect and munmap of a part split a VMA in Linux; here the VMA stays whole and knows the rights of its parts.
    `in_place` says that it is the initial heap or stack, which the driver keeps in host memory. `gone` says that its
    process has died: work that was on its way finds no pages in it, and gives it none.
    """

    __slots__ = ("_parts", "first", "gone", "in_place", "kind", "last", "name", "where")

    def __init__(self, name: str, first: int, pages: int, kind: VmaKind, *, in_place: bool = False) -> None:
        self.name = name
        self.first = first
        self.last = first + pages - 1
        self.kind = kind
        self.where = bytearray(pages if kind is VmaKind.ANONYMOUS else 0)
        self.gone = False
        self.in_place = in_place
        self._parts: SortedDict[int, Rights | None] | None = (
            None  # first page of a part -> its rights, None: unmapped
        )

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

    def count(self, first: int, last: int, place: int) -> int:
        """Pages of first..last (virtual page numbers) that lie at `place`."""
        return self.where.count(place, first - self.first, last - self.first + 1)

    def move(self, first: int, last: int, place: int) -> None:
        """Pages first..last lie at `place` from now on."""
        length = last - first + 1
        self.where[first - self.first : last - self.first + 1] = bytes([place]) * length

    def vanish(self) -> None:
        """Its process has died, and its pages have been given back."""
        self.where = bytearray(len(self.where))
        self.gone = True


class HostMemory:
    """The RAM of a node, in pages; all processes share it."""

    def __init__(self, size_bytes: int) -> None:
        self.pages = size_bytes // PAGE_BYTES
        self.used = 0
        self.peak = 0

    def take(self, pages: int, what: str) -> None:
        """Allocate pages. Raises SimulatedFailure `host_out_of_memory` when there are not enough."""
        if self.used + pages > self.pages:
            raise SimulatedFailure(
                "host_out_of_memory",
                f"{what}: needs {pages * PAGE_BYTES} more bytes of host memory, "
                f"{(self.pages - self.used) * PAGE_BYTES} of {self.pages * PAGE_BYTES} are free",
            )
        self.used += pages
        self.peak = max(self.peak, self.used)

    def give_back(self, pages: int) -> None:
        self.used -= pages


class AddressSpace:
    """The VMAs of one process by address. Addresses are handed out upwards and never used again."""

    _BASE = 0x7F00_0000_0000 // PAGE_BYTES

    def __init__(self) -> None:
        self._vmas: SortedDict[int, Vma] = SortedDict()
        self._top = self._BASE

    def map(self, name: str, pages: int, kind: VmaKind, align_pages: int, *, in_place: bool = False) -> Vma:
        """Make a VMA of `pages` whose first page is a multiple of `align_pages`."""
        first = -(-self._top // align_pages) * align_pages
        self._top = first + pages + 1  # a hole keeps neighbours from merging
        vma = Vma(name, first, pages, kind, in_place=in_place)
        self._vmas[first] = vma
        return vma

    def unmap(self, vma: Vma) -> None:
        del self._vmas[vma.first]

    def find(self, page: int) -> Vma | None:
        """The VMA that holds a virtual page."""
        position = self._vmas.bisect_right(page) - 1
        if position < 0:
            return None
        vma: Vma = self._vmas.peekitem(position)[1]
        return vma if page <= vma.last else None

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._vmas.values())
