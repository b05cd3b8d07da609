"""Many calls in the future on one place beside SimPy's queue: what is due is worked off in a row.

Wavefronts that were released together end their steps soon after each other, with nothing else in between. An entry on
SimPy's queue for each costs twice what a place in a heap of their own does; the environment looks at the head of that
heap only.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from gpusim.engine.alarm import NEVER, NORMAL, Key

if TYPE_CHECKING:
    from gpusim.engine.environment import Environment


class Due(Protocol):
    """What an agenda calls."""

    def due(self, now_ps: int) -> None:
        """The time has come."""
        ...


Item = TypeVar("Item", bound=Due)


class Agenda(Generic[Item]):
    """Calls `due` of each item at its time; ties keep the order in which they were added.

    Each call is an event. A call may add items and may do whatever else an event may do.
    """

    __slots__ = ("_at_work", "_env", "heap", "key")

    def __init__(self, env: Environment) -> None:
        self._env = env
        #: in heap order; to be looked at only
        self.heap: list[tuple[int, int, int, Item]] = []
        self._at_work = False
        self.key: Key = NEVER
        env.add_alarm(self)

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, time_ps: int, item: Item) -> None:
        """Call `item.due(time_ps)` at `time_ps` (not before now)."""
        entry = (time_ps, NORMAL, next(self._env._eid), item)
        heappush(self.heap, entry)
        if entry < self.key and not self._at_work:
            self._move(entry)

    def take_out(self, wanted: Callable[[Item], bool]) -> list[tuple[int, Item]]:
        """Remove the items that are `wanted`; returns them with their times, in order."""
        taken = sorted(entry for entry in self.heap if wanted(entry[3]))
        if taken:
            self.heap = [entry for entry in self.heap if not wanted(entry[3])]
            heapify(self.heap)
            if not self._at_work:
                self._move(self.heap[0] if self.heap else NEVER)
        return [(entry[0], entry[3]) for entry in taken]

    def ring(self) -> None:
        """Work off what is due before anything else is."""
        env = self._env
        queue = env._queue
        entry = heappop(self.heap)
        now = entry[0]
        more = 0  # the environment counts the first call itself
        self._move(NEVER)  # from here on it knows what is due first among the others
        self._at_work = True
        while True:
            entry[3].due(now)
            heap = self.heap
            if not heap:
                break
            entry = heap[0]
            now = entry[0]
            if now > env.limit_ps or (queue and queue[0] < entry) or env.alarm_key < entry:
                break
            heappop(heap)
            env._now = now
            more += 1
        self._at_work = False
        env.events += more
        if heap:
            self._move(heap[0])

    def _move(self, key: Key) -> None:
        self.key = key
        self._env.alarm_moved(self)
