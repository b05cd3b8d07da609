"""hipHostRegister and hipHostUnregister: a buffer object of KFD on a user pointer.

The pages of the part are brought to RAM and pinned, and mapped on all GPUs that the process sees. They count against
what KFD lets be pinned until they are unregistered, or the buffer is freed. Reclaim, compaction and migration leave
them alone; munmap, mprotect and fork stop the queues (`driver/notifier.py`). Left out: what letting go of a page costs
(no public number), and parts that munmap has taken out, which count until the buffer is freed.
"""

from __future__ import annotations

from gpusim.driver.migrate import Trigger
from gpusim.driver.page_tables import map_as_it_lies
from gpusim.driver.svm_range import exclusively
from gpusim.engine.stages import Do, Stages
from gpusim.errors import InputError, Problem, SimulatedFailure
from gpusim.kinds import Kind
from gpusim.linux.address_space import HUGE_PAGES, VRAM, Vma
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.mappings import check_rights, locked, only_svm
from gpusim.runtime.memory import bring_back


def host_register(hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int]) -> Steps:
    """Pin a part of a buffer (first byte and size), map it for DMA and on all GPUs that the process sees."""
    only_svm(allocation, "hipHostRegister")
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
    vma = allocation.vma
    first, last = allocation.pages(*part)
    check_rights(hip, vma, first, last, write=False)
    yield from thread.stages(bring_back(hip, thread.chain, vma, first, last))
    yield from locked(hip, thread, _register(hip, allocation, first, last))


def _register(hip: Hip, allocation: Allocation, first: int, last: int) -> Stages:
    node, kfd, vma = hip.node, hip.kfd, allocation.vma
    costs = node.host_spec.registration
    assert costs is not None
    yield Kind.HOST_ALLOC, node.driver.costs.ioctl
    if vma.pinned_in(first, last):
        raise SimulatedFailure(
            "hip_error",
            f"hipErrorHostMemoryAlreadyRegistered: hipHostRegister of {vma.name!r}, part of which is registered",
        )
    pages = last - first + 1
    node.pinned.charge(pages, f"hipHostRegister of {vma.name!r} of {kfd.name}")
    allocation.user_pages += pages
    yield from _from_vram(hip, vma, first, last)
    for start, end, rights in vma.parts(first, last):
        what = f"hipHostRegister of {vma.name!r}"
        writable = rights is not None and rights.write
        yield from node.paging.fault_in(vma, start, end, what, write=writable, trap=False)
    huge = vma.huge_in(first, last) * HUGE_PAGES
    yield Kind.PIN, (pages - huge) * costs.pin + huge * costs.pin_huge
    yield Kind.DMA_MAP, pages * node.host_spec.pages.dma_map
    yield Kind.PTE_WRITE, pages * node.driver.costs.pte_write

    def mapped() -> None:
        if vma.gone:
            return
        vma.pin(first, last)
        for device in hip.visible:
            region = kfd.region(vma, device.gpu.index)
            for start, end, rights in vma.parts(first, last):
                if rights is not None:
                    map_as_it_lies(region, vma, start, end, hip.env.now, writable=rights.write)

    yield Do(mapped)


def host_unregister(hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int]) -> Steps:
    """Let go of all that is registered in a part of a buffer, when the GPUs have done what they are at."""
    only_svm(allocation, "hipHostUnregister")
    for operation in hip.outstanding(None):
        yield from thread.wait_for(operation)
    yield from locked(hip, thread, _unregister(hip, allocation, *allocation.pages(*part)))


def _unregister(hip: Hip, allocation: Allocation, first: int, last: int) -> Stages:
    node, kfd, vma = hip.node, hip.kfd, allocation.vma
    yield Kind.HOST_ALLOC, node.driver.costs.ioctl
    pins = vma.pinned_in(first, last)
    if not pins or any(pin not in vma.pins for pin in pins):
        what = "cuts what was registered in one piece" if pins else "is not registered"
        raise SimulatedFailure(
            "hip_error",
            f"hipErrorHostMemoryNotRegistered: hipHostUnregister of {vma.name!r}: the part {what}",
        )

    def let_go() -> None:
        if vma.gone:
            return
        for start, end in pins:
            vma.unpin(start, end)
            for region in kfd.regions_of(vma):
                region.unmap(start - vma.first, end - vma.first)
            allocation.user_pages -= end - start + 1
            node.pinned.release(end - start + 1)
        for device in hip.visible:
            device.gpu.translation.flush()

    yield Do(let_go)
    yield Kind.TLB_FLUSH, node.driver.costs.tlb_flush


def _from_vram(hip: Hip, vma: Vma, first: int, last: int) -> Stages:
    """Who pins pages faults back what lies in VRAM, granule by granule, also where the CPU could reach it there."""
    for device in hip.node.devices:
        place = VRAM + device.gpu.index
        page = first
        while page <= last:
            at = vma.where.find(place, page - vma.first, last - vma.first + 1)
            if at < 0:
                break
            svm = hip.kfd.ranges.find(vma.first + at)
            assert svm is not None  # pages lie in VRAM only as parts of ranges
            granule = svm.granule(vma.first + at)
            yield Kind.DRIVER_FIXED, hip.node.host_spec.pages.fault
            move = device.migration.to_ram
            yield from exclusively(svm, move(hip.kfd, vma, svm, *granule, Trigger.PAGEFAULT_CPU))
            page = granule[1] + 1
        if vma.held_at(first, last, place):
            raise SimulatedFailure(
                "hip_error",
                f"hipErrorInvalidValue: hipHostRegister of {vma.name!r}: a CPU thread has faulted on a page of it in "
                f"the VRAM of {device.gpu.name}, and waits for the lock that the driver holds",
            )
