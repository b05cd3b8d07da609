"""The end of a process that was killed or crashed: what the kernel takes back, and when.

At the moment of its death nobody finds its memory any more: what the driver still has in hand for it goes to its end
and changes nothing. Then the kernel waits for whoever works under the SVM mutex (the service of a fault, a CPU fault),
and frees buffer after buffer; each counts as used until its turn is over. Source: `kfd_svm.md` 1.7 and 2 (step 3).

Left out: how long it takes to unmap queues, and to wait until rings are drained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gpusim.driver.svm_range import CPU, SvmRange
from gpusim.engine.stages import Do, Stages, Transfer
from gpusim.kinds import Kind
from gpusim.linux.address_space import SWAPPED, VmaKind
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.hip import Hip


@dataclass(frozen=True, slots=True)
class Remains:
    """A buffer that nobody finds any more: CPU time to free it, flushes of TLBs, and what gives its memory back."""

    free_ps: int
    flush_ps: int
    give_back: Callable[[], None]


def detach(hip: Hip) -> list[Remains]:
    """The process has died: take its memory out of its hands."""
    ranges: list[SvmRange] = []
    remains = [_detach(hip, allocation, ranges) for allocation in hip.take_all()]
    for svm in ranges:  # who waits for one goes on, and finds it gone
        svm.abandon()
    return remains


def teardown(hip: Hip, remains: list[Remains]) -> Stages:
    """The kernel frees what was detached."""
    lock = hip.kfd.lock
    yield Transfer(Kind.LOCK_WAIT, partial(lock.acquire, hip.kfd.number + 1))
    yield Do(lock.release)
    for one in remains:
        yield Kind.HOST_ALLOC, one.free_ps, Kind.TLB_FLUSH, one.flush_ps
        yield Do(one.give_back)


def _detach(hip: Hip, allocation: Allocation, ranges: list[SvmRange]) -> Remains:
    node, kfd, vma = hip.node, hip.kfd, allocation.vma
    costs, page = node.driver.costs, node.host_spec.pages
    if vma.kind is VmaKind.DEVICE:
        vma.vanish()
        return Remains(costs.vram_free, 0, partial(node.devices[allocation.gpu].vram.give_back, vma.pages))
    if vma.kind is VmaKind.PINNED:
        vma.vanish()
        return Remains(vma.pages * page.free, 0, partial(_unpin, hip, vma.pages, vma.numa))
    hip.node.pinned.release(allocation.user_pages)
    own = kfd.ranges.within(vma.first, vma.last)
    for svm in own:
        kfd.ranges.remove(svm)
    ranges += own
    free_ps = node.paging.free_ps(vma, vma.first, vma.last)
    mapped = any(region.unmap(0, vma.pages - 1) for region in kfd.regions_of(vma))
    in_ram = vma.leave_ram(vma.first, vma.last)  # what a child maps too is freed when that has ended
    give_back = partial(_forget, hip, own, in_ram, vma.where.count(SWAPPED), vma.numa)
    if vma.backing is not None:
        vma.backing.close()
    vma.vanish()
    return Remains(free_ps, costs.tlb_flush if mapped else 0, give_back)


def _unpin(hip: Hip, pages: int, numa: int) -> None:
    hip.node.host.give_back(pages, numa)
    hip.node.pinned.release(pages)


def _forget(hip: Hip, ranges: list[SvmRange], in_ram: int, swapped: int, numa: int) -> None:
    node = hip.node
    node.host.give_back(in_ram, numa)
    node.paging.forget_swapped(swapped)
    hip.kfd.uncharge(sum(svm.pages for svm in ranges))
    for svm in ranges:
        if svm.bo_on != CPU:  # an eviction may have been faster
            node.devices[svm.bo_on].migration.drop_bo(svm)
