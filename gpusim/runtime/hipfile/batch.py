"""The batch calls: a context of entries, each served on a thread of the pool (`hipfile.md` 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from gpusim.engine.record import Snapshot
from gpusim.errors import CallError
from gpusim.kinds import Kind
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.hipfile import codes
from gpusim.runtime.hipfile.backends import check_range
from gpusim.runtime.hipfile.library import HipFile
from gpusim.runtime.hipfile.pooled import Answer, run_in_pool
from gpusim.runtime.hipfile.scoring import Request

MOST_ENTRIES = 128


class State(IntEnum):
    """Of an entry, with the numbers of the interface."""

    WAITING = 1
    PENDING = 2
    INVALID = 4
    CANCELED = 8
    COMPLETE = 16
    TIMEOUT = 32
    FAILED = 64


_TERMINAL = frozenset({State.CANCELED, State.COMPLETE, State.TIMEOUT, State.FAILED, State.INVALID})


class Entry:
    """One request of a batch. `running` while a thread of the pool is at it: then it cannot be canceled."""

    __slots__ = ("answer", "path", "request", "running", "state")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer = Answer()
        self.state = State.WAITING
        self.running = False
        self.path: Snapshot = ([], 0)


class Batch:
    """A context that hipFileBatchIOSetUp makes. Reported entries leave it and make room."""

    def __init__(self, hip: Hip, library: HipFile, capacity: int) -> None:
        if not 1 <= capacity <= MOST_ENTRIES:
            raise CallError(codes.INVALID_VALUE)
        self._hip = hip
        self._library = library
        self.capacity = capacity
        self.entries: list[Entry] = []
        self._woken: Callable[[], None] | None = None
        self._wanted = 0

    def submit(self, thread: Thread, requests: Sequence[Request]) -> list[Entry]:
        """All or nothing: one bad entry rejects the whole submission. Raises CallError."""
        library = self._library
        if not requests:
            raise CallError(codes.INVALID_VALUE)
        if len(self.entries) + len(requests) > self.capacity:
            raise CallError(library.config.revision.batch_full)
        for request in requests:
            check_range(request, request.size, library.config)
        made = [Entry(request) for request in requests]
        self.entries += made
        if library.batch_runs:
            for entry in made:
                entry.state = State.PENDING
                self._start(thread, entry)
        return made

    def _start(self, thread: Thread, entry: Entry) -> None:
        def done(path: Snapshot) -> None:
            entry.running = False
            entry.path = path
            if entry.state is State.PENDING:
                entry.state = State.COMPLETE if entry.answer.code is None else State.FAILED
            self._tell()

        def begins() -> bool:
            entry.running = entry.state is State.PENDING
            return entry.running

        run_in_pool(
            self._hip,
            self._library,
            entry.request,
            entry.answer,
            thread.chain.time_ps,
            thread.chain.snapshot(),
            done,
            begins,
        )

    def cancel(self) -> None:
        """Entries that no thread has begun; the others go on."""
        if not self._library.batch_runs:
            raise CallError(codes.INTERNAL)
        for entry in self.entries:
            if entry.state is State.PENDING and not entry.running:
                entry.state = State.CANCELED

    def terminal(self) -> int:
        """How many entries have come to their end."""
        return sum(entry.state in _TERMINAL for entry in self.entries)

    def status(self, thread: Thread, least: int, timeout_ps: int | None) -> Steps:
        """Wait until `least` entries (or all there are) have ended, or the time is over; None waits for ever.

        `take` gives those that have ended. Raises CallError where the revision has no such call.
        """
        if not self._library.batch_runs:
            raise CallError(codes.INTERNAL)
        wanted = min(least, len(self.entries))
        yield from thread.stages(iter_stage(Kind.IO_SUBMIT, self._library.costs.call))
        if self.terminal() >= wanted or timeout_ps == 0:
            return
        env = self._hip.env
        event = env.event()
        self._wanted = wanted

        def wake() -> None:
            if self._woken is not None:
                self._woken = None
                event.succeed()

        self._woken = wake
        timer = None if timeout_ps is None else env.call_at(env.now + timeout_ps, wake)
        yield event
        if timer is not None:
            timer.cancel()
        last = [entry.path for entry in self.entries if entry.state in _TERMINAL and entry.path[0]]
        if self.terminal() >= wanted and last:
            thread.chain.released(Kind.SYNC, last[-1], env.now)
        else:
            thread.chain.spend(Kind.SYNC, env.now)

    def take(self) -> list[Entry]:
        """The entries that have ended: they leave the context."""
        ended = [entry for entry in self.entries if entry.state in _TERMINAL]
        self.entries = [entry for entry in self.entries if entry.state not in _TERMINAL]
        return ended

    def _tell(self) -> None:
        if self._woken is not None and self.terminal() >= self._wanted:
            self._woken()


def iter_stage(*stage: int) -> Any:
    """One stage."""
    yield stage
