"""What the kernel does to a program's pages behind its back: swap, huge-page collapse, compaction.

Each tells the MMU notifier first: reclaim and compaction page by page (one call, hence one flush on each GPU, for each
page that a GPU has mapped), collapse block by block. Pinned pages and pages in VRAM stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpusim.driver.kfd_process import KfdProcess
from gpusim.engine.stages import Do, Stages
from gpusim.errors import InputError, Problem
from gpusim.kinds import Kind
from gpusim.linux.address_space import HUGE_PAGES, RAM, Vma, VmaKind
from gpusim.linux.notifier import Event
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.mappings import locked


def swap_out(hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int]) -> Steps:
    """Write pages to the swap device and free them."""
    hip.node.paging.swap_device("swap_out")
    yield from thread.stages(_swap_out(hip, allocation.vma, *allocation.pages(*part)))


def _swap_out(hip: Hip, vma: Vma, first: int, last: int) -> Stages:
    if vma.kind is not VmaKind.ANONYMOUS:
        return
    for start, end in vma.movable(first, last):
        pages = vma.count(start, end, RAM)
        if pages:
            yield from hip.kfd.invalidate(vma, start, end, Event.CLEAR, calls=pages)
            yield from hip.node.paging.swap_out(vma, start, end)


def collapse(hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int]) -> Steps:
    """khugepaged makes huge pages of what is in RAM, 2 MiB after 2 MiB, holding the address space meanwhile."""
    if hip.node.host_spec.huge is None:
        raise InputError(
            [
                Problem(
                    "collapse: the CPU profile of this node has no huge pages",
                    path="system.node",
                    legal="a CPU profile with `huge: {alloc, zero, hmm_walk}`",
                )
            ]
        )
    yield from locked(hip, thread, _collapse(hip, allocation.vma, *allocation.pages(*part)))


def _collapse(hip: Hip, vma: Vma, first: int, last: int) -> Stages:
    huge, paging = hip.node.host_spec.huge, hip.node.paging
    assert huge is not None
    if vma.kind is not VmaKind.ANONYMOUS:
        return
    base = vma.first // HUGE_PAGES * HUGE_PAGES
    for block in vma.blocks(first, last):
        start = base + block * HUGE_PAGES
        end = start + HUGE_PAGES - 1
        if vma.count(start, end, RAM) < HUGE_PAGES or vma.huge_in(start, end) or vma.pinned_in(start, end):
            continue
        yield from hip.kfd.invalidate(vma, start, end, Event.CLEAR)
        yield Kind.PAGE_ALLOC, huge.alloc
        yield Kind.PAGE_COPY, paging.copy_ps(HUGE_PAGES)
        yield Do(lambda block=block: vma.make_huge(block))  # type: ignore[misc]


def compact(hip: Hip, thread: Thread) -> Steps:
    """The kernel moves every movable page in RAM, of all processes, to make room for large blocks."""
    for kfd in list(hip.node.processes):
        yield from thread.stages(_compact(hip, kfd, list(kfd.mm)))


def _compact(hip: Hip, kfd: KfdProcess, vmas: Iterable[Vma]) -> Stages:
    cost, paging = hip.node.host_spec.pages, hip.node.paging
    for vma in vmas:
        if vma.gone or vma.kind is not VmaKind.ANONYMOUS:
            continue
        for first, last in vma.movable(vma.first, vma.last):
            pages = vma.count(first, last, RAM)
            if not pages:
                continue
            yield from kfd.invalidate(vma, first, last, Event.CLEAR, calls=pages)
            yield Kind.PAGE_ALLOC, pages * cost.alloc
            yield Kind.PAGE_COPY, paging.copy_ps(pages) + pages * (cost.migrate_setup + cost.migrate_finish)
