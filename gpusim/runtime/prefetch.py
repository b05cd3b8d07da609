"""hipMemPrefetchAsync: migrate ranges now, in the ioctl that ROCr runs in its own thread (`kfd_svm.md` 2.4, 4.2)."""

from __future__ import annotations

from dataclasses import replace

from gpusim.driver.attributes import UNDEFINED
from gpusim.driver.migrate import Trigger, exclusively, mapped_runs, populate
from gpusim.driver.placement import Move, move, prefetch_location, prefetch_maps
from gpusim.driver.svm_range import CPU, SvmRange
from gpusim.engine.record import Chain
from gpusim.engine.stages import Do, Stages
from gpusim.errors import SimulatedFailure
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
    granule = node.driver.svm.default_granularity // PAGE_BYTES
    made = kfd.cover(first, last, granule_pages=granule, most_pages=node.range_pages)
    yield Kind.DRIVER_FIXED, len(made) * node.driver.costs.range_create
    for svm in kfd.ranges.within(first, last):
        start, end = max(first, svm.first), min(last, svm.last)
        svm.set_attributes(replace(svm.attributes, prefetch=target))
        yield from exclusively(svm, migrate(hip, chain, vma, svm, start, end))


def migrate(hip: Hip, chain: Chain, vma: Vma, svm: SvmRange, first: int, last: int) -> Stages:
    """svm_range_trigger_migration: move first..last of a range to where the driver lets its prefetch location be."""
    node, kfd = hip.node, hip.kfd
    attributes, target = svm.attributes, svm.attributes.prefetch
    best = prefetch_location(
        target,
        access=attributes.access,
        in_place=attributes.in_place,
        xnack=kfd.xnack,
        apu=target >= 0 and node.devices[target].apu,
        same_hive=node.same_hive,
    )
    if best == UNDEFINED:
        return
    what = move(best, svm.location)
    if what in (Move.THROUGH_RAM, Move.TO_RAM):  # for another VRAM all of them leave
        leaves = (first, last) if what is Move.TO_RAM else (svm.first, svm.last)
        yield from node.devices[svm.location].migration.to_ram(kfd, vma, svm, *leaves, Trigger.PREFETCH)
    if best != CPU:
        yield from node.devices[best].migration.to_vram(kfd, vma, svm, first, last, Trigger.PREFETCH)
    if not kfd.xnack:
        if svm.mapped:
            yield from node.devices[0].migration.restore_queues(kfd, chain, vma, first, last)
        return
    for gpu in prefetch_maps(target, access=attributes.access, in_place=attributes.in_place, xnack=True):
        yield from _map(hip, chain, vma, svm, first, last, gpu)


def _map(hip: Hip, chain: Chain, vma: Vma, svm: SvmRange, first: int, last: int, gpu: int) -> Stages:
    """Map on one GPU; wavefronts that wait for these pages go on."""
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
        for start, end, state in mapped_runs(vma, first, last, gpu) if not vma.gone else ():
            region.map(start - vma.first, end - vma.first, state, hip.env.now)
        svm.mapped = True
        svm.validated_ps = hip.env.now

    yield Do(mapped)
