"""Errors that the system is made to return: the `faults:` of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpusim.errors import CallError, SimulatedFailure


class FaultPlace(StrEnum):
    """Where a fault is injected."""

    FASTPATH = "fastpath"  # the ioctl of the fast path
    BOUNCE_MMAP = "bounce_mmap"
    PREAD = "pread"
    PWRITE = "pwrite"
    FDATASYNC = "fdatasync"
    HIP_MEMCPY = "hipMemcpy"
    STATX = "statx"  # of a registration
    REOPEN = "reopen"  # of a registration: the second descriptor


#: calls that move bytes of a file, and so can move fewer
SHORT_PLACES = frozenset({FaultPlace.FASTPATH, FaultPlace.PREAD, FaultPlace.PWRITE})

#: calls that are made again after a signal, until they get through
_REPEATED = frozenset({FaultPlace.PREAD, FaultPlace.PWRITE, FaultPlace.FDATASYNC})
#: interruptions in a row, of all calls that an entry matches, after which nobody believes that one gets through
_MOST_SIGNALS = 10_000
_SURE_SIGNALS = 100  # where each of them is interrupted


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry: which calls, and what they return. `probability` None and no `at`: every call."""

    where: FaultPlace
    file: str | None
    code: str | None  # the error; None: fewer bytes
    short: float
    probability: float | None
    at: frozenset[int]


class _Entry:
    """An entry and the calls that it has matched; `signals` of the last ones were interrupted."""

    __slots__ = ("calls", "fault", "signals")

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.calls = 0
        self.signals = 0


class Injector:
    """Counts the calls that each entry matches, and says what is to become of each."""

    def __init__(self, faults: Sequence[Fault], draw: Callable[[], float]) -> None:
        self._draw = draw
        self._at: dict[FaultPlace, list[_Entry]] = {}
        for fault in faults:
            self._at.setdefault(fault.where, []).append(_Entry(fault))

    @property
    def places(self) -> Collection[FaultPlace]:
        """Where something can go wrong at all."""
        return self._at.keys()

    def limit(self, where: FaultPlace, file: str, size: int) -> int:
        """The bytes that the call moves at most. Raises CallError where it fails.

        Raises SimulatedFailure where a signal comes at every one of very many calls.
        """
        entries = self._at.get(where)
        if entries is None:
            return size
        for entry in entries:
            fault = entry.fault
            if fault.file not in (None, file):
                continue
            number = entry.calls
            entry.calls += 1
            if fault.at:
                hit = number in fault.at
            else:
                hit = fault.probability is None or self._draw() < fault.probability
            if not hit:
                entry.signals = 0
                continue
            if fault.code == "EINTR" and where in _REPEATED:
                entry.signals += 1
                sure = not fault.at and (fault.probability is None or fault.probability >= 1)
                if entry.signals >= (_SURE_SIGNALS if sure else _MOST_SIGNALS):
                    message = f"{where} of file {file!r} was interrupted {entry.signals:,} times in a row"
                    raise SimulatedFailure("livelock", message)
            if fault.code is not None:
                raise CallError(fault.code)
            size = int(size * fault.short)
        return size
