"""Errors that the system is made to return: the `faults:` of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpusim.errors import CallError


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

_SECTOR = 512  # bytes: what direct I/O stops at


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry: which calls, and what they return. `probability` None and no `at`: every call."""

    where: FaultPlace
    file: str | None
    code: str | None  # the error; None: fewer bytes
    short: float
    probability: float | None
    at: frozenset[int]


class Injector:
    """Counts the calls that each entry matches, and says what is to become of each."""

    def __init__(self, faults: Sequence[Fault], draw: Callable[[], float]) -> None:
        self._draw = draw
        self._at: dict[FaultPlace, list[tuple[Fault, list[int]]]] = {}
        for fault in faults:
            self._at.setdefault(fault.where, []).append((fault, [0]))

    @property
    def places(self) -> Collection[FaultPlace]:
        """Where something can go wrong at all."""
        return self._at.keys()

    def limit(self, where: FaultPlace, file: str, size: int) -> int:
        """The bytes that the call moves at most. Raises CallError where it fails."""
        entries = self._at.get(where)
        if entries is None:
            return size
        for fault, calls in entries:
            if fault.file not in (None, file):
                continue
            number = calls[0]
            calls[0] += 1
            if fault.at:
                hit = number in fault.at
            else:
                hit = fault.probability is None or self._draw() < fault.probability
            if not hit:
                continue
            if fault.code is not None:
                raise CallError(fault.code)
            size = int(size * fault.short)
            if where is FaultPlace.FASTPATH:
                size -= size % _SECTOR
        return size
