"""One wake-up that can be moved, for a server that does not know yet when its next job will end."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gpusim.engine.environment import Environment

NORMAL: Final = 1  # SimPy's priority of ordinary events
#: (time in ps, priority, order): the place of an alarm among the entries of SimPy's queue
#: (more may follow, which is never compared)
Key = tuple[Any, ...]
#: the key of an alarm that is not set
NEVER: Final[Key] = (inf, NORMAL, 0)


class Alarm:
    """Calls `ring` at a time that may be moved or taken back: it is not on SimPy's queue.

    A shared server's next departure moves with each arrival. Nothing can be moved on the
    queue, so the environment compares its first entry with the alarm that is due first; ties keep the order
    in which they were set. `rings` counts the calls, which are events.
    """

    __slots__ = ("_env", "_ring", "key", "rings")

    def __init__(self, env: Environment, ring: Callable[[], int | None]) -> None:
        """`ring` returns when to ring next, if at all; until then the owner does not set the alarm."""
        self._env = env
        self._ring = ring
        self.key: Key = NEVER
        self.rings = 0
        env.add_alarm(self)

    def set(self, time_ps: int | None) -> None:
        """Ring at `time_ps`, or not at all."""
        if time_ps is None:
            self.key = NEVER
        elif time_ps != self.key[0]:
            self.key = (time_ps, NORMAL, next(self._env._eid))
        else:
            return
        self._env.alarm_moved(self)

    def ring(self) -> None:
        """The time has come."""
        self.rings += 1
        time_ps = self._ring()
        self.key = NEVER if time_ps is None else (time_ps, NORMAL, next(self._env._eid))
        self._env.alarm_moved(self)
