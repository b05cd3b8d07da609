"""The library's pool of threads: a request waits until one is free, then runs on it to its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gpusim.engine.environment import Environment
from gpusim.engine.timeline import Timeline


class Pool:
    """`threads` workers and one queue, served in the order of submission."""

    def __init__(self, env: Environment, name: str, threads: int) -> None:
        self._env = env
        self.name = name
        self.threads = threads
        self.busy = 0
        self.most_waiting = 0
        self.used = False
        self.row = 0
        self._queue: deque[Callable[[], None]] = deque()
        self.use = Timeline(name)

    def submit(self, begin: Callable[[], None]) -> None:
        """Call `begin` on a thread, now or when one is free; whoever began calls `ended`."""
        self.used = True
        if self.busy < self.threads:
            self.busy += 1
            begin()
        else:
            self._queue.append(begin)
            self.most_waiting = max(self.most_waiting, len(self._queue))

    def ended(self, since_ps: int, row: int = 0) -> None:
        """The thread that began at `since_ps` is free again; `row` is the last span of what it did."""
        self.row = row
        self.use.add(since_ps, self._env.now, 1)
        if self._queue:
            self._queue.popleft()()
        else:
            self.busy -= 1
