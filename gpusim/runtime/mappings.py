"""munmap, mprotect and hipHostRegister: what a program does to its address space, and what the GPUs see of it.

munmap and mprotect hold the address space as a writer and the driver's restore as a reader; here both hold the
process's SVM mutex instead, and munmap the migrate mutexes of the ranges that it touches: an eviction may be at work on
one. Ranges are split and removed by a worker later (`driver/deferred.py`).
"""

from __future__ import annotations

from gpusim.engine.record import Chain
from gpusim.engine.stages import Do, Stages, Tell, Transfer
from gpusim.errors import InputError, Problem, SimulatedFailure
from gpusim.hardware.gpuvm import host_state
from gpusim.kinds import Kind
from gpusim.linux.address_space import HUGE_PAGES, NOWHERE, SWAPPED, VRAM, Rights, Vma
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
    _only_svm(allocation, "munmap")
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
        for svm in ranges:
            svm.release()
        if ranges and kfd.deferred is not None:
            kfd.deferred.add(chain, vma, first, last)

    yield Tell(gone)


def mprotect(
    hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int], rights: Rights
) -> Steps:
    """Pages of a buffer get other rights; GPUs map them anew."""
    _only_svm(allocation, "mprotect")
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


def host_register(hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int]) -> Steps:
    """hipHostRegister: pin pages, map them for DMA and on all GPUs that the process sees."""
    _only_svm(allocation, "hipHostRegister")
    if hip.node.host_spec.registration is None:
        raise InputError(
            [
                Problem(
                    "host_register: the CPU profile of this node says nothing of what pinning costs",
                    path="system.node",
                    legal="a CPU profile with `registration: {pin, pin_huge}`",
                )
            ]
        )
    yield from locked(hip, thread, _register(hip, allocation, *allocation.pages(*part)))


def _register(hip: Hip, allocation: Allocation, first: int, last: int) -> Stages:
    node, kfd, vma = hip.node, hip.kfd, allocation.vma
    costs = node.host_spec.registration
    assert costs is not None
    in_vram = any(vma.count(first, last, VRAM + device.gpu.index) for device in node.devices)
    if in_vram:
        raise SimulatedFailure(
            "hip_error", f"hipErrorInvalidValue: hipHostRegister of {vma.name!r}, part of which lies in VRAM"
        )
    yield Kind.HOST_ALLOC, node.driver.costs.ioctl
    what = f"hipHostRegister of {vma.name!r}"
    rights = vma.rights(first)
    writable = rights is not None and rights.write
    yield from node.paging.fault_in(vma, first, last, what, write=writable, trap=False)
    pages = last - first + 1
    huge = vma.huge_in(first, last) * HUGE_PAGES
    yield Kind.PIN, (pages - huge) * costs.pin + huge * costs.pin_huge
    yield Kind.DMA_MAP, pages * node.host_spec.pages.dma_map
    yield Kind.PTE_WRITE, pages * node.driver.costs.pte_write

    def mapped() -> None:
        if vma.gone:
            return
        vma.pinned = True
        state = host_state(vma.memory_node)
        allocation.registered = (first, last)
        for device in hip.visible:
            region = kfd.region(vma, device.gpu.index)
            region.map(first - vma.first, last - vma.first, state, hip.env.now)

    yield Do(mapped)


def _only_svm(allocation: Allocation, call: str) -> None:
    if not allocation.is_svm:
        raise SimulatedFailure(
            "hip_error",
            f"hipErrorInvalidValue: {call} of {allocation.name!r}, which {allocation.allocator} allocated: "
            "not memory that the program mapped itself",
        )
