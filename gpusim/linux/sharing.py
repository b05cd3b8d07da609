"""Copy-on-write: pages of memory that a VMA and its copies in forked children map together.

Each page that fork finds in RAM is one frame that as many processes map as have it. Who writes to it gets a copy of its
own, but the last one, who goes on with it as it is. Who lets go of it frees it if nobody else has it.

For each page a VMA keeps the number of a group, 0 where the page is its own; a group keeps for each page how many have
its frame. Frames of one page that are in use at the same time are in different groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusim.errors import SimulatedFailure
from gpusim.linux.address_space import FILE, FILE_WRITE, NOWHERE, RAM, SWAPPED, VRAM, Vma

#: pages of files and on the swap device are not inherited
_INHERITED = bytes(NOWHERE if place in (SWAPPED, FILE, FILE_WRITE) else place for place in range(256))
_MOST = 255  # frames of one page that are in use at once


class Frames:
    """The shared frames of a VMA and of its copies, `pages` of each. Parts are from index `start` to before `end`."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._mappers: list[NDArray[np.uint16]] = []  # of group 1, 2, ...

    def fork(self, vma: Vma) -> Vma:
        """A copy of a VMA for a child, which maps what lies in RAM together with it."""
        copy = Vma(vma.name, vma.first, vma.pages, vma.kind, in_place=vma.in_place)
        copy.where = vma.where.translate(_INHERITED)
        copy.wants_huge, copy.numa = vma.wants_huge, vma.numa
        in_ram = _array(vma.where) == RAM
        shared = self._numbers(vma)
        self._join(shared, in_ram)
        vma.shared = bytearray(shared.tobytes())
        copy.shared = bytearray((shared * in_ram).tobytes())
        vma.frames = copy.frames = self
        return copy

    def share(self, vma: Vma | None, copy: Vma, start: int, end: int) -> None:
        """Pages that lay in VRAM at the fork and are in RAM now: the copy maps them as well.

        What is not there any more, since the VMA has given it up or is itself not there any more, is nowhere.
        """
        there = _array(copy.where)[start:end]
        in_vram = (there >= VRAM) & (there < FILE)
        if not in_vram.any():
            return
        back = np.zeros(self._pages, dtype=bool)
        if vma is not None:
            back[start:end] = in_vram & (_array(vma.where)[start:end] == RAM)
            shared = self._numbers(vma)
            self._join(shared, back)
            vma.shared = bytearray(shared.tobytes())
            own = self._numbers(copy)
            own[back] = shared[back]
            copy.shared = bytearray(own.tobytes())
        where = _array(copy.where)
        where[start:end][in_vram] = NOWHERE
        where[back] = RAM
        copy.where = bytearray(where.tobytes())

    def counts(self, vma: Vma, start: int, end: int) -> tuple[int, int]:
        """Pages that a write would copy, and those that nobody else has any more."""
        mappers, marked = self._mappers_of(vma, start, end)
        return int((mappers > 1).sum()), int((marked & (mappers == 1)).sum())

    def leave(self, vma: Vma, start: int, end: int) -> int:
        """The VMA does not map its shared frames of a part any more; how many frames that frees."""
        mappers, marked = self._mappers_of(vma, start, end)
        assert vma.shared is not None
        numbers = _array(vma.shared)[start:end]
        for group in np.unique(numbers[marked]).tolist():
            mine = np.flatnonzero(numbers == group) + start
            self._mappers[group - 1][mine] -= 1
        vma.shared[start:end] = bytes(end - start)
        return int((marked & (mappers == 1)).sum())

    def _join(self, shared: NDArray[np.uint8], pages: NDArray[np.bool_]) -> None:
        """One more maps the frames of `pages`; those that nobody else had until now get a group."""
        fresh = pages & (shared == 0)
        if fresh.any():
            group = self._group_for(fresh)
            shared[fresh] = group
            self._mappers[group - 1][fresh] = 1
        for group in np.unique(shared[pages]).tolist():
            self._mappers[group - 1][pages & (shared == group)] += 1

    def _group_for(self, pages: NDArray[np.bool_]) -> int:
        for number, mappers in enumerate(self._mappers, 1):
            if not mappers[pages].any():
                return number
        if len(self._mappers) == _MOST:
            raise SimulatedFailure(
                "host_out_of_memory",
                f"fork: {_MOST} children have copies of one page from different times, and this model counts no more",
            )
        self._mappers.append(np.zeros(self._pages, dtype=np.uint16))
        return len(self._mappers)

    def _mappers_of(self, vma: Vma, start: int, end: int) -> tuple[NDArray[np.uint16], NDArray[np.bool_]]:
        """How many have the frame of each page of a part, 0 where it is not shared; and where it is marked so."""
        assert vma.shared is not None
        numbers = _array(vma.shared)[start:end]
        found = np.zeros(end - start, dtype=np.uint16)
        for group in np.unique(numbers).tolist():
            if group:
                mine = numbers == group
                found[mine] = self._mappers[group - 1][start:end][mine]
        return found, numbers > 0

    def _numbers(self, vma: Vma) -> NDArray[np.uint8]:
        return np.zeros(self._pages, dtype=np.uint8) if vma.shared is None else _array(vma.shared)


def _array(values: bytearray) -> NDArray[np.uint8]:
    """A copy as an array."""
    return np.frombuffer(bytes(values), dtype=np.uint8).copy()
