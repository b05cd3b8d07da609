"""Small transfers over idle links: first come, first served by arithmetic, without a flow and its events.

A 4 KiB transfer lasts less than a microsecond: finding fair rates for it costs more than it tells. As long as no flow
holds a link of its path, it takes its turn behind the other small ones on each link; bytes and busy time are credited
to the links like those of flows. Where a flow holds one of the links, it has to be a flow itself, and competes.

Left out: that the directions of a link take capacity from each other, and the small transfers still on their way
when a flow starts (microseconds).
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.engine.flows import Hop, Network
from gpusim.engine.links import DirectedLink


class Lane:
    """What small transfers keep of one direction of a link: the work ahead of the next one, and what is not credited.

    `ahead_ps` is the work that was there at `last_ps`; it shrinks with time. A transfer may be announced before it
    begins: it finds the work of the time of its announcement, so that the link is never kept idle for it.
    """

    __slots__ = ("ahead_ps", "busy_ps", "bytes", "first_ps", "last_ps", "link", "turn_ps")

    def __init__(self, link: DirectedLink) -> None:
        self.link = link
        self.ahead_ps = 0
        self.last_ps = 0
        self.first_ps = 0  # of what is not credited
        self.turn_ps = 0
        self.bytes = 0
        self.busy_ps = 0

    def credit(self) -> None:
        """Tell the link's timeline what was carried up to now."""
        if self.bytes:
            link = self.link
            link.entered_bytes += self.bytes
            link.meter.timeline.add(self.first_ps, self.last_ps, self.bytes, self.busy_ps)
            self.bytes = 0
            self.busy_ps = 0


class Express:
    """Reservations on the links of one network."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._env = network.env
        self._lanes: dict[str, Lane] = {}
        self._paths: dict[tuple[Hop, ...], tuple[tuple[Lane, float], ...]] = {}
        self.transfers = 0

    def path(self, hops: Sequence[Hop]) -> tuple[tuple[Lane, float], ...]:
        """The lanes of a path with the picoseconds that a byte takes of each. KeyError for an unknown link."""
        key = tuple(hops)
        found = self._paths.get(key)
        if found is None:
            found = self._paths[key] = tuple((self._lane(name), cost) for name, cost in key)
            found = self._paths[key] = tuple((lane, cost / lane.link.capacity) for lane, cost in found)
        return found

    def _lane(self, name: str) -> Lane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(self._network.link(name))
        return lane

    @staticmethod
    def idle(path: tuple[tuple[Lane, float], ...]) -> bool:
        """Does no flow hold a link of the path?"""
        for lane, _ in path:  # noqa: SIM110 - a generator would cost more than the links
            if lane.link.held:
                return False
        return True

    def reserve(self, path: tuple[tuple[Lane, float], ...], size_bytes: int, at_ps: int) -> int:
        """Take a turn on all links of the path for a transfer that begins at `at_ps`, now or later; returns the end."""
        now = self._env._now
        self.transfers += 1
        longest = 1
        for lane, ps_per_byte in path:
            taken = int(size_bytes * ps_per_byte) + 1
            ahead = lane.ahead_ps - now + lane.last_ps
            if ahead > 0:
                ahead += taken
            else:
                ahead = taken
            lane.ahead_ps = ahead
            if now >= lane.turn_ps:
                lane.credit()
                lane.first_ps = now
                lane.turn_ps = lane.link.meter.timeline.bin_end_ps(now)
            lane.last_ps = now
            lane.bytes += size_bytes
            lane.busy_ps += taken
            if ahead > longest:  # noqa: PLR1730 - max() would cost twice as much
                longest = ahead
        return at_ps + longest

    def settle(self) -> None:
        """Credit everything to the links; at the end of a run."""
        for lane in self._lanes.values():
            lane.credit()
