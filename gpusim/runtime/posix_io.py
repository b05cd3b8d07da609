"""pread and pwrite by a program of its own, and hipMemcpy where the buffer is on a GPU.

The program has one host buffer of a block's size per thread, which it has used before. A copy engine that takes what a
core has just written waits for the part that is still in the core's private cache (`derived.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from gpusim.driver.ais import Bytes
from gpusim.driver.migrate import sdma_transfer
from gpusim.engine.record import Chain
from gpusim.engine.stages import Stage, Stages
from gpusim.errors import CallError
from gpusim.hardware.gpu import Gpu
from gpusim.kinds import Kind
from gpusim.runtime.allocation import Allocation, Allocator
from gpusim.runtime.file_job import Block, Bounce, Tally
from gpusim.runtime.hip import Hip
from gpusim.runtime.hipfile.faults import FaultPlace
from gpusim.runtime.hipfile.library import HipFile
from gpusim.runtime.hipfile.synchronous import failure
from gpusim.runtime.operations import in_null_stream
from gpusim.runtime.staging import staged_down, staged_up
from gpusim.spec import PAGE_BYTES

REASON = "the program calls pread and pwrite itself"


class Posix:
    """One thread of such a program."""

    def __init__(
        self,
        hip: Hip,
        library: HipFile,
        chain: Chain,
        *,
        file: str,
        allocation: Allocation,
        bounce: Bounce,
        direct: bool,
        tally: Tally,
    ) -> None:
        self.hip = hip
        self.library = library
        self.chain = chain
        self.file = library.files[file]
        self.direct = direct
        self.tally = tally
        self._pinned = bounce is Bounce.PINNED
        on_device = allocation.allocator in (Allocator.HIP_MALLOC, Allocator.HSA_POOL)
        self.gpu: Gpu | None = hip.node.devices[allocation.gpu].gpu if on_device else None

    def mixed(self, writes: Callable[[], bool], blocks: Iterable[Block]) -> Stages:
        """All blocks, one after another; `writes` says of each whether it is written."""
        for block in blocks:
            if not (yield from self.run(writes(), (block,))):
                break

    def run(self, write: bool, blocks: Iterable[Block]) -> Generator[Stage, int, Any]:
        """All blocks, one after another; reading ends with the file. Returns whether all were done."""
        chain = self.chain
        series = self.library.log.of(self.library.process, "posix", write)
        before = chain.sums.copy()
        step = self._write if write else self._read
        try:
            for offset, _, size in blocks:
                done = 0
                while done < size and not self.hip.kfd.dead:
                    start = chain.time_ps
                    moved = yield from step(offset + done, size - done)
                    series.add(start, chain.time_ps, moved, REASON)
                    done += moved
                    self.tally.bytes += moved
                    if not moved:
                        return False
            return True
        except CallError as error:
            series.failed(error.code)
            raise failure("pwrite" if write else "pread", self.file.name, error) from None
        finally:
            series.charge(before, chain.sums)

    def _read(self, offset: int, size: int) -> Bytes:
        while True:
            try:
                size = self.granted(FaultPlace.PREAD, size)
                moved = yield from self.library.kernel.pread(self.file, offset, size, direct=self.direct)
                break
            except CallError as error:
                if error.code != "EINTR":
                    raise
        if moved and self.gpu is not None:
            yield from in_null_stream(self.hip, self.chain, self.up(self.gpu, moved))
        return moved

    def _write(self, offset: int, size: int) -> Bytes:
        if self.gpu is not None:
            yield from in_null_stream(self.hip, self.chain, self.down(self.gpu, size))
        while True:
            try:
                size = self.granted(FaultPlace.PWRITE, size)
                return (yield from self.library.kernel.pwrite(self.file, offset, size, direct=self.direct))
            except CallError as error:
                if error.code != "EINTR":
                    raise

    def granted(self, where: FaultPlace, size: int) -> int:
        """What an injected fault leaves of a call: direct I/O ends at a multiple of the alignment. Raises CallError."""
        most = self.library.injector.limit(where, self.file.name, size)
        if most < size and self.direct:
            most -= most % (self.file.dio_offset_align or PAGE_BYTES)
        return most

    def up(self, gpu: Gpu, size: int) -> Stages:
        """Host buffer to GPU."""
        yield Kind.COPY_SETUP, gpu.spec.sdma.copy_h2d
        self.library.injector.limit(FaultPlace.HIP_MEMCPY, self.file.name, size)
        if not self._pinned:
            yield from staged_up(self.hip, gpu, size)
            return
        if not self.direct:  # a core has written it; with direct I/O the drive has
            costs = self.library.costs
            yield Kind.CACHE_DRAIN, round(min(size, costs.private_cache) * 1e12 / costs.dirty_drain)
        yield sdma_transfer(gpu, gpu.h2d, size, flights=self.hip.flights)

    def down(self, gpu: Gpu, size: int) -> Stages:
        """GPU to host buffer."""
        yield Kind.COPY_SETUP, gpu.spec.sdma.copy_d2h
        self.library.injector.limit(FaultPlace.HIP_MEMCPY, self.file.name, size)
        if self._pinned:
            yield sdma_transfer(gpu, gpu.d2h, size, flights=self.hip.flights)
        else:
            yield from staged_down(self.hip, gpu, size)
