"""Transfers over paths of links: everybody gets a max-min fair share of the links on its way, as a fluid.

A transfer holds all links of its path for its whole length; what it takes of each is `cost` of the capacity
per byte, so that 1/cost is its payload efficiency there. The two directions of a link may take capacity from
each other.

Left out: packets, buffers and their fill, latency (the caller adds it), and any order among flows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from operator import attrgetter

from gpusim.engine.alarm import Alarm
from gpusim.engine.components import Component, Memory
from gpusim.engine.environment import Environment
from gpusim.engine.fluid import per_ps
from gpusim.engine.links import Bundle, DirectedLink, Path
from gpusim.engine.timeline import Timeline
from gpusim.engine.work import Call, Work, check_job

#: the name of a link's direction, and the capacity that one byte takes of it
Hop = tuple[str, float]

_ORDER = attrgetter("order")
#: refreshes of rates after which bundles that have seen no flow since the last time are let go
_TIDY_AFTER = 256


class Flow(Work):
    """One transfer on its way: see `Work` for what can be done to it."""

    __slots__ = ("order",)

    def __init__(
        self,
        bundle: Bundle,
        size_bytes: int,
        weight: float,
        done: Callable[[Flow], None] | None,
        now_ps: int,
        order: int,
    ) -> None:
        super().__init__(bundle, size_bytes, weight, done, now_ps)
        self.order = order  # of the start, among all flows

    def __call__(self) -> None:
        done = self.resume
        if done is not None:
            self.resume = None
            done(self)

    @property
    def rate_bytes_per_s(self) -> float:
        """How fast it moves now; 0 once it has ended."""
        return 0.0 if self.end_ps is not None else self.pool.rate * self.weight * 1e12


class Ride:
    """What a flow of weight 1 calls at its end, if nobody cuts, resizes or asks about it: see `Network.carry`."""

    __slots__ = ("order",)

    order: int

    def __call__(self) -> None:
        raise NotImplementedError


class Way:
    """A path with a cap, for many rides: what a network knows of it is found once."""

    __slots__ = ("bundle", "cap", "path")

    def __init__(self, path: Path, cap: float) -> None:
        self.path = path
        self.cap = cap
        self.bundle: Bundle | None = None


class Network:
    """Links and the flows over them, with an integer clock and at most one live wake-up.

    `transfers` counts the flows that were started, `wakeups` the events that they took; `busy` is how many bundles have
    flows; where that is 0 and nothing is `unsettled`, no link is held.
    """

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.transfers = 0
        self.busy = 0
        self._links: dict[str, DirectedLink] = {}
        self._paths: dict[tuple[Hop, ...], Path] = {}
        self._components: dict[Component, None] = {}  # in order of birth
        self._memory = Memory()
        self._untidy = 0  # refreshes since the last tidying
        self.unsettled: dict[Component, None] = {}  # during a wake-up: those whose rates are to be found
        self._alarm = Alarm(env, self._wake)
        self._waking = False

    @property
    def wakeups(self) -> int:
        return self._alarm.rings

    @property
    def components(self) -> int:
        """How many sets of flows there are whose rates do not depend on each other."""
        self._tidy(idle=False)
        return len(self._components)

    def add_link(
        self, name: str, *, capacity_bytes_per_s: float, reverse: str | None = None, coupling: float = 0.0
    ) -> DirectedLink:
        """Add one direction of a link; `coupling` times what `reverse` uses is taken from its capacity.

        `reverse` may be added later, and need not name this one. Raises ValueError for a name that exists, a
        coupling outside 0 to 1, or directions of which one could take all of the other.
        """
        if name in self._links:
            raise ValueError(f"there is a link {name!r} already")
        if not 0.0 <= coupling < 1.0:
            raise ValueError(f"{name}: coupling is at least 0 and below 1, not {coupling}")
        link = DirectedLink(name, per_ps(capacity_bytes_per_s, f"{name}: capacity"), coupling, reverse)
        for other in self._links.values():
            if other.reverse_name == name or other.name == reverse:
                link.pair(other)
        self._links[name] = link
        return link

    def link(self, name: str) -> DirectedLink:
        """Raises KeyError if there is none."""
        return self._links[name]

    def use(self, name: str) -> Timeline:
        """Bytes carried by a link's direction up to now, and time busy (by the share of what is open)."""
        return self._links[name].timeline(self.env._now)

    def transfer(
        self,
        path: Sequence[Hop],
        size_bytes: int,
        *,
        weight: float = 1.0,
        cap_bytes_per_s: float | None = None,
        done: Callable[[Flow], None] | None = None,
    ) -> Flow:
        """Start a flow now; `done` is called at its end, at least a picosecond from now.

        `cap_bytes_per_s` is per unit of weight. Raises KeyError for an unknown link, ValueError for a path
        without links, a cost, cap or weight that is not positive, or a negative size.
        """
        check_job(size_bytes, weight)
        route = self._path(path)
        cap = inf if cap_bytes_per_s is None else per_ps(cap_bytes_per_s, "cap")
        now = self.env._now
        bundle = self._bundle(route, cap, now)
        flow = Flow(bundle, size_bytes, weight, done, now, self.transfers)
        bundle.corrected(size_bytes, 0.0)
        bundle.used = True
        self.transfers += 1
        self.touched(bundle.home)
        return flow

    def way(self, path: Sequence[Hop], cap_bytes_per_s: float | None = None) -> Way:
        """For `carry`. Raises what `transfer` does for the path and the cap."""
        return Way(self._path(path), inf if cap_bytes_per_s is None else per_ps(cap_bytes_per_s, "cap"))

    def carry(self, way: Way, size_bytes: int, ride: Ride) -> None:
        """Start a flow of weight 1 now; `ride` is called at its end, at least a picosecond from now."""
        now = self.env._now
        bundle = way.bundle
        if bundle is None or bundle.component is None:
            bundle = way.bundle = self._bundle(way.path, way.cap, now)
        home = bundle.home
        home.settle(now)
        ride.order = self.transfers
        self.transfers += 1
        bundle.used = True
        bundle.weight += 1
        bundle.corrected(size_bytes, 0.0)
        bundle.add(bundle.v + max(size_bytes, bundle.least), ride)
        self.touched(home)

    def _bundle(self, path: Path, cap: float, now: int) -> Bundle:
        """The bundle of a path and a cap, in a component that is settled."""
        bundle = path.bundles.get(cap)
        if bundle is None:
            bundle = path.bundles[cap] = Bundle(self.env, path, cap, self.touched)
            self._connect(bundle, now)
        else:
            bundle.home.settle(now)
        return bundle

    def touched(self, component: Component) -> None:
        """The rates of a component are to be found again; it is settled."""
        if self._waking:
            self.unsettled[component] = None
            return
        self._refresh(component)
        self._alarm.set(self._soonest_ps())

    def _refresh(self, component: Component) -> None:
        """Also of one without bundles, which another has taken in."""
        before = component.counted
        component.share()
        self.busy += component.counted - before
        self._untidy += 1
        if self._untidy >= _TIDY_AFTER:
            self._tidy(idle=True)

    def _tidy(self, *, idle: bool) -> None:
        """Let go of the bundles without flows, with `idle` of those only that had none for long."""
        self._untidy = 0
        for component in list(self._components):
            before = component.counted
            parts = component.part(idle=idle)
            if parts is None:
                continue
            self.busy -= before
            del self._components[component]
            for part in parts:
                part.share()
                self.busy += part.counted
                self._components[part] = None

    def _connect(self, bundle: Bundle, now: int) -> None:
        """Put a new bundle into the component of its links, which may make one of several."""
        found: dict[Component, None] = {}
        for link, _ in bundle.path.hops:
            for near in (link, link.coupled()):
                if near is not None and near.component is not None:
                    found[near.component] = None
        if found:
            for component in found:
                component.settle(now)
            home = max(found, key=_size)
            for component in found:
                if component is not home:
                    home.absorb(component)
                    del self._components[component]
        else:
            home = Component(now, self._memory)
            self._components[home] = None
        home.join(bundle)

    def _soonest_ps(self) -> int | None:
        soonest = None
        for component in self._components:
            end = component.next_ps
            if end is not None and (soonest is None or end < soonest):
                soonest = end
        return soonest

    def _wake(self) -> int | None:
        now = self.env._now
        finished: list[Call] = []
        for component in self._components:
            if component.next_ps is not None and component.next_ps <= now:
                component.take(finished, now)
                self.unsettled[component] = None
        if len(finished) > 1:
            finished.sort(key=_ORDER)  # ends in the same picosecond are told in the order of their starts
        self._waking = True
        for call in finished:
            call()
        self._waking = False
        touched = list(self.unsettled)
        self.unsettled.clear()
        for component in touched:
            self._refresh(component)
        return self._soonest_ps()

    def _path(self, hops: Sequence[Hop]) -> Path:
        key = tuple(hops)
        found = self._paths.get(key)
        if found is None:
            if not key:
                raise ValueError("a path has at least one link")
            for name, cost in key:
                if not 0.0 < cost < inf:
                    raise ValueError(f"{name}: cost is positive and finite, not {cost}")
            found = self._paths[key] = Path([(self._links[name], cost) for name, cost in key])
        return found


def _size(component: Component) -> int:
    return len(component.bundles)
