"""Many calls in the future on one place beside SimPy's queue: what is due is worked off in a row.

Wavefronts that were released together end their steps soon after each other, with nothing else in between. An entry on
SimPy's queue for each costs twice what a place in a heap of their own does; the environment looks at the head of that
heap only.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from gpusim.engine.alarm import NEVER, NORMAL, Key

if TYPE_CHECKING:
    from gpusim.engine.environment import Environment


_ORDER_BITS: Final = 44  # more events than a run can have
_ORDER: Final = (1 << 44) - 1
_NONE: Final = 1 << 200  # later than everything


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

    __slots__ = ("_at_work", "_env", "_first", "_items", "_order", "key")

    def __init__(self, env: Environment) -> None:
        self._env = env
        # Time and order in one number: numbers are compared in a fraction of the time that tuples take.
        self._order: list[int] = []  # a heap
        self._items: dict[int, Item] = {}
        self._first = _NONE  # the number that `key` says
        self._at_work = False
        self.key: Key = NEVER
        env.add_alarm(self)

    def __len__(self) -> int:
        return len(self._order)

    def add(self, time_ps: int, item: Item) -> None:
        """Call `item.due(time_ps)` at `time_ps` (not before now)."""
        number = time_ps << _ORDER_BITS | next(self._env._eid)
        self._items[number] = item
        heappush(self._order, number)
        if number < self._first and not self._at_work:
            self._move(number)

    def take_out(self, wanted: Callable[[Item], bool]) -> list[tuple[int, Item]]:
        """Remove the items that are `wanted`; returns them with their times, in order."""
        taken = sorted(number for number, item in self._items.items() if wanted(item))
        if not taken:
            return []
        found = [(number >> _ORDER_BITS, self._items.pop(number)) for number in taken]
        self._order = list(self._items)
        heapify(self._order)
        if not self._at_work:
            self._move(self._order[0] if self._order else _NONE)
        return found

    def ring(self) -> None:
        """Work off what is due before anything else is."""
        env = self._env
        queue = env._queue
        items = self._items
        more = 0  # the environment counts the first call itself
        number = heappop(self._order)
        now = number >> _ORDER_BITS
        self._move(_NONE)  # from here on it knows what is due first among the others
        self._at_work = True
        while True:
            items.pop(number).due(now)
            order = self._order
            if not order:
                break
            number = order[0]
            now = number >> _ORDER_BITS
            if now > env.limit_ps or (queue and queue[0][0] <= now) or env.alarm_key[0] <= now:
                # what else is due at this very time may have been there before
                key = _key(number)
                if now > env.limit_ps or (queue and queue[0] < key) or env.alarm_key < key:
                    break
            heappop(order)
            env._now = now
            more += 1
        self._at_work = False
        env.events += more
        if order:
            self._move(order[0])

    def _move(self, number: int) -> None:
        self._first = number
        self.key = NEVER if number == _NONE else _key(number)
        self._env.alarm_moved(self)


def _key(number: int) -> Key:
    return number >> _ORDER_BITS, NORMAL, number & _ORDER
