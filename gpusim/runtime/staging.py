"""Pageable copies: through two pinned staging buffers of HIP, one filled while the other is emptied.

The CPU's part reads and writes host memory, which it shares with other threads, the page cache and drives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpusim.driver.migrate import sdma_transfer
from gpusim.engine.flows import Flow
from gpusim.engine.stages import Stages, Transfer
from gpusim.hardware.gpu import Gpu
from gpusim.kinds import Kind
from gpusim.runtime.hip import Hip

#: has the CPU touch a part of the program's buffer before it copies it: first byte and size
Touch = Callable[[int, int], Stages]


def staged_up(hip: Hip, gpu: Gpu, size: int, touch: Touch | None = None, *, numa: int = 0) -> Stages:
    """Host to device: the CPU fills one staging buffer while SDMA empties the other.

    `numa`: where the program's buffer lies.
    """
    sizes = _chunks(gpu, size)
    if touch is not None:
        yield from touch(0, sizes[0])
    yield bounce_copy(hip, sizes[0], numa)
    at = sizes[0]
    for part, following in zip(sizes, [*sizes[1:], 0], strict=True):
        if hip.kfd.dead:
            return
        if touch is not None and following:
            yield from touch(at, following)
            at += following
        yield _beside(sdma_transfer(gpu, gpu.h2d, part, flights=hip.flights), hip, following, numa)


def staged_down(hip: Hip, gpu: Gpu, size: int, touch: Touch | None = None, *, numa: int = 0) -> Stages:
    """Device to host: SDMA fills one staging buffer while the CPU empties the other."""
    sizes = _chunks(gpu, size)
    at = 0
    for part, previous in zip(sizes, [0, *sizes[:-1]], strict=True):
        if hip.kfd.dead:
            return
        if touch is not None and previous:
            yield from touch(at, previous)
            at += previous
        yield _beside(sdma_transfer(gpu, gpu.d2h, part, flights=hip.flights), hip, previous, numa, write=True)
    if touch is not None:
        yield from touch(at, sizes[-1])
    yield bounce_copy(hip, sizes[-1], numa, write=True)


def bounce_copy(hip: Hip, size: int, numa: int = 0, *, write: bool = False) -> Transfer:
    """A thread copies `size` bytes from host memory to host memory: out of a NUMA node, or into it (`write`)."""

    def start(done: Callable[[], None]) -> None:
        copied.on(_by_thread(hip, size, numa, write, done))

    copied = Transfer(Kind.BOUNCE_COPY, start)
    return copied


def _by_thread(hip: Hip, size: int, numa: int, write: bool, done: Callable[[], None]) -> Flow:
    enter = partial(hip.node.copy_memory.enter, size, numa=numa, write=write)
    return hip.flights.fly(enter, lambda _: done())


def _chunks(gpu: Gpu, size: int) -> list[int]:
    chunk = gpu.spec.sdma.staging
    return [min(chunk, size - first) for first in range(0, size, chunk)]


def _beside(transfer: Transfer, hip: Hip, size: int, numa: int, *, write: bool = False) -> Transfer:
    """`transfer` and a bounce copy of `size` bytes at once: the longer of the two gets the whole stretch."""
    if not size:
        return transfer
    by_engine, engine = transfer.start, transfer.kind
    running = [2]
    alone: dict[int, int | None] = {}

    def start(done: Callable[[], None]) -> None:
        def ended(kind: int) -> None:
            running[0] -= 1
            if not running[0]:
                transfer.kind = kind
                transfer.alone_ps = alone[kind]
                done()
            else:
                transfer.first = (kind, hip.env.now)
                transfer.first_alone_ps = alone[kind]

        by_engine(partial(ended, engine))
        alone[engine] = transfer.alone_ps
        alone[Kind.BOUNCE_COPY] = _by_thread(
            hip, size, numa, write, partial(ended, Kind.BOUNCE_COPY)
        ).alone_ps

    transfer.start = start
    return transfer
