"""Work that a program has asked for and that ends later, and the streams that order it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from gpusim.engine.environment import Environment
from gpusim.engine.record import Recorder, Snapshot
from gpusim.kinds import Kind

#: begins the work; is given the path that led to it, and calls back with the path at its end
Begin = Callable[[Snapshot, Callable[[Snapshot], None]], None]


class Operation:
    """Something in a stream. `waiters` are called at its end; `path` is its critical path then."""

    __slots__ = (
        "begin",
        "completion_ps",
        "done",
        "end_ps",
        "facts",
        "path",
        "path_before",
        "size",
        "start_ps",
        "waiters",
        "where",
    )

    def __init__(self, begin: Begin) -> None:
        self.begin = begin
        self.size = 0  # bytes that the program asked for
        self.facts: dict[str, Any] = {}  # what a formula needs to know of it
        self.completion_ps = 0  # from its end to the thread that waits, where its own cost does not hold that
        self.start_ps = 0
        self.end_ps = 0
        self.path_before: Snapshot = ([], 0)  # critical path when it started
        self.path: Snapshot = ([], 0)  # and when it ended
        self.done = False
        self.where: tuple[int, int] | None = (
            None  # GPUs of origin and target, -1 for the host; a kernel: twice its GPU
        )
        self.waiters: list[Callable[[], None]] = []

    def when_done(self, call: Callable[[], None]) -> None:
        """Call at the end of the operation, at once if it has ended."""
        if self.done:
            call()
        else:
            self.waiters.append(call)


class Stream:
    """A HIP stream: one operation after another."""

    def __init__(self, env: Environment, name: str, recorder: Recorder) -> None:
        self._env = env
        self._recorder = recorder
        self.name = name
        self._queue: deque[tuple[Operation, Snapshot]] = deque()
        self._running: Operation | None = None
        self.last: Operation | None = None
        self._last_path: Snapshot = ([], 0)
        self.dead = False
        self._actor: int | None = None

    def submit(self, operation: Operation, path: Snapshot) -> None:
        """Add an operation; `path` led to the call."""
        self.last = operation
        if self._running is None:
            self._start(operation, self._after(path, self._last_path))
        else:
            self._queue.append((operation, path))

    def _after(self, path: Snapshot, other: Snapshot) -> Snapshot:
        """A path that leads on from now, beside another that was there before: with spans both are on record."""
        recorder = self._recorder
        if not recorder.spans or not other[1] or other[1] == path[1]:
            return path
        now = self._env.now
        if self._actor is None:
            self._actor = recorder.actor(f"stream.{self.name}")
        row = recorder.span(
            self._actor, Kind.SYNC, now, now, cause=path[1], queued_behind=other[1], released_by=path[1]
        )
        return path[0], row

    def _start(self, operation: Operation, path: Snapshot) -> None:
        self._running = operation
        operation.start_ps = self._env.now
        operation.path_before = path
        operation.begin(path, lambda end: self._ended(operation, end))

    def _ended(self, operation: Operation, path: Snapshot) -> None:
        if self.dead:
            return
        operation.done = True
        operation.end_ps = self._env.now
        operation.path = path
        self._running = None
        self._last_path = path
        if self._queue:
            following, submitted = self._queue.popleft()
            self._start(following, self._after(path, submitted))  # it was this one's end that it waited for
        for call in operation.waiters:
            call()
        operation.waiters.clear()
