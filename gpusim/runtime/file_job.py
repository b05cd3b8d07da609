"""A job of file requests: which blocks, by how many threads, through which interface.

Blocks are `io_size` apart. A job larger than its file or its buffer goes around in it: blocks begin anew at the first.
Threads take contiguous shares of the blocks, and files in turn. A job that is given a time and no size goes on for that
time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count

from gpusim.errors import SimulatedFailure

Block = tuple[int, int, int]  # first byte of the file and of the buffer, and size


class FileApi(StrEnum):
    """Through which interface a file is read or written."""

    SYNC = "sync"  # hipFileRead, hipFileWrite
    ASYNC = "async"  # hipFileReadAsync, hipFileWriteAsync
    BATCH = "batch"  # hipFileBatchIOSubmit
    POSIX = "posix"  # pread or pwrite, and hipMemcpy


class Bounce(StrEnum):
    """The host buffer through which a POSIX program reaches the GPU."""

    PAGEABLE = "pageable"  # malloc
    PINNED = "pinned"  # hipHostMalloc


class Tally:
    """Bytes that the calls of a job have moved: fewer than it asks for where a file ends, or a call fails."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


@dataclass(frozen=True, slots=True)
class Pieces:
    """`count` pieces of `size` bytes, each at a multiple of `align` behind the last."""

    size: int
    count: int
    align: int

    @property
    def pitch(self) -> int:
        """From the start of one to the start of the next."""
        return -(-self.size // self.align) * self.align


@dataclass(frozen=True, slots=True)
class FileJob:
    """What a step asks for. Sizes and offsets in bytes."""

    files: Sequence[str]
    buffer: str
    write: bool
    api: FileApi
    io_size: int
    size: int | None
    file_offset: int
    buffer_offset: int
    shuffled: bool  # the next block is drawn, not the following one
    threads: int
    depth: int  # calls in flight of a thread: asynchronous ones, entries of a batch, or direct requests
    stream: str | None = None
    bounce: Bounce = Bounce.PAGEABLE
    direct: bool = False  # POSIX: with O_DIRECT
    late: bool = False  # asynchronous: size and offsets are read when the stream comes to the call
    late_size: int | None = None  # and this is what the program has changed the size to by then
    timeout_ps: int | None = None  # of a batch's status call
    duration_ps: int | None = None  # no block is begun after this time
    mix: float = 0.0  # share of the calls of a reading job that write
    pieces: tuple[Pieces, ...] = ()  # instead of a size: what lies in the file one after the other


def direction(job: FileJob, seed: str) -> Callable[[], bool]:
    """Does the next call of a thread write? Drawn call by call where the job mixes reads and writes."""
    if not job.mix:
        return lambda: job.write
    draw = random.Random(f"{seed}.mix").random
    return lambda: draw() < job.mix


@dataclass(frozen=True, slots=True)
class Share:
    """The blocks `first` to `end` - 1 of a job, in file number `file`: one thread's."""

    number: int
    file: str
    first: int
    end: int


class Layout:
    """Where the blocks of a job lie in one of its files and in its buffer."""

    def __init__(self, job: FileJob, *, file_bytes: int, buffer_bytes: int) -> None:
        file_span, buffer_span = file_bytes - job.file_offset, buffer_bytes - job.buffer_offset
        total = job.size
        if file_span <= 0:  # it is written at its end; a read there finds nothing
            file_span = total if total is not None else buffer_span
        endless = total is None and job.duration_ps is not None
        if total is None:
            total = min(file_span, buffer_span)
        if buffer_span <= 0:
            raise SimulatedFailure(
                "io_error", f"byte {job.buffer_offset} lies beyond the end of buffer {job.buffer!r}"
            )
        self.job = job
        self.total = total
        self._endless = endless
        step = job.io_size
        self.blocks = -(-total // step)
        self._last = total - (self.blocks - 1) * step
        grows = job.write and job.size is not None and not job.shuffled
        anywhere = endless or job.shuffled or (total > file_span and not grows)
        self._in_file = max(1, file_span // step) if anywhere else self.blocks
        self._in_buffer = max(1, buffer_span // step) if endless or total > buffer_span else self.blocks

    def shares(self) -> list[Share]:
        """One a thread; threads without blocks have none."""
        job, blocks = self.job, self.blocks
        cuts = [blocks * thread // job.threads for thread in range(job.threads + 1)]
        return [
            Share(thread, job.files[thread % len(job.files)], cuts[thread], cuts[thread + 1])
            for thread in range(job.threads)
            if cuts[thread] < cuts[thread + 1] or self._endless
        ]

    def of(self, share: Share, seed: str) -> Iterator[Block]:
        """The blocks of a share, in the order in which they are asked for."""
        job, step = self.job, self.job.io_size
        draw = random.Random(f"{seed}.{share.number}") if job.shuffled else None
        in_file, in_buffer = self._in_file, self._in_buffer
        first_byte, first_place = job.file_offset, job.buffer_offset
        short = -1 if self._endless or self._last == step else self.blocks - 1
        for block in count(share.first) if self._endless else range(share.first, share.end):
            place = draw.randrange(in_file) if draw else block % in_file
            size = self._last if block == short else step
            yield first_byte + place * step, first_place + block % in_buffer * step, size
