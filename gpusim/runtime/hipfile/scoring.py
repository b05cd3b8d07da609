"""Which backend serves a request: each one's checks in their order, and the highest score (`hipfile.md` 1.1-1.3)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from gpusim.linux.file import File
from gpusim.runtime.hipfile import codes
from gpusim.runtime.hipfile.config import Configuration
from gpusim.runtime.hipfile.registration import BufferRecord, FileRecord, MemoryType

FASTPATH_SCORE = 100
FALLBACK_SCORE = 1
REFUSED = -1


class Reason(StrEnum):
    """Why a backend refuses a request, or why a request went where it went. The words of the path report."""

    ACCEPTED = "accepted"
    FORCED = "HIPFILE_FORCE_COMPAT_MODE is true"
    NO_SYMBOL = "HIP lacks hipAmdFileRead or hipAmdFileWrite"
    NO_O_DIRECT = "no descriptor with O_DIRECT"
    NOT_DEVICE = "buffer is not device memory"
    FILE_OFFSET_NEGATIVE = "file offset is negative"
    BUFFER_OFFSET_NEGATIVE = "buffer offset is negative"
    FILE_TYPE = "neither a regular file nor a block device"
    FILE_SYSTEM = "file system is neither ext4 with ordered journal nor xfs"
    FILE_OFFSET_UNALIGNED = "file offset is not aligned"
    SIZE_UNALIGNED = "size is not aligned"
    BUFFER_UNALIGNED = "buffer address is not aligned"
    ALLOW_FALSE = "HIPFILE_ALLOW_COMPAT_MODE is false"
    ASYNC = "asynchronous calls of this version use the fallback only"
    RETRY_ENODEV = "retried after ENODEV"
    RETRY_EREMOTEIO = "retried after EREMOTEIO"


class Request:
    """One hipFileRead or hipFileWrite. `size` is as asked for, in bytes, not capped.

    File and buffer stay; a thread that makes many requests changes offsets and size.
    """

    __slots__ = ("buffer", "buffer_offset", "file", "file_offset", "lasting", "record", "size", "write")

    def __init__(
        self,
        *,
        write: bool,
        file: File,
        record: FileRecord,
        buffer: BufferRecord,
        file_offset: int,
        buffer_offset: int,
        size: int,
    ) -> None:
        self.write = write
        self.file = file
        self.record = record
        self.buffer = buffer
        self.file_offset = file_offset
        self.buffer_offset = buffer_offset
        self.size = size
        self.lasting: Lasting | None = None  # once it has been scored


class Lasting:
    """What scores find out of file and buffer alone, kept for requests that differ in their offsets only."""

    __slots__ = ("accepted", "accepts", "base", "fallback", "file_mask", "length", "memory_mask")

    def __init__(self, request: Request, config: Configuration) -> None:
        record = request.record
        self.base = request.buffer.address
        self.length = request.buffer.length
        self.accepts = bool(record.offset_align and record.mem_align) and not any(
            True for _ in _lasting_refusals(request, config)
        )
        self.file_mask = record.offset_align - 1
        self.memory_mask = record.mem_align - 1
        self.fallback = score(fallback_refusals(request, config), FALLBACK_SCORE)
        self.accepted = ((FASTPATH_SCORE, Reason.ACCEPTED), self.fallback)  # where the fast path accepts

    def fits(self, offset: int, place: int, size: int) -> bool:
        """Does the fast path accept this request, and is its range good and below the cap?"""
        return (
            self.accepts
            and offset >= 0
            and place >= 0
            and size <= self.length - place  # and `place` is not at the end:
            and (size > 0 or place < self.length)
            and size <= codes.MOST_BYTES
            and not (offset | size) & self.file_mask
            and not (self.base + place) & self.memory_mask
        )


def _divides(alignment: int, number: int) -> bool:
    """By a bit mask, as the library does it: right for powers of two."""
    return alignment != 0 and number & (alignment - 1) == 0


def fastpath_refusals(request: Request, config: Configuration) -> Iterator[Reason]:
    """Every reason why the fast path refuses, in the order in which it tests. None: it accepts."""
    record, buffer = request.record, request.buffer
    yield from _first_refusals(request, config)
    if request.file_offset < 0:
        yield Reason.FILE_OFFSET_NEGATIVE
    if request.buffer_offset < 0:
        yield Reason.BUFFER_OFFSET_NEGATIVE
    yield from _file_refusals(record, config)
    if not _divides(record.offset_align, request.file_offset):
        yield Reason.FILE_OFFSET_UNALIGNED
    if not _divides(record.offset_align, request.size):
        yield Reason.SIZE_UNALIGNED
    if not _divides(record.mem_align, buffer.address + request.buffer_offset):
        yield Reason.BUFFER_UNALIGNED


def _first_refusals(request: Request, config: Configuration) -> Iterator[Reason]:
    if config.missing:
        yield Reason.NO_SYMBOL
    elif not config.fastpath:
        yield Reason.FORCED
    if not request.record.direct:
        yield Reason.NO_O_DIRECT
    if request.buffer.memory is not MemoryType.DEVICE:
        yield Reason.NOT_DEVICE


def _file_refusals(record: FileRecord, config: Configuration) -> Iterator[Reason]:
    if not record.block:
        if not record.regular:
            yield Reason.FILE_TYPE
        elif not (config.any_file_system or record.ordered_ext4 or record.xfs):
            yield Reason.FILE_SYSTEM


def _lasting_refusals(request: Request, config: Configuration) -> Iterator[Reason]:
    """Those that do not hang on offsets and size."""
    yield from _first_refusals(request, config)
    yield from _file_refusals(request.record, config)


def fallback_refusals(request: Request, config: Configuration) -> Iterator[Reason]:
    """The same for the fallback, which does not look at file, offsets or size."""
    if not config.fallback:
        yield Reason.ALLOW_FALSE
    if request.buffer.memory is not MemoryType.DEVICE:
        yield Reason.NOT_DEVICE


def score(refusals: Iterator[Reason], accepting: int) -> tuple[int, Reason]:
    """The score of a backend and, when it refuses, its first reason."""
    reason = next(refusals, None)
    return (accepting, Reason.ACCEPTED) if reason is None else (REFUSED, reason)


def scores(request: Request, config: Configuration) -> tuple[tuple[int, Reason], tuple[int, Reason]]:
    """Of the fast path, 100 or -1, and of the fallback, 1 or -1; each with its reason.

    (The source gives 0 where the fallback accepts, the document 1; nothing hangs on it.)
    """
    known = request.lasting
    if known is None:
        known = request.lasting = Lasting(request, config)
    offset, place = request.file_offset, request.buffer_offset
    if (
        known.accepts
        and offset >= 0
        and place >= 0
        and not (offset | request.size) & known.file_mask
        and not (known.base + place) & known.memory_mask
    ):
        return known.accepted
    return score(fastpath_refusals(request, config), FASTPATH_SCORE), known.fallback
