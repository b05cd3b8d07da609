"""munmap and mprotect: what a program does to its address space, and what the GPUs see of it.

munmap and mprotect hold the address space as a writer and the driver's restore as a reader; here both hold the
process's SVM mutex instead, and munmap the migrate mutexes of the ranges that it touches: an eviction may be at work on
one. Ranges are split and removed by a worker later (`driver/deferred.py`).
"""

from __future__ import annotations

from gpusim.engine.record import Chain
from gpusim.engine.stages import Do, Stages, Tell, Transfer
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind
from gpusim.linux.address_space import NOWHERE, SWAPPED, Rights, Vma
from gpusim.linux.notifier import Event
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.hip import Hip, Steps, Thread


def locked(hip: Hip, thread: Thread, stages: Stages) -> Steps:
    """Work through stages under the SVM mutex."""
    kfd = hip.kfd
    yield from thread.lock(kfd.lock, kfd)
    try:
        yield from thread.stages(stages)
    finally:
        kfd.lock_path = thread.chain.snapshot()
        kfd.lock.release()


def munmap(hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int]) -> Steps:
    """Pages of a buffer leave the address space for good."""
    only_svm(allocation, "munmap")
    yield from locked(hip, thread, _munmap(hip, allocation.vma, *allocation.pages(*part)))


def _munmap(hip: Hip, vma: Vma, first: int, last: int) -> Stages:
    node, kfd = hip.node, hip.kfd
    ranges = kfd.ranges.within(first, last)
    for svm in ranges:
        if svm.busy:
            yield Transfer(Kind.LOCK_WAIT, svm.acquire)
        else:
            svm.busy = True
    kfd.about_to_unmap()
    yield from kfd.invalidate(vma, first, last, Event.UNMAP)
    yield Kind.HOST_ALLOC, node.driver.costs.ioctl + node.paging.free_ps(vma, first, last)

    def gone(chain: Chain) -> None:
        if vma.gone:
            return
        node.host.give_back(vma.leave_ram(first, last), vma.numa)
        node.paging.forget_swapped(vma.count(first, last, SWAPPED))
        vma.move(first, last, NOWHERE)
        vma.allow(first, last, None)
        vma.unpin(first, last)
        for svm in ranges:
            svm.release()
        if ranges and kfd.deferred is not None:
            kfd.deferred.add(chain, vma, first, last)

    yield Tell(gone)


def mprotect(
    hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int], rights: Rights
) -> Steps:
    """Pages of a buffer get other rights; GPUs map them anew."""
    only_svm(allocation, "mprotect")
    yield from locked(hip, thread, _mprotect(hip, allocation.vma, *allocation.pages(*part), rights))


def _mprotect(hip: Hip, vma: Vma, first: int, last: int, rights: Rights) -> Stages:
    yield from hip.kfd.invalidate(vma, first, last, Event.PROTECTION_VMA)
    walk = hip.node.paging.hmm_walk_ps(vma, first, last)
    yield Kind.HOST_ALLOC, hip.node.driver.costs.ioctl + walk

    def allow() -> None:
        for start, end, old in list(vma.parts(first, last)):
            if old is not None:
                vma.allow(start, end, rights)

    yield Do(allow)


def check_rights(hip: Hip, vma: Vma, first: int, last: int, *, write: bool) -> None:
    """A CPU thread's access. Raises SimulatedFailure where the address space does not allow it."""
    for start, _, rights in vma.parts(first, last):
        if rights is None or not rights.read or (write and not rights.write):
            kind = "write to" if write else "read of"
            why = "unmapped" if rights is None else "protected"
            raise SimulatedFailure(
                "sigbus", f"SIGSEGV: {kind} {start * 4096:#x} of {vma.name} by {hip.kfd.name}: it is {why}"
            )


def only_svm(allocation: Allocation, call: str) -> None:
    """Raises SimulatedFailure for memory that the program did not map itself."""
    if not allocation.is_svm:
        raise SimulatedFailure(
            "hip_error",
            f"hipErrorInvalidValue: {call} of {allocation.name!r}, which {allocation.allocator} allocated: "
            "not memory that the program mapped itself",
        )
