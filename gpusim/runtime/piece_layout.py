"""A job over the pieces of a model: tensors or layers one after the other, each read or written in calls of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from gpusim.errors import SimulatedFailure
from gpusim.runtime.file_job import Block, FileJob, Share


class PieceLayout:
    """Where the calls of a job lie. A call never reaches over the end of its piece, so the last one may be short.

    A buffer that is too small for all pieces is used again from its start, call by call.
    """

    def __init__(self, job: FileJob, *, file_bytes: int, buffer_bytes: int) -> None:
        self._job = job
        self._starts: list[int] = []  # first byte of each kind of piece
        self._firsts: list[int] = []  # first call of each kind
        at = calls = 0
        for pieces in job.pieces:
            at = -(-at // pieces.align) * pieces.align
            self._starts.append(at)
            self._firsts.append(calls)
            at += pieces.pitch * (pieces.count - 1) + pieces.size
            calls += pieces.count * -(-pieces.size // job.io_size)
        self.blocks = calls
        self.total = sum(pieces.size * pieces.count for pieces in job.pieces)
        span = buffer_bytes - job.buffer_offset
        self._slots = 0 if at <= span else span // job.io_size  # 0: it holds all of them
        if (not job.write and at > file_bytes - job.file_offset) or (at > span and not self._slots):
            raise SimulatedFailure(
                "io_error",
                f"the pieces reach {at} bytes far, beyond file {job.files[0]!r} or buffer {job.buffer!r}",
            )

    def shares(self) -> list[Share]:
        """One a thread: calls one after the other; threads without calls have none."""
        job, calls = self._job, self.blocks
        cuts = [calls * thread // job.threads for thread in range(job.threads + 1)]
        return [
            Share(thread, job.files[thread % len(job.files)], cuts[thread], cuts[thread + 1])
            for thread in range(job.threads)
            if cuts[thread] < cuts[thread + 1]
        ]

    def of(self, share: Share, seed: str) -> Iterator[Block]:
        """The calls of a share, in order; `seed` is not needed."""
        job, step = self._job, self._job.io_size
        for call in range(share.first, share.end):
            kind = bisect_right(self._firsts, call) - 1
            pieces = job.pieces[kind]
            each = -(-pieces.size // step)
            number, part = divmod(call - self._firsts[kind], each)
            at = self._starts[kind] + number * pieces.pitch + part * step
            where = at if not self._slots else call % self._slots * step
            yield job.file_offset + at, job.buffer_offset + where, min(step, pieces.size - part * step)
