"""hipMemPrefetchAsync: migrate ranges now, in the ioctl that ROCr runs in its own thread (`kfd_svm.md` 2.4, 4.2)."""

from __future__ import annotations

from gpusim.driver.migrate import Trigger, populate
from gpusim.driver.svm_range import CPU, SvmRange, pieces
from gpusim.engine.record import Chain
from gpusim.engine.stages import Do, Stages
from gpusim.errors import SimulatedFailure
from gpusim.hardware.gpuvm import LOCAL
from gpusim.kinds import Kind
from gpusim.linux.address_space import Vma
from gpusim.runtime.hip import Hip, Thread
from gpusim.runtime.operation import Operation
from gpusim.runtime.operations import staged
from gpusim.spec import PAGE_BYTES


def prefetch(
    hip: Hip,
    thread: Thread,
    buffer: str,
    *,
    to: str,
    offset: int | None,
    size: int | None,
    stream: str | None,
) -> Operation:
    """Submit a prefetch of a part of a managed or malloc buffer to a GPU, or to the CPU."""
    allocation = hip.allocation(buffer)
    if not allocation.is_svm:
        raise SimulatedFailure(
            "hip_error",
            f"hipErrorInvalidValue: prefetch of {buffer!r}, which {allocation.allocator} allocated: "
            "only hipMallocManaged and malloc memory moves",
        )
    first, length = allocation.slice(offset, size)
    start, end = allocation.pages(first, length)
    target = hip.location(to)
    operation = staged(
        hip,
        f"prefetch.{buffer}",
        lambda chain: _stages(hip, chain, allocation.vma, start, end, target),
        locked=True,
    )
    operation.size = length
    return hip.submit(thread, operation, stream)


def _stages(hip: Hip, chain: Chain, vma: Vma, first: int, last: int, target: int) -> Stages:
    node, kfd = hip.node, hip.kfd
    yield Kind.DRIVER_FIXED, node.driver.costs.ioctl
    if kfd.mm.find(vma.first) is not vma:
        raise SimulatedFailure(
            "hip_error", f"hipErrorInvalidValue: {vma.name!r} was freed before its prefetch"
        )
    yield from _cover(hip, first, last)
    for svm in kfd.ranges.within(first, last):
        start, end = max(first, svm.first), min(last, svm.last)
        if svm.location not in (CPU, target):  # its pages lie in one VRAM: to another one all of them leave
            leaves = (start, end) if target == CPU else (svm.first, svm.last)
            there = node.devices[svm.location].migration
            yield from there.to_ram(kfd, vma, svm, *leaves, Trigger.PREFETCH)
        if target != CPU:
            yield from node.devices[target].migration.to_vram(kfd, vma, svm, start, end, Trigger.PREFETCH)
        if kfd.xnack and target != CPU:
            yield from _map(hip, chain, vma, svm, start, end, target)
        elif not kfd.xnack and svm.mapped:
            yield from node.devices[0].migration.restore_queues(kfd, chain, vma, start, end)


def _cover(hip: Hip, first: int, last: int) -> Stages:
    """Addresses that are in no range yet become registered ranges."""
    node, kfd = hip.node, hip.kfd
    granule = node.driver.svm.default_granularity // PAGE_BYTES
    page = first
    while page <= last:
        known = kfd.ranges.find(page)
        if known is not None:
            page = known.last + 1
            continue
        start, end = kfd.ranges.gap_around(page, page, last)
        for piece in pieces(start, end, node.range_pages):
            kfd.new_range(*piece, granule_pages=granule, registered=True)
            yield Kind.DRIVER_FIXED, node.driver.costs.range_create
        page = end + 1


def _map(hip: Hip, chain: Chain, vma: Vma, svm: SvmRange, first: int, last: int, gpu: int) -> Stages:
    """Map on the target, which has the ACCESS bit; wavefronts that wait for these pages go on."""
    node, kfd = hip.node, hip.kfd
    cost = node.host_spec.pages
    missing = populate(node.host, vma, first, last, f"prefetch of {vma.name!r}")
    if missing:
        yield Kind.PAGE_ALLOC, missing * cost.alloc
        yield Kind.PAGE_ZERO, missing * cost.zero
    count = last - first + 1
    yield Kind.HMM_WALK, count * cost.hmm_walk
    yield Kind.PTE_WRITE, count * node.driver.costs.pte_write

    def mapped() -> None:
        region = kfd.region(vma, gpu)
        node.devices[gpu].gpu.releasing = chain.snapshot()
        region.map(first - vma.first, last - vma.first, LOCAL, hip.env.now)
        svm.mapped = True
        svm.validated_ps = hip.env.now

    yield Do(mapped)
