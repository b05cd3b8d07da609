"""Many calls in the future on one place beside SimPy's queue: what is due is worked off in a row.

Wavefronts that were released together end their steps soon after each other, with nothing else in between. An entry on
SimPy's queue for each costs twice what a place in a heap of their own does; the environment looks at the head of that
heap only.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
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

    __slots__ = ("_at_work", "_env", "_items", "_length", "_times", "key")

    def __init__(self, env: Environment) -> None:
        self._env = env
        # A heap of numbers, and what is due at each of them: tuples take three times as long to compare.
        self._times: list[int] = []
        self._items: dict[int, list[tuple[int, Item]]] = {}  # with their places in the order of all events
        self._length = 0
        self._at_work = False
        self.key: Key = NEVER
        env.add_alarm(self)

    def __len__(self) -> int:
        return self._length

    def add(self, time_ps: int, item: Item) -> None:
        """Call `item.due(time_ps)` at `time_ps` (not before now)."""
        order = next(self._env._eid)
        items = self._items
        self._length += 1
        if time_ps in items:
            items[time_ps].append((order, item))
            return
        items[time_ps] = [(order, item)]
        times = self._times
        heappush(times, time_ps)
        if times[0] == time_ps and not self._at_work:
            self._move()

    def take_out(self, wanted: Callable[[Item], bool]) -> list[tuple[int, Item]]:
        """Remove the items that are `wanted`; returns them with their times, in order."""
        taken: list[tuple[int, Item]] = []
        for time_ps in sorted(self._times):
            here = self._items.pop(time_ps)
            taken += [(time_ps, item) for _, item in here if wanted(item)]
            left = [entry for entry in here if not wanted(entry[1])]
            if left:
                self._items[time_ps] = left
        if taken:
            self._length -= len(taken)
            self._times = sorted(self._items)  # which is a heap
            if not self._at_work:
                self._move()
        return taken

    def ring(self) -> None:
        """Work off what is due before anything else is."""
        env = self._env
        queue = env._queue
        more = -1  # the environment counts the first call itself
        now = self._times[0]
        self._at_work = True
        self.key = NEVER
        env.alarm_moved(self)  # from here on it knows what is due first among the others
        while True:
            here = self._items[now]
            item = here[0][1]
            if len(here) == 1:
                del self._items[now]
                heappop(self._times)
            else:
                del here[0]
            self._length -= 1
            env._now = now
            more += 1
            item.due(now)
            if not self._length:
                break
            now = self._times[0]
            if now > env.limit_ps:
                break
            if (queue and queue[0][0] <= now) or env.alarm_key[0] <= now:
                # what else is due at this very time may have been there before
                key = self._head()
                if (queue and queue[0] < key) or env.alarm_key < key:
                    break
        self._at_work = False
        env.events += more
        self._move()

    def _head(self) -> Key:
        """The place of its first item among all events."""
        if not self._length:
            return NEVER
        time_ps = self._times[0]
        return time_ps, NORMAL, self._items[time_ps][0][0]

    def _move(self) -> None:
        self.key = self._head()
        self._env.alarm_moved(self)
