"""hipFileReadAsync and hipFileWriteAsync: operations of a stream, by revision (`hipfile.md` 3.1).

All host functions of a process run on one thread of HIP's, one after another; a host function that does file I/O holds
it for as long. Parameters that are bound late are read by a host function of their own, where the call is carried out
in the stream. Left out: that freeing a pinned buffer waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpusim.driver.ais import Bytes
from gpusim.engine.record import Chain, Snapshot
from gpusim.engine.stages import Do, Stages, Tell, Transfer, run_stages
from gpusim.errors import CallError, SimulatedFailure
from gpusim.kinds import Kind
from gpusim.runtime.hip import Hip, Thread
from gpusim.runtime.hipfile import codes
from gpusim.runtime.hipfile.backends import check_range
from gpusim.runtime.hipfile.calls import Calls
from gpusim.runtime.hipfile.client import UNALIGNED
from gpusim.runtime.hipfile.faults import FaultPlace
from gpusim.runtime.hipfile.library import HipFile
from gpusim.runtime.hipfile.pooled import Answer, Late, kill, run_in_pool, serve_request
from gpusim.runtime.hipfile.scoring import REFUSED, Reason, Request, scores
from gpusim.runtime.hipfile.version import AsyncMode
from gpusim.runtime.operation import Operation
from gpusim.spec import PAGE_BYTES


class AsyncIo:
    """The asynchronous calls of one process."""

    def __init__(self, hip: Hip, library: HipFile) -> None:
        self._hip = hip
        self._library = library
        self._buffers: set[str] = set()  # streams that have their bounce buffer
        self._mode = library.config.revision.async_mode

    def submit(
        self, thread: Thread, request: Request, stream: str, late: Late | None = None
    ) -> tuple[Operation, Answer, Stages]:
        """The operation, its answer, and what the call itself takes of the calling thread.

        The caller spends the stages, then submits the operation. Raises CallError as the call does.
        """
        library = self._library
        check_range(request, min(request.size, codes.MOST_BYTES), library.config)
        answer = Answer()
        begun = thread.chain.time_ps
        if self._mode is AsyncMode.POOL:
            if library.wait_value:
                operation = Operation(partial(self._in_pool, request, answer, begun, late))
            else:
                inline = partial(self._inline, request, answer, begun, late)
                operation = Operation(partial(self._run, request, answer, inline))
            entry = self._entry()
        elif self._mode is AsyncMode.PER_STREAM:
            path, reason = self._choose(request)
            work = partial(
                self._by_host_function,
                request,
                answer,
                begun,
                path,
                reason,
                library.config.async_buffer,
                late,
            )
            operation = Operation(partial(self._run, request, answer, work))
            entry = self._entry(library.config.async_buffer if stream not in self._buffers else 0)
            self._buffers.add(stream)
        else:
            size = min(request.size, codes.MOST_BYTES)
            work = partial(
                self._by_host_function, request, answer, begun, "fallback", Reason.ASYNC, size, late
            )
            operation = Operation(partial(self._run, request, answer, work))
            entry = self._entry(size)
        operation.size = request.size
        return operation, answer, entry

    def _choose(self, request: Request) -> tuple[str, Reason]:
        """Scored as a synchronous request, but an error of the fast path is final."""
        config = self._library.config
        (fast, refusal), (slow, slow_refusal) = scores(request, config)
        if fast > slow:
            return "fastpath", Reason.ACCEPTED
        library = self._library
        library.statistics.rejections += 1
        if slow == REFUSED:
            series = library.log.of(library.process, "rejected", request.write)
            series.refused(codes.INTERNAL, f"{refusal}; {slow_refusal}")
            raise CallError(codes.INTERNAL)
        return "fallback", refusal

    def _entry(self, pinned: int = 0) -> Stages:
        """The call, and hipHostMalloc of its bounce buffer. Raises CallError when host memory does not suffice."""
        node, costs = self._hip.node, self._library.costs
        yield Kind.IO_SUBMIT, costs.call
        if pinned:
            pages, cost = -(-pinned // PAGE_BYTES), node.host_spec.pages
            try:
                node.host.take(pages, "bounce buffer of an asynchronous request")
            except SimulatedFailure:
                raise CallError(codes.HIP_OUT_OF_MEMORY) from None
            yield (
                Kind.HOST_ALLOC,
                node.driver.costs.ioctl,
                Kind.PAGE_ALLOC,
                pages * cost.alloc,
                Kind.PAGE_ZERO,
                pages * cost.zero,
                Kind.DMA_MAP,
                pages * cost.dma_map,
            )

    # -- in the stream ---------------------------------------------------------------------------------------------

    def _run(
        self,
        request: Request,
        answer: Answer,
        work: Callable[[Chain], Stages],
        path: Snapshot,
        done: Callable[[Snapshot], None],
    ) -> None:
        hip = self._hip
        recorder = hip.node.recorder
        chain = Chain(recorder, recorder.actor(f"{hip.kfd.name}.hipFile") if recorder.spans else 0)
        chain.follow(path, hip.env.now)
        run_stages(
            hip.env,
            chain,
            hip.node.on_cores(work(chain)),
            lambda: done(chain.snapshot()),
            partial(kill, hip),
        )

    def _by_host_function(
        self,
        request: Request,
        answer: Answer,
        begun: int,
        path: str,
        reason: Reason,
        buffer: int,
        late: Late | None,
        chain: Chain,
    ) -> Stages:
        """File I/O in host functions, the copy between VRAM and the pinned buffer by one block of a kernel."""
        library = self._library
        series = library.log.of(library.process, path, request.write)
        before = chain.sums.copy()
        waited = chain.time_ps - begun
        calls = Calls(self._hip, library, chain)
        try:
            if late is not None:
                yield from self._held(_nothing())
                late.bind(request)
            if path == "fastpath":
                answer.bytes = yield from self._held(calls.ais(request, min(request.size, codes.MOST_BYTES)))
            else:
                answer.bytes = yield from self._in_pieces(calls, request, buffer)
        except CallError as error:
            answer.code = error.code
            series.failed(error.code)
            library.statistics.failed(request.buffer.gpu, path, write=request.write)
        else:
            series.add(begun, chain.time_ps, answer.bytes, reason)
            if self._hip.node.recorder.on:
                series.waited(Kind.SYNC, waited)  # for what is before it in its stream
            library.statistics.served(
                request.buffer.gpu,
                path,
                write=request.write,
                size=answer.bytes,
                time_ps=chain.time_ps - begun,
                unaligned=reason in UNALIGNED,
                async_=True,
            )
        series.charge(before, chain.sums)
        if self._mode is AsyncMode.WHOLE:
            yield Do(partial(self._free, buffer))

    def _in_pieces(self, calls: Calls, request: Request, buffer: int) -> Bytes:
        size = min(request.size, codes.MOST_BYTES)
        done = 0
        while done < size:
            part = min(buffer, size - done)
            if request.write:
                yield from self._kernel(request, part)
            moved = yield from self._held(self._file_part(calls, request, done, part))
            if moved and not request.write:
                yield from self._kernel(request, moved)
            done += moved
            if moved < part:
                break
        return done

    def _file_part(self, calls: Calls, request: Request, done: int, size: int) -> Bytes:
        """A loop of preads or pwrites, to the end of the part or of the file; nothing is synced."""
        moved = 0
        while moved < size:
            try:
                if request.write:
                    step = yield from calls.pwrite(request, done + moved, size - moved)
                else:
                    step = yield from calls.pread(request, done + moved, size - moved, 0)
            except CallError as error:
                if error.code != "EINTR":
                    raise
                continue
            moved += step
            if not step:
                break
        return moved

    def _held(self, work: Bytes) -> Bytes:
        """A host function: it waits for those before it, runs, and lets the next one in."""
        yield self._turn()
        yield Kind.HOST_FUNCTION, self._library.costs.host_function
        try:
            result = yield from work
        except CallError:
            yield Tell(self._let_go)
            raise
        yield Tell(self._let_go)
        return result

    def _turn(self) -> Transfer:
        """The wait for the one thread."""
        library = self._library

        def start(granted: Callable[[], None]) -> None:
            def mine() -> None:
                turn.behind = library.host_function_row
                granted()

            library.host_functions.acquire(1, mine)

        turn = Transfer(Kind.HOST_FUNCTION, start)
        return turn

    def _let_go(self, chain: Chain) -> None:
        self._library.host_function_row = chain.row
        self._library.host_functions.release()

    def _kernel(self, request: Request, size: int) -> Stages:
        """The copy kernel: a launch, and one block's share of the link."""
        gpu = self._hip.node.devices[request.buffer.gpu].gpu
        injector = self._library.injector
        yield Kind.LAUNCH, gpu.spec.compute.launch
        injector.limit(FaultPlace.HIP_MEMCPY, request.file.name, size)
        path = gpu.zero_copy_writes if request.write else gpu.zero_copy_reads
        rate = self._library.costs.copy_block

        def start(done: Callable[[], None]) -> None:
            copied.on(gpu.network.transfer(path, size, cap_bytes_per_s=rate, done=lambda _: done()))

        copied = Transfer(Kind.ZERO_COPY_LINK, start)
        yield copied

    def _free(self, size: int) -> None:
        """A monitor thread of the library frees the buffer when it comes to it."""
        host, cost = self._hip.node.host, self._hip.node.host_spec.pages
        pages = -(-size // PAGE_BYTES)
        _, end = self._library.monitor.reserve(self._hip.node.driver.costs.ioctl + pages * cost.free)
        self._hip.env.call_at(end, lambda: host.give_back(pages))

    # -- in the pool -----------------------------------------------------------------------------------------------

    def _in_pool(
        self,
        request: Request,
        answer: Answer,
        begun: int,
        late: Late | None,
        path: Snapshot,
        done: Callable[[Snapshot], None],
    ) -> None:
        """The synchronous path, retry and all; the stream waits for it."""
        run_in_pool(self._hip, self._library, request, answer, begun, path, done, own_stream=True, late=late)

    def _inline(
        self, request: Request, answer: Answer, begun: int, late: Late | None, chain: Chain
    ) -> Stages:
        """The same in a host function, where a stream of the GPU cannot wait for a value that the pool writes."""
        yield from self._held(
            _then_nothing(serve_request(self._hip, self._library, chain, request, answer, begun, True, late))
        )


def _nothing() -> Bytes:
    """A host function that does no more than look at some numbers."""
    yield ()
    return 0


def _then_nothing(stages: Stages) -> Bytes:
    yield from stages
    return 0
