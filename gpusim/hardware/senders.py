"""Accesses that are sent again and again: who sends next, without an event for each send.

Each waiting access sends once a period, at a phase of its own. In a list ordered by phase the sends of all come round
like the hands of a clock, so that the next sender after a time is one look-up, and the sends in between are counted,
never simulated.
"""

from __future__ import annotations

from typing import Any

from sortedcontainers import SortedList

from gpusim.hardware.interrupt import Vector


class Senders:
    """Waiting accesses by the phase of their timer. One whose page has become valid is forgotten when met.

    With `until_told` a valid page does not end its sends: the hardware waits for a command.
    """

    def __init__(self, period_ps: int, *, until_told: bool = False) -> None:
        self._period = period_ps
        self._until_told = until_told
        self._ring: Any = SortedList()  # (phase, number, vector)
        self._number = 0

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, vector: Vector) -> None:
        """`vector` sends at `tick_ps` and each period after it; only times from its first send on are asked for."""
        self._number += 1
        self._ring.add((vector.tick_ps % self._period, self._number, vector))

    def next_after(self, time_ps: int) -> tuple[int, Vector, Any] | None:
        """The first send after `time_ps`: its time, its vector, and what `remove` takes; None if nobody waits."""
        ring, period = self._ring, self._period
        base, phase = time_ps - time_ps % period, time_ps % period
        at = ring.bisect_right((phase, self._number + 1, None))
        while ring:
            if at >= len(ring):
                at = 0
                base += period
            entry = ring[at]
            vector: Vector = entry[2]
            if vector.region.vm.dead or not (vector.waits or self._until_told):
                del ring[at]
            else:
                return base + entry[0], vector, entry
        return None

    def remove(self, entry: Any) -> None:
        """This one sends no more."""
        self._ring.remove(entry)

    def purge(self) -> None:
        """Forget all whose pages have become valid."""
        dead = [entry for entry in self._ring if not entry[2].waits]
        if len(dead) * 4 > len(self._ring):
            gone = set(map(id, dead))
            self._ring = SortedList(entry for entry in self._ring if id(entry) not in gone)
        else:
            for entry in dead:
                self._ring.remove(entry)
