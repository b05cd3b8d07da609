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
from gpusim.engine.timeline import TURN_BITS


class Lane:
    """When one direction of a link has done the small transfers that were announced up to now."""

    __slots__ = ("free_ps", "link")

    def __init__(self, link: DirectedLink) -> None:
        self.link = link
        self.free_ps = 0


class _Size:
    """Transfers of one size over a path: the turn of each on every lane, and how many were not credited."""

    __slots__ = ("bytes", "count", "turns")

    def __init__(self, size_bytes: int, turns: tuple[tuple[Lane, int], ...]) -> None:
        self.bytes = size_bytes
        self.turns = turns
        self.count = 0


_MOST_SIZES = 64


class Row:
    """The lanes of a path, with the picoseconds that a byte takes of each, and what is not credited to their links."""

    __slots__ = ("_sizes", "first_ps", "lanes", "last_ps", "size", "turn_ps")

    def __init__(self, lanes: tuple[tuple[Lane, float], ...]) -> None:
        self.lanes = lanes
        self._sizes: dict[int, _Size] = {}
        self.size = self.of(1)  # the last one
        self.first_ps = 0
        self.last_ps = 0
        self.turn_ps = 0  # from here on is another bin

    def of(self, size_bytes: int) -> _Size:
        """What is known of transfers of a size."""
        found = self._sizes.get(size_bytes)
        if found is None:
            if len(self._sizes) >= _MOST_SIZES:
                self.credit()
                self._sizes.clear()
            turns = tuple((lane, int(size_bytes * ps_per_byte) + 1) for lane, ps_per_byte in self.lanes)
            found = self._sizes[size_bytes] = _Size(size_bytes, turns)
        self.size = found
        return found

    def credit(self) -> None:
        """Tell the links' timelines what was carried up to now."""
        for size in self._sizes.values():
            count = size.count
            if count:
                size.count = 0
                moved = count * size.bytes
                for lane, taken in size.turns:
                    lane.link.entered_bytes += moved
                    lane.link.meter.timeline.add(self.first_ps, self.last_ps, moved, count * taken)


class Express:
    """Reservations on the links of one network."""

    __slots__ = ("_env", "_lanes", "_network", "_rows", "transfers")

    def __init__(self, network: Network) -> None:
        self._network = network
        self._env = network.env
        self._lanes: dict[str, Lane] = {}
        self._rows: dict[tuple[Hop, ...], Row] = {}
        self.transfers = 0

    def path(self, hops: Sequence[Hop]) -> Row:
        """The lanes of a path. Raises KeyError for an unknown link."""
        key = tuple(hops)
        found = self._rows.get(key)
        if found is None:
            lanes = [(self._lane(name), cost) for name, cost in key]
            found = self._rows[key] = Row(tuple((lane, cost / lane.link.capacity) for lane, cost in lanes))
        return found

    def _lane(self, name: str) -> Lane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(self._network.link(name))
        return lane

    def idle(self, row: Row) -> bool:
        """Does no flow hold a link of the path?"""
        network = self._network
        if not network.busy and not network.unsettled:
            return True
        for lane, _ in row.lanes:  # noqa: SIM110 - a generator would cost more than the links
            if lane.link.held:
                return False
        return True

    def reserve(self, row: Row, size_bytes: int, at_ps: int) -> int:
        """Take a turn on all links of the path for a transfer that begins at `at_ps`, now or later; returns the end.

        A transfer may be announced before it begins: it finds the work of the time of its announcement, so that the
        link is never kept idle for it.
        """
        now = self._env._now
        self.transfers += 1
        if now >= row.turn_ps:
            row.credit()
            row.first_ps = now
            row.turn_ps = now + (now >> TURN_BITS) + 1000
        row.last_ps = now
        size = row.size
        if size.bytes != size_bytes:
            size = row.of(size_bytes)
        size.count += 1
        end = now + 1
        for lane, taken in size.turns:
            free = lane.free_ps
            free = (free if free > now else now) + taken
            lane.free_ps = free
            if free > end:  # noqa: PLR1730 - max() would cost twice as much
                end = free
        return at_ps + end - now

    def settle(self) -> None:
        """Credit everything to the links; at the end of a run."""
        for row in self._rows.values():
            row.credit()
