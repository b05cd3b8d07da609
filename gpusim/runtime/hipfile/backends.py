"""The two backends of a request, and the retry of one on the other (`hipfile.md` 2.1-2.3).

Both are generators of stages that return the bytes moved and raise CallError; what they call is the `System`.
"""

from __future__ import annotations

from typing import Protocol

from gpusim.driver.ais import Bytes
from gpusim.engine.stages import Stages
from gpusim.errors import CallError
from gpusim.quantity import MIB
from gpusim.runtime.hipfile import codes
from gpusim.runtime.hipfile.config import Configuration
from gpusim.runtime.hipfile.scoring import REFUSED, Lasting, Reason, Request, scores

BOUNCE_BYTES = 16 * MIB
_RETRIED = {"ENODEV": Reason.RETRY_ENODEV, "EREMOTEIO": Reason.RETRY_EREMOTEIO}


class System(Protocol):
    """What the backends call: HIP and Linux. Every call may raise CallError."""

    def ais(self, request: Request, size: int) -> Bytes:
        """hipAmdFileRead or hipAmdFileWrite of `size` bytes: one blocking ioctl."""
        ...

    def map_bounce(self, request: Request, size: int) -> Stages:
        """mmap of `size` bytes of anonymous memory, not yet backed by pages."""
        ...

    def unmap_bounce(self, touched: int) -> Stages:
        """munmap, with the pages of the first `touched` bytes."""
        ...

    def pread(self, request: Request, done: int, size: int, fresh: int) -> Bytes:
        """`size` bytes of the file, `done` bytes into the request, into a bounce buffer; `fresh` of them are touched
        for the first time.
        """
        ...

    def pwrite(self, request: Request, done: int, size: int) -> Bytes:
        """The same from a bounce buffer to the file."""
        ...

    def fdatasync(self, request: Request) -> Stages:
        """The file's data reach the drive."""
        ...

    def to_device(self, request: Request, size: int) -> Stages:
        """hipMemcpy from the bounce buffer to the GPU."""
        ...

    def from_device(self, request: Request, size: int, fresh: int) -> Stages:
        """hipMemcpy from the GPU to the bounce buffer, and hipStreamSynchronize."""
        ...


def check_range(request: Request, size: int, config: Configuration) -> None:
    """The parameters of a request, once a backend runs. Raises CallError."""
    if request.file_offset < 0 or request.buffer_offset < 0:
        raise CallError(config.revision.negative_offset)
    length = request.buffer.length
    if length <= request.buffer_offset or length - request.buffer_offset < size:
        raise CallError(codes.INVALID_VALUE)


def fastpath(request: Request, config: Configuration, system: System) -> Bytes:
    """One ioctl, which may move less than asked for; the range is checked before the size is capped."""
    size = request.size
    check_range(request, size, config)
    return system.ais(request, size if size <= codes.MOST_BYTES else codes.MOST_BYTES)


def fallback(request: Request, config: Configuration, system: System) -> Bytes:
    """A bounce buffer of the call's own, and strictly one chunk after another, in the calling thread."""
    size = min(request.size, codes.MOST_BYTES)
    check_range(request, size, config)
    yield from system.map_bounce(request, BOUNCE_BYTES)
    touched = done = 0
    try:
        while True:
            part = min(BOUNCE_BYTES, size - done)
            fresh = max(0, part - touched)
            touched = max(touched, part)
            if request.write:
                moved = yield from _write_chunk(request, system, done, part, fresh)
            else:
                moved = yield from _read_chunk(request, system, done, part, fresh)
            done += moved
            if not moved or done == size:
                break
    except CallError:
        yield from system.unmap_bounce(touched)
        raise
    yield from system.unmap_bounce(touched)
    return done


def _read_chunk(request: Request, system: System, done: int, size: int, fresh: int) -> Bytes:
    while True:
        try:
            moved = yield from system.pread(request, done, size, fresh)
        except CallError as error:
            if error.code != "EINTR":
                raise
        else:
            break
    if moved:
        yield from system.to_device(request, moved)
    return moved


def _write_chunk(request: Request, system: System, done: int, size: int, fresh: int) -> Bytes:
    """A signal makes all of the chunk be done again, the copy too."""
    while True:
        try:
            if size:
                yield from system.from_device(request, size, fresh)
            moved = yield from system.pwrite(request, done, size)
            yield from system.fdatasync(request)
        except CallError as error:
            if error.code != "EINTR":
                raise
            fresh = 0
        else:
            return moved


class Outcome:
    """Where a request went and why; filled while it is served."""

    __slots__ = ("as_before", "failed", "fallback_score", "fastpath_score", "path", "reason", "refusal")

    def __init__(self) -> None:
        self.as_before: Lasting | None = (
            None  # what it says is what the last request found out, all was accepted
        )
        self.fastpath_score = REFUSED
        self.fallback_score = REFUSED
        self.path = "rejected"  # or fastpath, fallback, fastpath_then_fallback
        self.reason = Reason.ACCEPTED
        self.refusal = Reason.ACCEPTED  # of the fast path, where both refuse: `reason` is the fallback's then
        self.failed: str | None = None  # the error of the fast path, also where a retry followed


def begin(request: Request, config: Configuration, system: System, outcome: Outcome) -> Bytes:
    """Score a request, and give what carries it out. Raises CallError where nobody does, or its range is bad."""
    known = request.lasting
    if known is not None and known.fits(request.file_offset, request.buffer_offset, request.size):
        if outcome.as_before is not known:
            outcome.as_before = known
            outcome.fastpath_score, outcome.fallback_score = known.accepted[0][0], known.fallback[0]
            outcome.path, outcome.reason, outcome.failed = "fastpath", Reason.ACCEPTED, None
        return system.ais(request, request.size)
    (fast, refusal), (slow, fallback_refusal) = scores(request, config)
    outcome.as_before = None
    outcome.fastpath_score = fast
    outcome.fallback_score = slow
    outcome.failed = None
    outcome.reason = refusal
    if fast > slow:
        outcome.path = "fastpath"
        return fastpath(request, config, system)
    if slow != REFUSED:
        outcome.path = "fallback"
        return fallback(request, config, system)
    outcome.path, outcome.reason, outcome.refusal = "rejected", fallback_refusal, refusal
    raise CallError(codes.INTERNAL)


def retry(
    request: Request, config: Configuration, system: System, outcome: Outcome, error: CallError
) -> Bytes:
    """What repeats a request that ended with `error`: the fallback, once, for two errors. Else raises `error`."""
    if outcome.path != "fastpath":
        raise error
    outcome.as_before = None
    outcome.failed = error.code
    if error.code not in _RETRIED or outcome.fallback_score == REFUSED:
        raise error
    outcome.path, outcome.reason = "fastpath_then_fallback", _RETRIED[error.code]
    return fallback(request, config, system)


def serve(request: Request, config: Configuration, system: System, outcome: Outcome) -> Bytes:
    """Score, carry out, and retry once on the fallback; returns the bytes moved. Raises CallError."""
    try:
        return (yield from begin(request, config, system, outcome))
    except CallError as error:
        again = retry(request, config, system, outcome, error)
    return (yield from again)
