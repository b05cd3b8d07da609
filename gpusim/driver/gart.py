"""The GART windows of one GPU, and the lock over them (`kfd_svm.md` 3.1, gtt_window_lock).

Host memory that SDMA copies or clears from is entered into a window of 512 pages first: window 0 serves migrations,
window 1 the clearing of buffer objects. Both are used under one lock and by the jobs of one ring, so that migrations
and clears of a GPU come one after another, whole call by whole call, whichever process they are for.

A call whose turn it is pays no event for it. The jobs that write the entries belong to the turn: where they were spent
while another call was still at work, they are spent once more behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gpusim.engine.environment import Environment
from gpusim.engine.timeline import Timeline


class GartWindows:
    """First come, first served. `free_ps` is when the last turn ended, or will end where that is known already."""

    __slots__ = ("_env", "_queue", "_since_ps", "free_ps", "taken", "use", "waited", "waited_ps")

    def __init__(self, env: Environment, name: str) -> None:
        self._env = env
        self._queue: deque[tuple[int, Callable[[], None]]] = deque()
        self._since_ps = 0
        self.free_ps = 0
        self.taken = False
        self.use = Timeline(name)
        self.waited = 0
        self.waited_ps = 0

    def take(self, granted: Callable[[], None]) -> None:
        """Call `granted` when it is the caller's turn, at once if nobody is at work; `release` ends the turn."""
        now = self._env._now
        if self.taken or self._queue:
            self._queue.append((now, granted))
            return
        self.taken = True
        if self.free_ps <= now:
            self._since_ps = now
            granted()
            return
        self._wait(now, self.free_ps)
        self._since_ps = self.free_ps
        self._env.call_at(self.free_ps, granted)

    def release(self) -> None:
        """The turn is over; who comes next is called."""
        now = self._env._now
        self.use.add(self._since_ps, now, 1)
        self.free_ps = self._since_ps = now
        if not self._queue:
            self.taken = False
            return
        asked_ps, granted = self._queue.popleft()
        self._wait(asked_ps, now)
        granted()

    def book(self, start_ps: int, end_ps: int) -> None:
        """A turn of known length, when nobody is at work and `free_ps` has been waited for."""
        self.use.add(start_ps, end_ps, 1)
        self.free_ps = end_ps

    def again_ps(self, jobs_ps: int, spent_ps: int) -> int:
        """How much of `jobs_ps` that ended at `spent_ps` lay before the turn and has to be spent in it."""
        return max(0, min(jobs_ps, self.free_ps - (spent_ps - jobs_ps)))

    def _wait(self, asked_ps: int, granted_ps: int) -> None:
        self.waited += 1
        self.waited_ps += granted_ps - asked_ps
