"""Writing GPU page tables so that they say where the pages lie."""

from __future__ import annotations

from collections.abc import Iterator

from gpusim.hardware.gpuvm import LOCAL, PEER, Region, host_state
from gpusim.linux.address_space import FILE, VRAM, Vma


def runs(vma: Vma, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Pages first..last in runs that lie in one place: (first page, last page, place)."""
    where, base = vma.where, vma.first
    page = first
    while page <= last:
        place = where[page - base]
        end, step = page, 1
        while end < last:  # gallop, then halve: runs are long
            upto = min(last, end + step)
            length = upto - end
            if where.count(place, end + 1 - base, upto + 1 - base) == length:
                end, step = upto, step * 2
            elif step == 1:
                break
            else:
                step = max(1, step // 4)
        yield page, end, place
        page = end + 1


def state_of(vma: Vma, place: int, gpu: int) -> int:
    """How page tables of a GPU say that a page of a VMA lies at `place`."""
    if place == VRAM + gpu:
        return LOCAL
    return PEER + place - VRAM if VRAM <= place < FILE else host_state(vma.memory_node)


def map_as_it_lies(
    region: Region, vma: Vma, first: int, last: int, now_ps: int, *, writable: bool = True
) -> int:
    """Map pages first..last on the region's GPU where they are; how many wavefronts that lets go on.

    What lies in huge pages of the host gets fragments of their size. Clean pages of files are not writable.
    """
    told = 0
    for start, end, place in runs(vma, first, last):
        state = state_of(vma, place, region.vm.gpu)
        may_write = writable and place != FILE
        told += region.map(start - vma.first, end - vma.first, state, now_ps, writable=may_write)
        if vma.huge is not None and state == host_state(vma.memory_node):
            join_fragments(region, vma, start, end)
    return told


def join_fragments(region: Region, vma: Vma, first: int, last: int) -> None:
    """Pages first..last lie in RAM and have just been mapped: where they are huge pages, a PDE0 translates them."""
    if vma.huge is not None:
        for block in vma.blocks(first, last):
            if vma.huge[block]:
                region.join(block)
