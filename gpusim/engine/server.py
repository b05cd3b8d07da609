"""A first-come-first-served server as a number: the time at which it becomes free."""

from __future__ import annotations

from heapq import heapify, heapreplace

from gpusim.engine.environment import Environment
from gpusim.engine.timeline import Timeline


class Server:
    """`lanes` equal servers behind one queue, served in the order of the calls; exact without an event.

    `reserve` answers at once when the service will start and end, and the caller waits until then by itself.
    This is the same as a SimPy `Resource` as long as requests are made in the order in which they reach the
    queue, and nobody leaves it.
    """

    __slots__ = ("_env", "_free", "_tags", "_use", "behind", "lanes", "name", "served", "waited_ps")

    def __init__(self, env: Environment, name: str, lanes: int = 1) -> None:
        if lanes < 1:
            raise ValueError(f"{name}: a server has at least one lane, not {lanes}")
        self._env = env
        self.name = name
        self.lanes = lanes
        self._free = [(0, lane) for lane in range(lanes)]
        heapify(self._free)
        self._tags = [0] * lanes
        self._use = Timeline(name)
        #: tag of whoever held the lane until the last reservation started; 0 if that one did not wait
        self.behind = 0
        self.served = 0
        self.waited_ps = 0

    @property
    def free_ps(self) -> int:
        """The first time at which a lane is, or becomes, free."""
        return max(self._env._now, self._free[0][0])

    @property
    def use(self) -> Timeline:
        """Busy time of all lanes together, and the number of services, over time."""
        return self._use

    def reserve(self, service_ps: int, at_ps: int | None = None, tag: int = 0) -> tuple[int, int]:
        """Take the next turn for `service_ps`, from `at_ps` (default: now) on; returns its start and end.

        Raises ValueError for a negative service or an arrival in the past.
        """
        now = self._env._now
        arrival = now if at_ps is None else at_ps
        if service_ps < 0 or arrival < now:
            raise ValueError(f"{self.name}: service of {service_ps} ps at {arrival} ps, and it is {now} ps")
        free, lane = self._free[0]
        if free > arrival:
            start = free
            self.waited_ps += free - arrival
            self.behind = self._tags[lane]
        else:
            start = arrival
            self.behind = 0
        end = start + service_ps
        if self.lanes == 1:
            self._free[0] = (end, 0)
        else:
            heapreplace(self._free, (end, lane))
        self._tags[lane] = tag
        self.served += 1
        self._use.add(start, end, 1)
        return start, end
