"""An NVMe drive: parallel units behind one queue, a rate for each direction, a write cache, and flush."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapreplace
from math import ceil, inf

from gpusim.engine.environment import Environment
from gpusim.engine.express import Express, Row
from gpusim.engine.flows import Hop, Network, Ride, Way
from gpusim.engine.links import DirectedLink
from gpusim.hardware.drive_spec import DriveSpec
from gpusim.hardware.write_cache import WriteCache

Done = Callable[[], None]
#: a direction of the drive that carries this share of what it can is full
_FULL = 0.95
#: requests up to this size take their turn on idle links instead of becoming flows
EXPRESS_BYTES = 32 << 10


class Route:
    """A way between a drive and where its data go: see `Drive.route`. `way` is that of one request alone."""

    __slots__ = ("latency_ps", "other_ways", "path", "row", "units", "way", "write")

    def __init__(
        self, write: bool, latency_ps: int, units: list[int], path: tuple[Hop, ...], row: Row, way: Way
    ) -> None:
        self.write = write
        self.latency_ps = latency_ps
        self.units = units  # when each of the drive's units for this direction is free: a heap
        self.path = path
        self.row = row
        self.way = way
        self.other_ways: dict[float, Way] = {}  # by the rate of what stands for many commands


class Turns:
    """Who moves data in one direction: as many requests as fill the drive, the others in order."""

    __slots__ = ("active", "link", "most", "waiting")

    def __init__(self, bandwidth: float, stream: float, link: DirectedLink) -> None:
        self.active = 0
        self.most = max(1, ceil(bandwidth / stream - 1e-9))
        self.link = link
        self.waiting: deque[_Moving] = deque()

    @property
    def open(self) -> bool:
        """May one more begin? Also where those that move are held back elsewhere, so that the drive has room."""
        return self.active < self.most or self.link.share < _FULL


class _Moving(Ride):
    """A request that has had its unit: its data are moved when it is their turn, or at once without `turns`."""

    __slots__ = ("done", "network", "size", "turns", "way")

    def __init__(self, network: Network, way: Way, size_bytes: int, turns: Turns | None, done: Done) -> None:
        self.network = network
        self.way = way
        self.size = size_bytes
        self.turns = turns
        self.done = done

    def begin(self) -> None:
        """Its data are there."""
        turns = self.turns
        if turns is not None:
            if not turns.open:
                turns.waiting.append(self)
                return
            turns.active += 1
        self.network.carry(self.way, self.size, self)

    def __call__(self) -> None:
        """Its data have moved."""
        turns = self.turns
        if turns is not None:
            if turns.waiting and turns.active <= turns.most:
                after = turns.waiting.popleft()
                after.network.carry(after.way, after.size, after)
            else:
                turns.active -= 1
        self.done()


class Drive:
    """A request waits for a unit, holds it for the latency, and then moves its data over the whole path at once.

    The latency by queue depth follows: constant up to `units` requests in flight, then growing with them; that by
    size is the latency plus the size over the request's share of the path, its own cap being `stream`. Requests move
    their data in order, as many at once as fill the drive at that cap; small ones and those with a rate of their own,
    which stand for many commands, do not wait for the turn of others.

    Left out: the split of requests into commands and their completion one by one, collisions on single dies,
    garbage collection, wear, thermal limits, namespaces and submission-queue depth.
    """

    def __init__(
        self,
        spec: DriveSpec,
        *,
        name: str,
        numa: int,
        env: Environment,
        network: Network,
        express: Express,
    ) -> None:
        self.spec = spec
        self.name = name
        self.numa = numa
        self._env = env
        self._network = network
        self._express = express
        self._free = {
            False: [0] * spec.read.units,
            True: [0] * spec.write.units,
        }  # when each unit is, as heaps
        self._latency = {False: spec.read.latency, True: spec.write.latency}
        self._stream = {False: spec.read.stream, True: spec.write.stream}
        self.cache = WriteCache(spec.write.cache, spec.write.sustained)
        self.flushes = 0
        links = [
            network.add_link(
                f"{name}.{way}", capacity_bytes_per_s=rate, reverse=f"{name}.{other}", coupling=spec.coupling
            )
            for way, rate, other in (
                ("read", spec.read.bandwidth, "write"),
                ("write", spec.write.bandwidth, "read"),
            )
        ]
        self._own: dict[bool, Hop] = {False: (f"{name}.read", 1.0), True: (f"{name}.write", 1.0)}
        self._turns = {
            False: Turns(spec.read.bandwidth, spec.read.stream, links[0]),
            True: Turns(spec.write.bandwidth, spec.write.stream, links[1]),
        }

    @property
    def links(self) -> tuple[str, str]:
        """The names of its two directions in the network."""
        return self._own[False][0], self._own[True][0]

    def route(self, hops: tuple[Hop, ...], *, write: bool, delay_ps: int = 0) -> Route:
        """A way for data beyond the drive's own link; `delay_ps` is added to the latency of its requests."""
        path = (self._own[write], *hops)
        way = self._network.way(path, self._stream[write])
        latency = self._latency[write] + delay_ps
        return Route(write, latency, self._free[write], path, self._express.path(path), way)

    def reserve(self, size_bytes: int, route: Route, at_ps: int) -> int:
        """Begin a small request at `at_ps`, now or later; returns its end, or -1 where it has to be submitted.

        Nothing waits for it here, so it costs no event.
        """
        express = self._express
        if size_bytes > EXPRESS_BYTES or not express.idle(route.row):
            return -1
        units = route.units  # as in `_ready`, which is not called: this is what small requests are made of
        free = units[0]
        ready = (free if free > at_ps else at_ps) + route.latency_ps
        heapreplace(units, ready)
        if route.write:
            ready = self.cache.take(size_bytes, ready)
        return express.reserve(route.row, size_bytes, ready)

    def alone_ps(self, size_bytes: int, route: Route, stream: float | None = None) -> int:
        """What a request would take with nobody else at the drive and on its way, and an empty write cache."""
        way = route.way if stream is None else self._way(route, stream)
        return route.latency_ps + ceil(size_bytes / min(way.cap, way.path.alone))

    def _ready(self, size_bytes: int, route: Route, at_ps: int) -> int:
        """When a request that comes at `at_ps` can begin to move its data."""
        units = route.units
        free = units[0]
        ready = (free if free > at_ps else at_ps) + route.latency_ps
        heapreplace(units, ready)
        return self.cache.take(size_bytes, ready) if route.write else ready

    def submit(
        self,
        size_bytes: int,
        route: Route,
        done: Done,
        stream: float | None = None,
        at_ps: int | None = None,
    ) -> None:
        """Begin a request now, or later at `at_ps`; `done` is called when its data have moved.

        `stream` replaces the rate of one request (bytes a second; inf: none) for what stands for many commands.
        """
        env = self._env
        ready = self._ready(size_bytes, route, env._now if at_ps is None else at_ps)
        turns = None
        way = route.way
        if size_bytes <= EXPRESS_BYTES:
            if self._express.idle(route.row):
                env.call_at(self._express.reserve(route.row, size_bytes, ready), done)
                return
        elif stream is None:
            turns = self._turns[route.write]
        else:
            way = self._way(route, stream)
        env.call_at(ready, _Moving(self._network, way, size_bytes, turns, done).begin)

    def _way(self, route: Route, stream: float) -> Way:
        way = route.other_ways.get(stream)
        if way is None:
            way = self._network.way(route.path, stream if stream < inf else None)
            route.other_ways[stream] = way
        return way

    def flush(self, done: Done) -> None:
        """A flush command: `done` is called when what was written before is safe."""
        now = self._env._now
        self.flushes += 1
        safe = self.cache.empty_ps(now) if self.spec.volatile_cache else now
        self._env.call_at(safe + self.spec.flush, done)
