"""A lock that knows who holds it, who waits, and for how long they waited."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gpusim.engine.environment import Environment
from gpusim.engine.timeline import Timeline


class Mutex:
    """First come, first served; granted by a callback at the time of the request or of the release, without
    events.

    `who` is any number but 0 that the caller gives a meaning (an actor, a row of the record). At the grant,
    `behind` is who held the lock while this one waited, 0 if it did not wait.
    """

    __slots__ = (
        "_env",
        "_granting",
        "_queue",
        "_since_ps",
        "_use",
        "behind",
        "grants",
        "holder",
        "longest_wait_ps",
        "name",
        "waited",
        "waited_ps",
    )

    def __init__(self, env: Environment, name: str) -> None:
        self._env = env
        self.name = name
        self._queue: deque[tuple[int, int, Callable[[], None]]] = deque()
        self._granting = False
        self._since_ps = 0
        self._use = Timeline(name)
        self.holder: int | None = None
        self.behind = 0
        self.grants = 0
        self.waited = 0
        self.waited_ps = 0
        self.longest_wait_ps = 0

    @property
    def waiters(self) -> int:
        """How many wait for it now."""
        return len(self._queue)

    @property
    def use(self) -> Timeline:
        """When it was held, as far as it has been released again, and the number of holders."""
        return self._use

    def acquire(self, who: int, granted: Callable[[], None]) -> None:
        """Call `granted` once `who` holds the lock: at once if it is free."""
        if self.holder is None and not self._queue and not self._granting:
            self._grant(who, self._env._now, 0, granted)
        else:
            self._queue.append((who, self._env._now, granted))

    def release(self) -> None:
        """The holder lets go, and the first who waits gets it. Raises RuntimeError if nobody holds it."""
        if self.holder is None:
            raise RuntimeError(f"{self.name}: released, but nobody holds it")
        self._use.add(self._since_ps, self._env._now, 1)
        last = self.holder
        self.holder = None
        if self._granting:
            return  # a holder that let go at once: the loop below goes on, without deeper calls
        self._granting = True
        try:
            while self._queue and self._free():
                who, asked_ps, granted = self._queue.popleft()
                self._grant(who, asked_ps, last, granted)
                last = who
        finally:
            self._granting = False

    def _free(self) -> bool:
        return self.holder is None

    def _grant(self, who: int, asked_ps: int, behind: int, granted: Callable[[], None]) -> None:
        now = self._env._now
        self.holder = who
        self._since_ps = now
        self.behind = behind
        self.grants += 1
        wait = now - asked_ps
        if wait:
            self.waited += 1
            self.waited_ps += wait
            self.longest_wait_ps = max(self.longest_wait_ps, wait)
        granted()
