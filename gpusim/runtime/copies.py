"""hipMemcpy: pinned, pageable through staging buffers, and inside the device."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from gpusim.driver.migrate import sdma_transfer
from gpusim.engine.record import Chain
from gpusim.engine.stages import Stages, Transfer
from gpusim.errors import NotSupportedYet, Problem
from gpusim.hardware.gpu import Gpu
from gpusim.kinds import Kind
from gpusim.linux.address_space import VRAM
from gpusim.runtime.allocation import Allocation, Allocator
from gpusim.runtime.hip import Hip, Thread
from gpusim.runtime.operation import Operation
from gpusim.runtime.operations import staged


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

    def stages(_: Chain) -> Stages:
        place_to, device_to = _place(hip, target, *to)
        place_from, device_from = _place(hip, source, *origin)
        if Place.DEVICE not in (place_to, place_from):
            yield from _on_host(hip, target, to, source, origin)
        elif place_to is place_from:
            if device_to != device_from:
                raise _unsupported(hip, "peer copies between GPUs")
            yield from _inside(hip.node.devices[device_to].gpu, length)
        elif place_to is Place.DEVICE:
            gpu = hip.node.devices[device_to].gpu
            yield Kind.COPY_SETUP, gpu.spec.sdma.copy_h2d
            if place_from is Place.PINNED:
                yield sdma_transfer(gpu, gpu.h2d, length)
            else:
                yield from _populate(hip, source, *origin, write=False)
                yield from staged_up(hip, gpu, length)
        else:
            gpu = hip.node.devices[device_from].gpu
            yield Kind.COPY_SETUP, gpu.spec.sdma.copy_d2h
            if place_to is Place.PINNED:
                yield sdma_transfer(gpu, gpu.d2h, length)
            else:
                yield from _populate(hip, target, *to, write=True)
                yield from staged_down(hip, gpu, length)

    operation = staged(hip, f"memcpy.{src}.{dst}", stages)
    operation.size = length
    return hip.submit(thread, operation, stream)


def _place(hip: Hip, allocation: Allocation, first: int, size: int) -> tuple[Place, int]:
    """Where a part of a buffer lies now, and the GPU for DEVICE."""
    if allocation.allocator is Allocator.HIP_MALLOC:
        return Place.DEVICE, allocation.gpu
    if allocation.allocator is Allocator.HIP_HOST_MALLOC:
        return Place.PINNED, -1
    start, end = allocation.pages(first, size)
    for device in hip.node.devices:
        there = allocation.vma.count(start, end, VRAM + device.gpu.index)
        if there == end - start + 1:
            return Place.DEVICE, device.gpu.index
        if there:
            raise _unsupported(hip, f"memcpy of {allocation.name!r}, which lies partly in VRAM")
    return Place.PAGEABLE, -1


def _unsupported(hip: Hip, what: str) -> NotSupportedYet:
    return NotSupportedYet([Problem(f"{what} not supported yet", path=f"processes.{hip.kfd.name}")])


def _populate(hip: Hip, allocation: Allocation, first: int, size: int, *, write: bool) -> Stages:
    """The CPU side of a pageable copy touches its pages first."""
    if not allocation.is_svm:
        return
    start, end = allocation.pages(first, size)
    what = f"{hip.kfd.name}: copy of {allocation.name!r}"
    yield from hip.node.paging.fault_in(allocation.vma, start, end, what, write=write, trap=True)


def _chunks(hip: Hip, gpu: Gpu, size: int) -> tuple[list[int], Callable[[int], int]]:
    chunk = gpu.spec.sdma.staging
    sizes = [min(chunk, size - first) for first in range(0, size, chunk)]
    rate = hip.node.host_spec.copy_bandwidth
    return sizes, lambda part: round(part * 1e12 / rate)


def staged_up(hip: Hip, gpu: Gpu, size: int) -> Stages:
    """Host to device: the CPU fills one staging buffer while SDMA empties the other."""
    sizes, bounce = _chunks(hip, gpu, size)
    yield Kind.BOUNCE_COPY, bounce(sizes[0])
    for part, following in zip(sizes, [*sizes[1:], 0], strict=True):
        yield sdma_transfer(gpu, gpu.h2d, part, (Kind.BOUNCE_COPY, bounce(following)))


def staged_down(hip: Hip, gpu: Gpu, size: int) -> Stages:
    """Device to host: SDMA fills one staging buffer while the CPU empties the other."""
    sizes, bounce = _chunks(hip, gpu, size)
    for part, previous in zip(sizes, [0, *sizes[:-1]], strict=True):
        yield sdma_transfer(gpu, gpu.d2h, part, (Kind.BOUNCE_COPY, bounce(previous)))
    yield Kind.BOUNCE_COPY, bounce(sizes[-1])


def _inside(gpu: Gpu, size: int) -> Stages:
    """A blit kernel: reads and writes share HBM with other kernels."""
    yield Kind.COPY_SETUP, gpu.spec.sdma.copy_d2d
    blit = gpu.hbm.job_class(2.0 * gpu.spec.sdma.d2d_rate)
    yield Transfer(Kind.HBM, lambda done: blit.enter(2 * size, done))


def _on_host(
    hip: Hip, target: Allocation, to: tuple[int, int], source: Allocation, origin: tuple[int, int]
) -> Stages:
    yield from _populate(hip, source, *origin, write=False)
    yield from _populate(hip, target, *to, write=True)
    yield Kind.BOUNCE_COPY, round(to[1] * 1e12 / hip.node.host_spec.copy_bandwidth)
