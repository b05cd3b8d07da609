"""Many direct requests of one thread at once, as libaio and io_uring have them: submit, reap, and copy to the GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from functools import partial

from gpusim.engine.stages import Stage, Stages, Transfer
from gpusim.errors import CallError
from gpusim.kinds import Kind
from gpusim.runtime.file_job import Block
from gpusim.runtime.hipfile.faults import FaultPlace
from gpusim.runtime.hipfile.synchronous import failure
from gpusim.runtime.io_log import Series
from gpusim.runtime.operations import in_null_stream
from gpusim.runtime.posix_io import REASON, Posix


class _Request:
    """One in flight: submitted from `start_ps` to `submitted_ps`, done at `done_ps` with `moved` bytes, or an error."""

    __slots__ = ("code", "done_ps", "moved", "offset", "size", "start_ps", "submitted_ps", "write")

    def __init__(self, offset: int, size: int, write: bool, start_ps: int) -> None:
        self.offset = offset
        self.size = size
        self.write = write
        self.start_ps = start_ps
        self.submitted_ps = 0
        self.done_ps = 0
        self.moved = 0
        self.code: str | None = None


class DirectQueue:
    """A thread with at most `depth` requests in flight, each with a host buffer of its own; what is done comes next.

    One request costs one system call; the thread copies to and from the GPU itself. Left out: submitting several by one
    call, polled completions, and registered buffers of io_uring.
    """

    def __init__(self, posix: Posix, depth: int) -> None:
        self._posix = posix
        self._depth = depth
        self._flying = 0
        self._ready: deque[_Request] = deque()
        self._wake: Callable[[], None] | None = None
        self._writing = False  # the request that was reaped last
        self._ended = False  # a read has found the end of the file

    def run(self, writes: Callable[[], bool], blocks: Iterable[Block]) -> Stages:
        """All blocks, begun in their order; reading ends with the file."""
        posix = self._posix
        try:
            for offset, _, size in blocks:
                while self._flying >= self._depth:
                    yield from self._reap()
                if self._ended or posix.hip.kfd.dead:
                    break
                yield from self._submit(offset, size, writes())
            while self._flying:
                yield from self._reap()
        except CallError as error:
            self._series(self._writing).failed(error.code)
            while self._flying:  # the kernel does not let the process go before
                yield from self._wait()
            raise failure("pwrite" if self._writing else "pread", posix.file.name, error) from None

    def _series(self, write: bool) -> Series:
        library = self._posix.library
        return library.log.of(library.process, "posix", write)

    def _submit(self, offset: int, size: int, write: bool) -> Stages:
        posix, chain = self._posix, self._posix.chain
        before, request = chain.sums.copy(), _Request(offset, size, write, chain.time_ps)
        try:
            if write and posix.gpu is not None:
                yield from in_null_stream(posix.hip, chain, posix.down(posix.gpu, size))
            where = FaultPlace.PWRITE if write else FaultPlace.PREAD
            size = self._granted(where, size)
            done = partial(self._done, request)
            yield from posix.library.kernel.submit_direct(posix.file, offset, size, done, write=write)
        except CallError as error:
            self._fail(request, error)
        self._flying += 1
        request.submitted_ps = chain.time_ps
        self._series(write).charge(before, chain.sums)

    def _granted(self, where: FaultPlace, size: int) -> int:
        """What an injected fault leaves of a request; one that a signal interrupts is submitted again."""
        while True:
            try:
                return self._posix.granted(where, size)
            except CallError as error:
                if error.code != "EINTR":
                    raise

    def _done(self, request: _Request, moved: int) -> None:
        request.moved = moved
        request.done_ps = self._posix.hip.env.now
        self._ready.append(request)
        if self._wake is not None:
            wake, self._wake = self._wake, None
            wake()

    def _fail(self, request: _Request, error: CallError) -> None:
        request.code = error.code
        request.done_ps = self._posix.chain.time_ps
        self._ready.append(request)

    def _wait(self) -> Generator[Stage, int, _Request]:
        """Until one is done; the first of those is taken."""
        if not self._ready:

            def start(woken: Callable[[], None]) -> None:
                if self._ready:
                    woken()
                else:
                    self._wake = woken

            yield Transfer(Kind.DRIVE, start)
        self._flying -= 1
        return self._ready.popleft()

    def _reap(self) -> Stages:
        """Take one that is done; what it leaves is submitted again, and 0 bytes of a read end the job."""
        posix, chain = self._posix, self._posix.chain
        request = yield from self._wait()
        self._writing = request.write
        if request.code is not None:
            raise CallError(request.code)
        series, before = self._series(request.write), chain.sums.copy()
        if posix.hip.node.recorder.on:
            series.waited(Kind.DRIVE, request.done_ps - request.submitted_ps)
            series.waited(Kind.IO_QUEUE, chain.time_ps - request.done_ps)
        if request.moved and not request.write and posix.gpu is not None:
            yield from in_null_stream(posix.hip, chain, posix.up(posix.gpu, request.moved))
        series.charge(before, chain.sums)
        series.add(request.start_ps, chain.time_ps, request.moved, REASON)
        posix.tally.bytes += request.moved
        left = request.size - request.moved
        if not request.moved:
            self._ended = True
        elif left and not posix.hip.kfd.dead:
            yield from self._submit(request.offset + request.moved, left, request.write)
