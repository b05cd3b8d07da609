"""file_register, buffer_register, file_read, file_write and file_batch: hipFile, or pread and pwrite."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.runtime.file_job import Bounce, FileApi, FileJob, Pieces
from gpusim.spec import Duration, Fraction, Size, Spec
from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun

_MIX = "share of the calls that write instead, drawn call by call: a job of reads and writes"
_FILE = "a file of the process, or a list of which the threads take one each in turn"


class FileRegister(StepSpec):
    """hipFileHandleRegister. Jobs register their files themselves where no step did."""

    verb: ClassVar[str] = "file_register"

    file: str = Field(description="a file of the process")
    direct: bool = Field(
        default=False, description="the program opened it with O_DIRECT (it makes no difference)"
    )

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.files.register_file(thread, self.file, opened_direct=self.direct)


class BufferRegister(StepSpec):
    """hipFileBufRegister: requests for this buffer ask HIP nothing about it."""

    verb: ClassVar[str] = "buffer_register"

    buffer: str = Field(description="the buffer")

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.files.register_buffer(thread, self.buffer)


class TransferApi(StrEnum):
    """Through which interface a file is read or written."""

    SYNC = "sync"  # hipFileRead, hipFileWrite
    ASYNC = "async"  # hipFileReadAsync, hipFileWriteAsync
    POSIX = "posix"  # pread or pwrite, and hipMemcpy


class FileOrder(StrEnum):
    """In which order the blocks of a file are visited."""

    SEQUENTIAL = "sequential"
    RANDOM = "random"


class PieceSpec(Spec):
    """Tensors or layers of one size, one after the other."""

    size: Size = Field(gt=0, description="bytes of one")
    count: int = Field(default=1, gt=0, description="how many")
    align: Size = Field(default=4096, gt=0, description="each begins at a multiple of this")


class FileTransfer(StepSpec):
    """What a read and a write have in common."""

    takes_stream: ClassVar[bool] = True
    writes: ClassVar[bool] = False
    tells: ClassVar[tuple[str, ...]] = ("file", "buffer")

    file: str | tuple[str, ...] = Field(description=_FILE)
    buffer: str = Field(description="the buffer at the other end")
    io_size: Size = Field(gt=0, description="bytes of one call")
    size: Size | None = Field(
        default=None,
        gt=0,
        description="bytes in all; default: what fits in both. More than that: blocks begin anew at the first",
    )
    file_offset: Size | None = Field(default=None, description="first byte of the file; default: the start")
    buffer_offset: Size | None = Field(
        default=None, description="first byte of the buffer; default: the start"
    )
    api: TransferApi = Field(default=TransferApi.SYNC, description="the interface")
    order: FileOrder = Field(default=FileOrder.SEQUENTIAL, description="which block comes next")
    threads: int = Field(
        default=1, gt=0, le=4096, description="threads that share the work: a contiguous part each"
    )
    depth: int = Field(
        default=1,
        gt=0,
        le=4096,
        description="api async, or posix with direct (libaio, io_uring): calls in flight of each thread",
    )
    duration: Duration | None = Field(
        default=None,
        gt=0,
        description="no call is begun after this time; without a size: the job goes on for it",
    )
    pieces: tuple[PieceSpec, ...] = Field(
        default=(),
        description="instead of a size: a model, piece by piece; no call reaches over the end of its piece",
    )
    bounce: Bounce = Field(
        default=Bounce.PAGEABLE, description="api posix: the host buffer on the way to a GPU"
    )
    direct: bool = Field(default=False, description="api posix: the file is opened with O_DIRECT")

    late: bool = Field(
        default=False,
        description="api async: size and offsets are not fixed, but read when the stream comes to the call",
    )
    late_size: Size | None = Field(
        default=None, description="api async: what the program has changed the size of each call to by then"
    )

    @property
    def written(self) -> float:
        """Share of the calls that write although the job reads."""
        return 0.0

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        job = FileJob(
            files=_names(self.file),
            buffer=self.buffer,
            write=self.writes,
            api=FileApi(self.api.value),
            io_size=self.io_size,
            size=self.size,
            file_offset=self.file_offset or 0,
            buffer_offset=self.buffer_offset or 0,
            shuffled=self.order is FileOrder.RANDOM,
            threads=self.threads,
            depth=self.depth,
            stream=step.stream,
            duration_ps=self.duration,
            pieces=tuple(Pieces(piece.size, piece.count, piece.align) for piece in self.pieces),
            bounce=self.bounce,
            direct=self.direct,
            late=self.late,
            late_size=self.late_size,
            mix=self.written,
        )
        step.facts = facts_of(job)
        yield from thread.hip.files.transfer(thread, job, step.label, step.asks_for)


class FileRead(FileTransfer):
    """Read a file into a buffer."""

    verb: ClassVar[str] = "file_read"

    mix: Fraction | None = Field(default=None, gt=0, lt=1, description=_MIX)

    @property
    def written(self) -> float:
        return self.mix or 0.0


class FileWrite(FileTransfer):
    """Write a buffer to a file."""

    verb: ClassVar[str] = "file_write"
    writes: ClassVar[bool] = True


class FileOperation(StrEnum):
    """What an entry of a batch does."""

    READ = "read"
    WRITE = "write"


class FileBatch(StepSpec):
    """hipFileBatchIOSubmit and its status loop: an entry that has ended makes room for the next."""

    verb: ClassVar[str] = "file_batch"

    operation: FileOperation = Field(description="read or write")
    file: str | tuple[str, ...] = Field(description=_FILE)
    buffer: str = Field(description="the buffer at the other end")
    io_size: Size = Field(gt=0, description="bytes of one entry")
    entries: int | None = Field(
        default=None, gt=0, description="entries in all, of all threads together; default: what fits in both"
    )
    duration: Duration | None = Field(
        default=None,
        gt=0,
        description="no entry is begun after this time; without `entries`: the job goes on for it",
    )
    mix: Fraction | None = Field(default=None, gt=0, lt=1, description=f"operation read: {_MIX}")
    capacity: int = Field(default=128, gt=0, le=128, description="entries in flight of each thread")
    threads: int = Field(default=1, gt=0, le=4096, description="threads, each with a batch of its own")
    order: FileOrder = Field(default=FileOrder.SEQUENTIAL, description="which block comes next")
    timeout: Duration | None = Field(
        default=None,
        description="of the status call; when it is over, the rest is canceled; default: for ever",
    )

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        job = FileJob(
            files=_names(self.file),
            buffer=self.buffer,
            write=self.operation is FileOperation.WRITE,
            api=FileApi.BATCH,
            io_size=self.io_size,
            size=None if self.entries is None else self.entries * self.io_size,
            file_offset=0,
            buffer_offset=0,
            shuffled=self.order is FileOrder.RANDOM,
            threads=self.threads,
            depth=self.capacity,
            timeout_ps=self.timeout,
            mix=self.mix or 0.0,
            duration_ps=self.duration,
        )
        step.facts = facts_of(job)
        yield from thread.hip.files.transfer(thread, job, step.label, step.asks_for)


def facts_of(job: FileJob) -> dict[str, object]:
    """What a formula needs to know of a job. A queue of direct requests counts as so many threads."""
    facts = {name: getattr(job, name) for name in ("files", "io_size", "threads", "write", "direct")}
    return facts | {"threads": job.threads * (job.depth if job.api is FileApi.POSIX else 1)}


def _names(file: str | tuple[str, ...]) -> tuple[str, ...]:
    return (file,) if isinstance(file, str) else file
