"""hipMemcpy: pinned, pageable through staging buffers, inside a device, and between devices."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from gpusim.driver.migrate import sdma_transfer
from gpusim.engine.flows import Hop
from gpusim.engine.record import Chain
from gpusim.engine.stages import Stages, Transfer
from gpusim.hardware.access import Client
from gpusim.hardware.engine_faults import fault_in
from gpusim.hardware.gpu import Gpu, HostWays
from gpusim.hardware.gpuvm import INVALID
from gpusim.kinds import Kind
from gpusim.linux.address_space import VRAM
from gpusim.runtime.allocation import IN_VRAM, MANAGED, Allocation, Allocator
from gpusim.runtime.hip import Hip, Thread
from gpusim.runtime.locked_copies import locked_copy
from gpusim.runtime.mappings import check_rights
from gpusim.runtime.memory import bring_back
from gpusim.runtime.operation import Operation
from gpusim.runtime.operations import staged
from gpusim.runtime.staging import bounce_copy, staged_down, staged_up


class Place(StrEnum):
    """Where an end of a copy lies."""

    DEVICE = "device"
    PINNED = "pinned"
    PAGEABLE = "pageable"


def memcpy(
    hip: Hip,
    thread: Thread,
    dst: str,
    src: str,
    *,
    dst_offset: int | None,
    src_offset: int | None,
    size: int | None,
    stream: str | None,
) -> Operation:
    """Submit a copy; the caller waits for it if the call is synchronous."""
    target, source = hip.allocation(dst), hip.allocation(src)
    length = size
    if length is None:
        length = min(target.size - (dst_offset or 0), source.size - (src_offset or 0))
    to = target.slice(dst_offset, length)
    origin = source.slice(src_offset, length)

    def stages(chain: Chain) -> Stages:
        yield from copy(hip, chain, operation, target, to, source, origin)

    operation = staged(hip, f"memcpy.{src}.{dst}", stages)
    operation.size = length
    return hip.submit(thread, operation, stream)


def copy(
    hip: Hip,
    chain: Chain,
    operation: Operation,
    target: Allocation,
    to: tuple[int, int],
    source: Allocation,
    origin: tuple[int, int],
    *,
    batch: int = 1,
) -> Stages:
    """One copy between parts (first byte, size) of buffers; or `batch` of them, one behind the other, in one call."""
    length = to[1] // batch
    yield from _walk(hip, chain, target, to, source, origin)
    place_to, device_to = _place(hip, target, *to)
    place_from, device_from = _place(hip, source, *origin)
    operation.where = (device_from, device_to)
    if Place.DEVICE not in (place_to, place_from):
        yield from _prepare(hip, chain, source, *origin, write=False)
        yield from _prepare(hip, chain, target, *to, write=True)
        here, there = source.vma.memory_node, target.vma.memory_node
        yield bounce_copy(hip, to[1], there or here, write=there > 0)
        return
    if place_to is place_from:
        gpu = hip.node.devices[device_from].gpu
        for _ in range(batch):
            yield from (
                _inside(gpu, length) if device_to == device_from else _peer(hip, gpu, device_to, length)
            )
        return
    up = place_to is Place.DEVICE
    gpu = hip.node.devices[device_to if up else device_from].gpu
    pinned = (place_from if up else place_to) is Place.PINNED
    side, part = (source, origin) if up else (target, to)
    ways = gpu.host_ways[side.vma.memory_node]
    small = gpu.spec.sdma.small
    if pinned and small is not None and length <= small.most:
        yield Kind.COPY_SETUP, batch * small.copy_batched if batch > 1 else small.copy_alone
        yield _blit(hip, gpu, ways.reads if up else ways.writes, to[1])
        return
    mapped = not pinned and side.vma.backing is not None
    if not pinned and not mapped:
        yield from _prepare(hip, chain, side, *part, write=not up)
    for number in range(batch):
        if hip.kfd.dead:
            return
        yield Kind.COPY_SETUP, gpu.spec.sdma.copy_h2d if up else gpu.spec.sdma.copy_d2h
        first = part[0] + number * length
        if pinned:
            yield _engine(hip, gpu, ways, length, up=up)
        elif not mapped and hip.locks_from is not None and length >= hip.locks_from:
            yield from locked_copy(hip, chain, gpu, side, first, length, up=up)
        else:

            def touch(at: int, size: int, first: int = first) -> Stages:
                yield from _prepare(hip, chain, side, first + at, size, write=not up)

            staging = staged_up if up else staged_down
            yield from staging(hip, gpu, length, touch if mapped else None, numa=side.vma.memory_node)


def _walk(
    hip: Hip,
    chain: Chain,
    target: Allocation,
    to: tuple[int, int],
    source: Allocation,
    origin: tuple[int, int],
) -> Stages:
    """With XNACK on, the engine walks SVM memory by the GPU's page tables: a page that it does not find is a fault.

    As with a kernel, the driver then decides where the page goes. Managed memory is always reached in this way, other
    host memory where it is registered; what is pageable is copied by the CPU. Left out: that the engine moves what lies
    before a missing page while it waits.
    """
    place_to, device_to = _place(hip, target, *to)
    place_from, device_from = _place(hip, source, *origin)
    device = device_from if place_from is Place.DEVICE else device_to
    if not hip.kfd.xnack or device < 0:
        return
    gpu = hip.node.devices[device].gpu
    client = Client.SDMA if hip.sdma else Client.COMPUTE_UNIT
    for allocation, part, place, write in (
        (source, origin, place_from, False),
        (target, to, place_to, True),
    ):
        if _walked(hip, allocation, place, part[1]):
            region = hip.kfd.region(allocation.vma, device)
            start, end = allocation.pages(*part)
            base = region.first_page
            yield from fault_in(gpu, chain, region, start - base, end - base, write=write, client=client)


def _walked(hip: Hip, allocation: Allocation, place: Place, size: int) -> bool:
    """Do engines reach it by its address, and nobody has seen to it that it is mapped?"""
    if place is not Place.PAGEABLE:
        return allocation.is_svm
    locked = hip.locks_from is not None and size >= hip.locks_from
    return allocation.allocator in MANAGED and not locked


def _place(hip: Hip, allocation: Allocation, first: int, size: int) -> tuple[Place, int]:
    """Where a part of a buffer lies now, and the GPU for DEVICE. What lies there only in part counts as pageable."""
    if allocation.allocator in IN_VRAM:
        return Place.DEVICE, allocation.gpu
    if allocation.allocator is Allocator.HIP_HOST_MALLOC:
        return Place.PINNED, -1
    start, end = allocation.pages(first, size)
    if allocation.vma.pins and not allocation.vma.movable(start, end):
        return Place.PINNED, -1  # registered
    for device in hip.node.devices:
        if allocation.vma.count(start, end, VRAM + device.gpu.index) == end - start + 1:
            return Place.DEVICE, device.gpu.index
    if hip.kfd.xnack and allocation.allocator in MANAGED and _mapped(hip, allocation, start, end):
        return Place.PINNED, -1  # in place, or in part: read where it is
    return Place.PAGEABLE, -1


def _mapped(hip: Hip, allocation: Allocation, start: int, end: int) -> bool:
    """Does a GPU find each of these pages?"""
    for device in hip.node.devices:
        region = hip.kfd.region(allocation.vma, device.gpu.index)
        if region.valid.find(INVALID, start - region.first_page, end - region.first_page + 1) < 0:
            return True
    return False


def _prepare(hip: Hip, chain: Chain, allocation: Allocation, first: int, size: int, *, write: bool) -> Stages:
    """The CPU side of a pageable copy faults back what lies in VRAM, and touches its pages."""
    if not allocation.is_svm:
        return
    start, end = allocation.pages(first, size)
    check_rights(hip, allocation.vma, start, end, write=write)
    yield from bring_back(hip, chain, allocation.vma, start, end)
    what = f"{hip.kfd.name}: copy of {allocation.name!r}"
    yield from hip.node.paging.fault_in(allocation.vma, start, end, what, write=write, trap=True)


def _engine(hip: Hip, gpu: Gpu, ways: HostWays, size: int, *, up: bool) -> Transfer:
    """Pinned memory: by SDMA, or by a blit kernel where the program's environment says so."""
    if hip.sdma:
        return sdma_transfer(gpu, ways.h2d if up else ways.d2h, size, flights=hip.flights)
    return _blit(hip, gpu, ways.reads if up else ways.writes, size)


def _blit(hip: Hip, gpu: Gpu, way: tuple[Hop, ...], size: int) -> Transfer:
    """A copy by wavefronts across links. Left out: the slots that they take, and their HBM traffic."""
    rate = gpu.spec.sdma.d2d_rate

    def start(done: Callable[[], None]) -> None:
        cap = rate / gpu.recorder.pace(Kind.ZERO_COPY_LINK)
        copied.on(
            hip.flights.fly(
                lambda ended: gpu.network.transfer(way, size, cap_bytes_per_s=cap, done=ended),
                lambda _: done(),
            )
        )

    copied = Transfer(Kind.ZERO_COPY_LINK, start)
    return copied


def _peer(hip: Hip, gpu: Gpu, target: int, size: int) -> Stages:
    """From one GPU's VRAM to another's: by the source's SDMA, or by a kernel there."""
    by_engine, by_kernel = gpu.copies_to[target]
    if hip.peer_sdma:
        yield Kind.COPY_SETUP, gpu.spec.sdma.copy_d2h
        yield sdma_transfer(gpu, by_engine, size, flights=hip.flights)
    else:
        yield Kind.COPY_SETUP, gpu.spec.sdma.copy_d2d
        yield _blit(hip, gpu, by_kernel, size)


def _inside(gpu: Gpu, size: int) -> Stages:
    """A blit kernel: reads and writes share HBM with other kernels."""
    yield Kind.COPY_SETUP, gpu.spec.sdma.copy_d2d
    blit = gpu.hbm.job_class(2.0 * gpu.spec.sdma.d2d_rate / gpu.recorder.pace(Kind.HBM))
    alone = blit.alone_ps(2 * size)
    yield Transfer(Kind.HBM, lambda done: blit.enter(2 * size, done), alone_ps=alone)
