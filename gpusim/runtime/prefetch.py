"""hipMemPrefetchAsync: migrate ranges now, in the ioctl that ROCr runs in its own thread (`kfd_svm.md` 2.4, 4.2)."""

from __future__ import annotations

from dataclasses import replace

from gpusim.driver.attributes import UNDEFINED, SvmFlag
from gpusim.driver.migrate import Trigger
from gpusim.driver.page_tables import map_as_it_lies
from gpusim.driver.placement import Move, move, prefetch_location, prefetch_maps
from gpusim.driver.svm_range import CPU, SvmRange, exclusively
from gpusim.engine.record import Chain
from gpusim.engine.stages import Stages, Tell
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
        lambda _: _stages(hip, allocation.vma, start, end, target),
        locked=True,
    )
    operation.size = length
    return hip.submit(thread, operation, stream)


def _stages(hip: Hip, vma: Vma, first: int, last: int, target: int) -> Stages:
    node, kfd = hip.node, hip.kfd
    yield Kind.DRIVER_FIXED, node.driver.costs.ioctl
    if kfd.mm.find(vma.first) is not vma:
        raise SimulatedFailure(
            "hip_error", f"hipErrorInvalidValue: {vma.name!r} was freed before its prefetch"
        )
    if kfd.deferred is not None:
        yield from kfd.deferred.flush()
    if vma.unmapped(first, last):
        raise SimulatedFailure(
            "hip_error", f"hipErrorInvalidValue: prefetch of {vma.name!r}, part of it is unmapped"
        )
    if not vma.movable(first, last):
        return  # migrate_vma finds nothing that it may move
    granule = node.driver.svm.default_granularity // PAGE_BYTES
    made = kfd.cover(first, last, granule_pages=granule, most_pages=node.range_pages)
    yield Kind.DRIVER_FIXED, len(made) * node.driver.costs.range_create
    for svm in kfd.ranges.within(first, last):
        start, end = max(first, svm.first), min(last, svm.last)
        svm.set_attributes(replace(svm.attributes, prefetch=target))
        yield from exclusively(svm, migrate(hip, vma, svm, start, end))


def migrate(hip: Hip, vma: Vma, svm: SvmRange, first: int, last: int) -> Stages:
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
    if what is Move.THROUGH_RAM:  # for another VRAM all of them leave
        old = node.devices[svm.location].migration
        if not (yield from node.devices[best].migration.take_over(kfd, vma, svm, old, Trigger.PREFETCH)):
            best = CPU  # the error is swallowed: what has come to RAM stays there
    elif what is Move.TO_RAM:
        yield from node.devices[svm.location].migration.to_ram(kfd, vma, svm, first, last, Trigger.PREFETCH)
    if best != CPU:
        yield from node.devices[best].migration.to_vram(kfd, vma, svm, first, last, Trigger.PREFETCH)
    if not kfd.xnack:
        return  # the restore work maps what was mapped before
    gpus = prefetch_maps(target, access=attributes.access, in_place=attributes.in_place, xnack=True)
    yield from map_on(hip, vma, svm, first, last, gpus)


def map_on(hip: Hip, vma: Vma, svm: SvmRange, first: int, last: int, gpus: list[int]) -> Stages:
    """svm_range_validate_and_map on some GPUs; wavefronts that wait for these pages go on."""
    node, kfd = hip.node, hip.kfd
    if not gpus or vma.gone:
        return
    read_only = svm.attributes.has(SvmFlag.GPU_RO)
    for start, end, rights in vma.parts(first, last):
        if rights is None or not rights.read:
            continue
        what = f"{kfd.name}: mapping of {vma.name!r}"
        yield from node.paging.fault_in(vma, start, end, what, write=rights.write, trap=False)
        yield Kind.HMM_WALK, node.paging.hmm_walk_ps(vma, start, end)
        count = end - start + 1
        for gpu in gpus:
            yield from node.devices[gpu].tables.stages(count)

        def mapped(chain: Chain, start: int = start, end: int = end, read: bool = not rights.write) -> None:
            if vma.gone:
                return
            for gpu in gpus:
                region = kfd.region(vma, gpu)
                node.devices[gpu].gpu.releasing = chain.snapshot()
                writable = not (read or read_only)
                map_as_it_lies(region, vma, start, end, hip.env.now, writable=writable)
            svm.mapped = True
            svm.validated_ps = hip.env.now
            svm.validated_by = chain.row

        yield Tell(mapped)
