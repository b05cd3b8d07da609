"""File calls of a program: registration, and jobs of reads and writes through each interface."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from gpusim.engine.stages import Stages
from gpusim.errors import CallError, SimulatedFailure
from gpusim.kinds import Kind
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.direct_queue import DirectQueue
from gpusim.runtime.file_job import Block, FileApi, FileJob, Layout, Share, Tally, direction
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.hipfile.batch import Batch, iter_stage
from gpusim.runtime.hipfile.client import tell_refused
from gpusim.runtime.hipfile.library import HipFile
from gpusim.runtime.hipfile.pooled import Answer, Late
from gpusim.runtime.hipfile.scoring import Request
from gpusim.runtime.hipfile.streams import AsyncIo
from gpusim.runtime.hipfile.synchronous import failure, mixed, new_request, synchronous
from gpusim.runtime.operation import Operation
from gpusim.runtime.piece_layout import PieceLayout
from gpusim.runtime.posix_io import Posix


class Files:
    """What the file steps of one process call."""

    def __init__(self, hip: Hip, library: HipFile, seed: int) -> None:
        self._hip = hip
        self._library = library
        self._seed = seed
        self._async = AsyncIo(hip, library)

    def register_file(self, thread: Thread, name: str, *, opened_direct: bool) -> Steps:
        """hipFileHandleRegister."""
        yield from thread.stages(
            _failing(
                "hipFileHandleRegister", name, self._library.register_file(name, opened_direct=opened_direct)
            )
        )

    def register_buffer(self, thread: Thread, name: str) -> Steps:
        """hipFileBufRegister."""
        stages = self._library.register_buffer(self._hip.allocation(name))
        yield from thread.stages(_failing("hipFileBufRegister", name, stages, "buffer"))

    def deregister_file(self, thread: Thread, name: str) -> Steps:
        """hipFileHandleDeregister."""
        yield from thread.stages(self._library.deregister_file(name))

    def deregister_buffer(self, thread: Thread, name: str) -> Steps:
        """hipFileBufDeregister."""
        stages = self._library.deregister_buffer(self._hip.allocation(name))
        yield from thread.stages(_failing("hipFileBufDeregister", name, stages, "buffer"))

    def open_driver(self, thread: Thread) -> Steps:
        """hipFileDriverOpen."""
        yield from thread.stages(self._library.open_driver())

    def close_driver(self, thread: Thread) -> Steps:
        """hipFileDriverClose."""
        yield from thread.stages(_failing("hipFileDriverClose", "", self._library.close_driver(), ""))

    def transfer(self, thread: Thread, job: FileJob, label: str, moved: Callable[[int], None]) -> Steps:
        """Do a job; `moved` is told the bytes that its calls have moved in all.

        Files that are not registered are registered first, as every program has to, but not those that the program has
        deregistered. Raises SimulatedFailure for an
        error that a call returns.
        """
        allocation = self._hip.allocation(job.buffer)
        library = self._library
        if job.api is not FileApi.POSIX:
            for name in dict.fromkeys(job.files):
                if name not in library.records and name not in library.given_up:
                    yield from self.register_file(thread, name, opened_direct=False)
        held = (allocation, *dict.fromkeys(job.files)) if job.api is not FileApi.POSIX else ()
        library.hold(*held)
        try:
            yield from self._transfer(thread, job, allocation, label, moved)
        finally:
            library.let_go(*held)

    def _transfer(
        self,
        thread: Thread,
        job: FileJob,
        allocation: Allocation,
        label: str,
        moved: Callable[[int], None],
    ) -> Steps:
        kind = PieceLayout if job.pieces else Layout
        layout = kind(
            job,
            file_bytes=min(self._library.files[name].size for name in job.files),
            buffer_bytes=allocation.size,
        )
        tally = Tally()
        failures: list[SimulatedFailure] = []
        body = {
            FileApi.SYNC: self._sync,
            FileApi.ASYNC: self._asynchronous,
            FileApi.BATCH: self._batch,
            FileApi.POSIX: self._posix,
        }[job.api]

        def lane(share: Share) -> Callable[[Thread], Steps]:
            blocks = layout.of(share, f"{self._seed}.{self._hip.kfd.name}.{label}")
            end = None if job.duration_ps is None else thread.chain.time_ps + job.duration_ps

            def taken(own: Thread) -> Iterator[Block]:
                for block in blocks:
                    if end is not None and own.chain.time_ps >= end:
                        return
                    yield block

            def run(own: Thread) -> Steps:
                begun = own.chain.mark(Kind.IO_QUEUE) if end is not None else 0
                try:
                    yield from body(own, job, allocation, share, blocks if end is None else taken(own), tally)
                except SimulatedFailure as error:
                    failures.append(error)
                if end is not None and job.duration_ps is not None and own.chain.time_ps >= end:
                    own.chain.not_before(Kind.IO_QUEUE, begun, job.duration_ps)

            return run

        shares = layout.shares()
        if len(shares) == 1:
            yield from lane(shares[0])(thread)
        else:
            yield from thread.side_by_side([lane(share) for share in shares])
        moved(tally.bytes)
        if failures:
            raise failures[0]

    # -- one thread of a job ---------------------------------------------------------------------------------------

    def _sync(
        self,
        thread: Thread,
        job: FileJob,
        allocation: Allocation,
        share: Share,
        blocks: Iterator[Block],
        tally: Tally,
    ) -> Steps:
        library = self._library
        buffer = library.buffer(allocation)
        chain = thread.chain
        if job.mix:
            writes = direction(job, self._seed_of(share))
            yield from thread.stages(
                mixed(self._hip, library, chain, share.file, buffer, writes, blocks, tally)
            )
        else:
            yield from thread.stages(
                synchronous(self._hip, library, chain, share.file, buffer, job.write, blocks, tally)
            )

    def _posix(
        self,
        thread: Thread,
        job: FileJob,
        allocation: Allocation,
        share: Share,
        blocks: Iterator[Block],
        tally: Tally,
    ) -> Steps:
        posix = Posix(
            self._hip,
            self._library,
            thread.chain,
            file=share.file,
            allocation=allocation,
            bounce=job.bounce,
            direct=job.direct,
            tally=tally,
        )
        writes = direction(job, self._seed_of(share))
        if job.depth > 1:
            yield from thread.stages(DirectQueue(posix, job.depth).run(writes, blocks))
        elif job.mix:
            yield from thread.stages(posix.mixed(writes, blocks))
        else:
            yield from thread.stages(posix.run(job.write, blocks))

    def _asynchronous(
        self,
        thread: Thread,
        job: FileJob,
        allocation: Allocation,
        share: Share,
        blocks: Iterator[Block],
        tally: Tally,
    ) -> Steps:
        """`depth` calls in flight on a stream of the thread's own, or of the step's; the oldest is waited for."""
        writes = direction(job, self._seed_of(share))
        call = "hipFileWriteAsync" if job.write else "hipFileReadAsync"
        stream = job.stream or f"{job.buffer}.{share.number}"
        late = Late(job.late_size) if job.late or job.late_size is not None else None
        flying: deque[tuple[Operation, Answer]] = deque()
        try:
            for block in blocks:
                if self._hip.kfd.dead:
                    return
                if len(flying) == job.depth:
                    yield from self._landed(thread, flying, call, share.file, tally)
                request = self._request(allocation, share, block, write=writes())
                operation, answer, entry = self._async.submit(thread, request, stream, late)
                yield from thread.stages(_failing(call, share.file, entry))
                self._hip.submit(thread, operation, stream)
                flying.append((operation, answer))
        except CallError as error:
            raise failure(call, share.file, error) from None
        while flying:
            yield from self._landed(thread, flying, call, share.file, tally)

    @staticmethod
    def _landed(
        thread: Thread, flying: deque[tuple[Operation, Answer]], call: str, file: str, tally: Tally
    ) -> Steps:
        operation, answer = flying.popleft()
        yield from thread.wait_for(operation)
        if answer.code is not None:
            raise failure(call, file, CallError(answer.code))
        tally.bytes += answer.bytes

    def _batch(
        self,
        thread: Thread,
        job: FileJob,
        allocation: Allocation,
        share: Share,
        blocks: Iterator[Block],
        tally: Tally,
    ) -> Steps:
        """`depth` entries in flight: one context, and a new entry for each that has ended."""
        writes = direction(job, self._seed_of(share))
        call = "hipFileBatchIOSubmit"
        try:
            batch = Batch(self._hip, self._library, job.depth)
            room = job.depth
            while not self._hip.kfd.dead:
                requests = [
                    self._request(allocation, share, block, write=writes())
                    for _, block in zip(range(room), blocks, strict=False)
                ]
                if requests:
                    yield from thread.stages(iter_stage(Kind.IO_SUBMIT, self._library.costs.call))
                    batch.submit(thread, requests)
                if not batch.entries:
                    break
                yield from batch.status(thread, 1, job.timeout_ps)
                ended = batch.take()
                if not ended:
                    batch.cancel()
                    yield from batch.status(thread, job.depth, None)  # those that run are not interrupted
                    tally.bytes += sum(entry.answer.bytes for entry in batch.take())
                    raise SimulatedFailure(
                        "io_error",
                        f"hipFileBatchIOGetStatus of file {share.file!r}: timeout, the rest is canceled",
                    )
                for entry in ended:
                    if entry.answer.code is not None:
                        raise failure(call, share.file, CallError(entry.answer.code))
                    tally.bytes += entry.answer.bytes
                room = len(ended)
        except CallError as error:
            raise failure(call, share.file, error) from None

    def _seed_of(self, share: Share) -> str:
        return f"{self._seed}.{self._hip.kfd.name}.{share.file}.{share.number}"

    def _request(self, allocation: Allocation, share: Share, block: Block, *, write: bool) -> Request:
        library = self._library
        try:
            request = new_request(library, share.file, library.buffer(allocation), write)
        except CallError as error:
            tell_refused(library, error, write=write)
            raise
        request.file_offset, request.buffer_offset, request.size = block
        return request


def _failing(call: str, name: str, stages: Stages, what: str = "file") -> Stages:
    """Stages whose error ends the program."""
    try:
        yield from stages
    except CallError as error:
        raise failure(call, name, error, what) from None
