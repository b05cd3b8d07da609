"""One host thread's requests: counted, and laid to the path that they took."""

from __future__ import annotations

from gpusim.driver.ais import Bytes
from gpusim.engine.record import Chain
from gpusim.errors import CallError
from gpusim.runtime.hip import Hip
from gpusim.runtime.hipfile import codes
from gpusim.runtime.hipfile.backends import Outcome, serve
from gpusim.runtime.hipfile.calls import Calls
from gpusim.runtime.hipfile.library import HipFile
from gpusim.runtime.hipfile.scoring import Reason, Request
from gpusim.runtime.hipfile.statistics import Histograms
from gpusim.runtime.io_log import Series

_ACCEPTED = Reason.ACCEPTED
UNALIGNED = frozenset({Reason.FILE_OFFSET_UNALIGNED, Reason.SIZE_UNALIGNED, Reason.BUFFER_UNALIGNED})
#: why a request ends before any backend is asked
_BEFORE = {
    codes.MEMORY_TYPE: Reason.NOT_DEVICE.value,
    codes.NOT_REGISTERED: "file is not registered",
    "EINVAL": "the driver of hipFile is not open",
}


def tell_refused(library: HipFile, error: CallError, *, write: bool) -> None:
    """A request ended before any backend was asked."""
    reason = _BEFORE.get(error.code, error.code)
    library.log.of(library.process, "rejected", write).refused(error.code, reason)


class Client:
    """Requests one after another on `chain`. Whoever serves one tells `answered` or `failed` of it.

    `close` lays what the last ones spent to their path, and tells the statistics of those that were like each other.
    """

    __slots__ = (
        "_alike",
        "_alike_bytes",
        "_alike_ps",
        "_chain",
        "_library",
        "_mark",
        "_part",
        "_path",
        "_recorded",
        "_series",
        "_write",
        "calls",
        "outcome",
    )

    def __init__(
        self, hip: Hip, library: HipFile, chain: Chain, *, write: bool, own_stream: bool = False
    ) -> None:
        self._library = library
        self._chain = chain
        self._write = write
        self._path = ""
        self._series: Series | None = None
        self._part: Histograms | None = None  # what ais-stats shows of the path in use
        self._alike = (
            0  # requests of `_alike_bytes` each that the statistics were not told, in `_alike_ps` together
        )
        self._alike_bytes = 0
        self._alike_ps = 0
        self._mark = chain.sums.copy()
        self._recorded = hip.node.recorder.on
        self.calls = Calls(hip, library, chain, own_stream=own_stream)
        self.outcome = Outcome()
        library.clients[self] = None

    def request(self, request: Request) -> Bytes:
        """Serve one. Raises CallError."""
        return serve(request, self._library.config, self.calls, self.outcome)

    def answered(self, request: Request, start_ps: int, moved: int) -> None:
        """The request of `start_ps` moved so many bytes, just now."""
        outcome, end = self.outcome, self._chain.time_ps
        reason = outcome.reason
        series = self._series
        if series is None or outcome.path != self._path:
            series = self._to(outcome.path, request.buffer.gpu)
        series.add(start_ps, end, moved, reason)
        if reason is _ACCEPTED and self._part is not None:
            if moved != self._alike_bytes:
                self._tell()
                self._alike_bytes = moved
            self._alike += 1
            self._alike_ps += end - start_ps
            return
        if reason is not _ACCEPTED:
            self._went_elsewhere(request)
        if self._part is not None:
            self._part.add(moved, end - start_ps, unaligned=reason in UNALIGNED)
        elif self._library.statistics.level:
            self._library.statistics.served(
                request.buffer.gpu, series.path, write=self._write, size=moved, time_ps=0, unaligned=False
            )

    def _tell(self) -> None:
        """Tell the statistics of the requests that were alike."""
        if self._alike and self._part is not None:
            self._part.add(self._alike_bytes, self._alike_ps, unaligned=False, count=self._alike)
        self._alike = self._alike_ps = 0

    def queued(self, kind: int, duration_ps: int) -> None:
        """The request that was answered last had waited so long before it was begun."""
        if self._series is not None and self._recorded:
            self._series.waited(kind, duration_ps)

    def _went_elsewhere(self, request: Request) -> None:
        """The fast path refused it, or failed."""
        if self.outcome.failed is None:
            self._library.statistics.rejections += 1
        else:
            self._fastpath_failed(request, self.outcome.failed)

    def _fastpath_failed(self, request: Request, code: str) -> None:
        library = self._library
        library.statistics.failed(request.buffer.gpu, "fastpath", write=self._write)
        library.log.of(library.process, "fastpath", self._write).failed(code)

    def failed(self, request: Request, error: CallError) -> None:
        """The request ended with an error."""
        outcome, library = self.outcome, self._library
        if outcome.failed is not None:
            self._fastpath_failed(request, outcome.failed)
        elif outcome.path != "fastpath":
            library.statistics.rejections += 1
        if outcome.path == "rejected":
            reason = f"{outcome.refusal}; {outcome.reason}"
            library.log.of(library.process, "rejected", self._write).refused(error.code, reason)
        elif outcome.path != "fastpath":
            library.statistics.failed(request.buffer.gpu, "fallback", write=self._write)
            self._to(outcome.path, request.buffer.gpu).failed(error.code)

    def refused(self, error: CallError) -> None:
        """The request ended before any backend was asked."""
        tell_refused(self._library, error, write=self._write)

    def _to(self, path: str, gpu: int) -> Series:
        """The series of a path; what was spent since the last change belongs to the one before."""
        self.charge()
        self._path = path
        kept = "fastpath" if path == "fastpath" else "fallback"
        statistics = self._library.statistics
        if statistics.level and statistics.histograms:
            self._part = statistics.part(gpu, kept, self._write)
        self._series = self._library.log.of(self._library.process, kept, self._write)
        return self._series

    def charge(self) -> None:
        """Lay what was spent since the last time to the path in use."""
        self._tell()
        if self._series is not None:
            self._series.charge(self._mark, self._chain.sums)
            self._mark = self._chain.sums.copy()

    def close(self) -> None:
        """There are no more requests."""
        self.charge()
        self._library.clients.pop(self, None)
