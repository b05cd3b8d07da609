"""Pageable copies without staging: the runtime locks the memory, and SDMA reads or writes it where it is (UM22).

HIP does so for copies of at least GPU_PINNED_MIN_XFER_SIZE KiB, in pieces of 32 MiB. Locking maps the pages on the GPU
and pins nothing: the kernel may still move them. With XNACK on an invalidation takes the mappings away while SDMA is at
it: its next packet faults, and is repaired granule by granule as any retry fault; if that fails once, the page table
entry is poisoned, and the next access is fatal. With XNACK off the queues stop instead, and go on when the restore work
has mapped all again.

Left out: an invalidation in the middle of a packet (the packet goes on), the queue of the GPU's fault worker, whose
services the faults of SDMA would wait for, and the attributes that the call sets on the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpusim.driver.migrate import sdma_transfer
from gpusim.driver.svm_range import SvmRange, exclusively
from gpusim.engine.record import Chain
from gpusim.engine.stages import Do, Stages, Transfer
from gpusim.errors import SimulatedFailure
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import INVALID
from gpusim.kinds import Kind
from gpusim.linux.address_space import Vma
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.hip import Hip
from gpusim.runtime.prefetch import map_on
from gpusim.spec import PAGE_BYTES

MOST_LOCKED = 32 << 20  # bytes of one lock


def locked_copy(
    hip: Hip, chain: Chain, gpu: Gpu, allocation: Allocation, first: int, size: int, *, up: bool
) -> Stages:
    """Copy `size` bytes of a buffer in host memory from byte `first` on, to or from a GPU."""
    packet = gpu.spec.sdma.packet
    ways = gpu.host_ways[allocation.vma.memory_node]
    for start in range(first, first + size, MOST_LOCKED):
        length = min(MOST_LOCKED, first + size - start)
        pages = allocation.pages(start, length)
        made: list[SvmRange] = []
        yield from _with_mutex(hip, chain, _lock(hip, gpu, allocation.vma, *pages, made))
        for at in range(start, start + length, packet):
            part = min(packet, start + length - at)
            yield from _ready(hip, chain, gpu, allocation.vma, *allocation.pages(at, part))
            if hip.kfd.dead:
                return
            yield sdma_transfer(gpu, ways.h2d if up else ways.d2h, part, flights=hip.flights)
        yield from _with_mutex(hip, chain, _unlock(hip, gpu, allocation.vma, made))


def _lock(hip: Hip, gpu: Gpu, vma: Vma, first: int, last: int, made: list[SvmRange]) -> Stages:
    """hsa_amd_memory_lock: ranges for what has none, mapped on the GPU."""
    node, kfd = hip.node, hip.kfd
    costs = node.driver.costs
    yield Kind.DRIVER_FIXED, costs.ioctl
    granule = node.driver.svm.default_granularity // PAGE_BYTES
    made += kfd.cover(first, last, granule_pages=granule, most_pages=node.range_pages)
    yield Kind.DRIVER_FIXED, len(made) * costs.range_create
    for svm in kfd.ranges.within(first, last):
        start, end = max(first, svm.first), min(last, svm.last)
        yield from exclusively(svm, map_on(hip, vma, svm, start, end, [gpu.index]))


def _unlock(hip: Hip, gpu: Gpu, vma: Vma, made: list[SvmRange]) -> Stages:
    """Ranges that the lock has made go again; memory that was registered before stays mapped."""
    kfd = hip.kfd
    for svm in made:
        yield from exclusively(svm, _forget(hip, gpu, vma, svm))
    if made:
        yield Kind.TLB_FLUSH, hip.node.driver.costs.tlb_flush
    yield Do(lambda: None if kfd.dead else gpu.translation.flush())


def _forget(hip: Hip, gpu: Gpu, vma: Vma, svm: SvmRange) -> Stages:
    kfd = hip.kfd

    def gone() -> None:
        if not vma.gone and kfd.ranges.find(svm.first) is svm and not svm.vram_pages:
            kfd.region(vma, gpu.index).unmap(svm.first - vma.first, svm.last - vma.first)
            kfd.remove_range(svm)

    yield Do(gone)


def _ready(hip: Hip, chain: Chain, gpu: Gpu, vma: Vma, first: int, last: int) -> Stages:
    """Wait until pages first..last are mapped: what a packet of SDMA goes through that finds one that is not."""
    kfd = hip.kfd
    while not (kfd.dead or vma.gone):
        if kfd.stopped:
            yield Transfer(Kind.QUEUES_STOPPED, kfd.when_started)
            continue
        region = kfd.region(vma, gpu.index)
        at = region.valid.find(INVALID, first - vma.first, last - vma.first + 1)
        if at < 0:
            return
        page = vma.first + at
        if not kfd.xnack:
            raise SimulatedFailure(
                "vm_fault", f"memory access fault by SDMA of {gpu.name} on {vma.name}: not mapped"
            )
        yield Kind.FAULT_DELIVERY, gpu.delivery_ps
        try:
            yield from _with_mutex(hip, chain, _repair(hip, gpu, vma, page, first, last))
        except SimulatedFailure as failure:
            raise SimulatedFailure(
                "vm_fault",
                f"memory access fault by SDMA of {gpu.name} on address {page * PAGE_BYTES:#x} of {vma.name}: its "
                f"repair has failed, and the page table entry is poisoned ({failure})",
            ) from failure
        yield Kind.RESEND, gpu.retry.period_ps // 2


def _repair(hip: Hip, gpu: Gpu, vma: Vma, page: int, first: int, last: int) -> Stages:
    """svm_range_restore_pages for memory that is mapped in place: the granule around a page."""
    kfd = hip.kfd
    yield Kind.DRIVER_FIXED, hip.node.driver.costs.restore
    svm, rights = kfd.ranges.find(page), vma.rights(page)
    if svm is None or rights is None or not rights.read:
        raise SimulatedFailure("vm_fault", "the program has unmapped or protected it")
    start, end = svm.granule(page)
    hip.node.events.count(kfd.number, "sdma_faults")
    start, end = max(start, first), min(end, last)
    yield from exclusively(svm, map_on(hip, vma, svm, start, end, [gpu.index]))


def _with_mutex(hip: Hip, chain: Chain, stages: Stages) -> Stages:
    """Stages under the SVM mutex."""
    kfd = hip.kfd

    def release() -> None:
        kfd.lock_path = chain.snapshot()
        kfd.lock.release()

    acquire: Callable[[Callable[[], None]], None] = partial(kfd.lock.acquire, kfd.number + 1)
    yield Transfer(Kind.LOCK_WAIT, acquire)
    try:
        yield from stages
    except SimulatedFailure:
        release()
        raise
    yield Do(release)
