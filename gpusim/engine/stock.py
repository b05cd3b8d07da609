"""SimPy's side of the environment: ordinary SimPy events and processes on the same clock, queue and order."""

from __future__ import annotations

from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

import simpy

if TYPE_CHECKING:
    from gpusim.engine.environment import Environment


class Stock(simpy.Environment):
    """What SimPy's processes and events take for their environment; the clock is that of `owner`."""

    _queue: list[Any]
    _eid: count[int]

    def __init__(self, owner: Environment) -> None:
        self._owner = owner
        super().__init__(0)

    @property
    def _now(self) -> int:
        return self._owner._now

    @_now.setter
    def _now(self, time_ps: int) -> None:  # SimPy's own `step` and `run` move the clock
        self._owner._now = time_ps

    def step(self) -> None:
        """Process the next event or alarm; for SimPy's own `run`."""
        owner = self._owner
        key = owner.alarm_key
        if key[0] == inf or (self._queue and self._queue[0] < key):
            super().step()  # which raises SimPy's EmptySchedule if there is nothing
        else:
            owner.ring()

    def peek(self) -> int | float:
        """The time of the next event or alarm; infinite if there is none."""
        due: int | float = self._owner.alarm_key[0]
        return min(super().peek(), due)
