"""What the backends call, for one host thread: HIP, the driver, Linux, with the faults that are injected there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.driver.ais import AisFile, Bytes
from gpusim.engine.record import Chain
from gpusim.engine.stages import Stages
from gpusim.errors import CallError
from gpusim.hardware.gpu import Gpu
from gpusim.kinds import Kind
from gpusim.runtime.hip import Hip
from gpusim.runtime.hipfile.faults import FaultPlace
from gpusim.runtime.hipfile.scoring import Request
from gpusim.runtime.operations import in_null_stream
from gpusim.runtime.staging import staged_down, staged_up
from gpusim.spec import PAGE_BYTES

if TYPE_CHECKING:
    from gpusim.runtime.hipfile.library import HipFile


class Calls:
    """The `System` of the backends. `chain` is the critical path of the thread that calls.

    The bounce buffer is pageable memory: hipMemcpy goes through HIP's staging buffers, and the CPU copies once more.
    With `own_stream` a thread copies on a stream of its own that does not wait for the null stream.
    """

    def __init__(self, hip: Hip, library: HipFile, chain: Chain, *, own_stream: bool = False) -> None:
        self._hip = hip
        self._own_stream = own_stream
        self._library = library
        self._kernel = library.kernel
        self._call = library.costs.call
        self._queries = 2 * library.costs.query  # HIP is asked twice about a buffer that is not registered
        self._faulty = FaultPlace.FASTPATH in library.injector.places
        self._started = False  # has this thread made a fast-path request?
        self._open: AisFile | None = None  # the file and the GPU of the last one
        self._pages = hip.node.host_spec.pages
        self.chain = chain

    def ais(self, request: Request, size: int) -> Bytes:
        """The fast path's one ioctl."""
        buffer, chain = request.buffer, self.chain
        before = self._call if buffer.registered else self._call + self._queries
        if not self._started:
            before += self._first_call()
        if self._faulty:
            try:
                most = self._library.injector.limit(FaultPlace.FASTPATH, request.file.name, size)
            except CallError as error:
                return _fails(error, before)
            if most < size:  # direct I/O ends at a multiple of the file's alignment
                size = most - most % request.record.offset_align
        opened = self._open
        if opened is None or opened.file is not request.file or opened.gpu != buffer.gpu:
            opened = self._reopen(request)
        return opened.rw(
            chain, request.file_offset, size, request.buffer_offset, write=request.write, before_ps=before
        )

    def _first_call(self) -> int:
        """What the first fast-path call of a thread costs more; 0 if it has made one."""
        self._started = True
        library, who = self._library, self.chain.who
        if who in library.started:
            return 0
        library.started.add(who)
        return library.costs.first_call

    def _reopen(self, request: Request) -> AisFile:
        library = self._library
        self._open = library.ais.of(
            self._kernel,
            process=library.number,
            gpu=request.buffer.gpu,
            file=request.file,
            lvm=library.config.revision.lvm,
        )
        return self._open

    def map_bounce(self, request: Request, size: int) -> Stages:
        """A request of the fallback begins here, so it pays for its way to here too."""
        yield Kind.IO_SUBMIT, self._call if request.buffer.registered else self._call + self._queries
        self._library.injector.limit(FaultPlace.BOUNCE_MMAP, request.file.name, size)
        yield Kind.BOUNCE_MAP, self._library.costs.map

    def unmap_bounce(self, touched: int) -> Stages:
        """Zap the pages that were touched."""
        yield Kind.BOUNCE_MAP, -(-touched // PAGE_BYTES) * self._pages.free

    def _touch(self, fresh: int) -> Stages:
        """A page fault for each page that is touched for the first time."""
        cost = self._pages
        yield Kind.BOUNCE_MAP, -(-fresh // PAGE_BYTES) * (cost.fault + cost.alloc + cost.zero)

    def pread(self, request: Request, done: int, size: int, fresh: int) -> Bytes:
        """Through the page cache."""
        size = self._library.injector.limit(FaultPlace.PREAD, request.file.name, size)
        moved = yield from self._kernel.pread(request.file, request.file_offset + done, size)
        if fresh:
            yield from self._touch(min(fresh, moved))
        return moved

    def pwrite(self, request: Request, done: int, size: int) -> Bytes:
        """Through the page cache."""
        size = self._library.injector.limit(FaultPlace.PWRITE, request.file.name, size)
        return (yield from self._kernel.pwrite(request.file, request.file_offset + done, size))

    def fdatasync(self, request: Request) -> Stages:
        """After each chunk."""
        self._library.injector.limit(FaultPlace.FDATASYNC, request.file.name, 0)
        yield from self._kernel.fdatasync(request.file)

    def to_device(self, request: Request, size: int) -> Stages:
        """A blocking hipMemcpy."""
        gpu = self._gpu(request)
        setup = gpu.spec.sdma.copy_h2d
        return self._memcpy(request, size, setup, staged_up(self._hip, gpu, size))

    def from_device(self, request: Request, size: int, fresh: int) -> Stages:
        """A blocking hipMemcpy; the null stream has nothing left to wait for then."""
        gpu = self._gpu(request)
        if fresh:
            yield from self._touch(fresh)
        setup = gpu.spec.sdma.copy_d2h
        yield from self._memcpy(request, size, setup, staged_down(self._hip, gpu, size))

    def _memcpy(self, request: Request, size: int, setup: int, copy: Stages) -> Stages:
        def work() -> Stages:
            yield Kind.COPY_SETUP, setup
            self._library.injector.limit(FaultPlace.HIP_MEMCPY, request.file.name, size)
            yield from copy

        return work() if self._own_stream else in_null_stream(self._hip, self.chain, work())

    def _gpu(self, request: Request) -> Gpu:
        return self._hip.node.devices[request.buffer.gpu].gpu


def _fails(error: CallError, before_ps: int) -> Bytes:
    """A call that costs its way there, and fails."""
    yield Kind.IO_SUBMIT, before_ps
    raise error
