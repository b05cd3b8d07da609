"""Directions of links, paths over them, and bundles: the flows with the same path and cap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

from gpusim.engine.environment import Environment
from gpusim.engine.fluid import Pool
from gpusim.engine.timeline import Meter, Timeline
from gpusim.engine.work import EPSILON_PS

if TYPE_CHECKING:
    from gpusim.engine.components import Component


class DirectedLink:
    """One direction of a link. `capacity` in bytes per ps; what the reverse direction uses takes `coupling`
    of it.

    `entered_bytes` is what flows were asked to carry over it, less what was cut; bundles report it late.
    """

    __slots__ = (
        "bundles",
        "capacity",
        "component",
        "coupling",
        "entered_bytes",
        "meter",
        "name",
        "reverse",
        "reverse_name",
    )

    def __init__(
        self, name: str, capacity: float, coupling: float = 0.0, reverse_name: str | None = None
    ) -> None:
        self.name = name
        self.capacity = capacity
        self.coupling = coupling
        self.reverse_name = reverse_name
        self.reverse: DirectedLink | None = None
        self.bundles: dict[Bundle, float] = {}  # those over it, with flows or not, and their costs
        self.component: Component | None = None
        self.meter = Meter(Timeline(name))
        self.entered_bytes = 0

    def pair(self, other: DirectedLink) -> None:
        """Make two links the directions of one.

        Raises ValueError if one of them has another reverse, or if one at full use left nothing of the other.
        """
        for one, back in ((self, other), (other, self)):
            if one.reverse is not None:
                raise ValueError(f"{one.name} is the reverse of {one.reverse.name}, not of {back.name}")
            if one.coupling * back.capacity >= one.capacity:
                raise ValueError(f"{one.name}: {back.name} at full use would leave nothing of it")
        self.reverse = other
        other.reverse = self

    def coupled(self) -> DirectedLink | None:
        """The reverse direction, if one takes capacity from the other."""
        reverse = self.reverse
        return reverse if reverse is not None and (self.coupling or reverse.coupling) else None

    @property
    def held(self) -> bool:
        """Is there a flow on it?"""
        for bundle in self.bundles:  # noqa: SIM110 - asked for each small transfer: a generator would cost more
            if bundle.weight:
                return True
        return False

    @property
    def share(self) -> float:
        """How much of what is open to it is in use now: 1 is all."""
        return 0.0 if self.component is None else self.component.share_of(self)

    def timeline(self, now_ps: int) -> Timeline:
        """Bytes carried and time busy (weighted by the share of the open capacity), up to now."""
        component = self.component
        if not self.held:  # what has ended belongs to the time before
            if component is not None:
                component.credit()
            return self.meter.settle(now_ps, self.entered_bytes)
        if component is not None:
            component.settle(now_ps)
            component.credit()
        return self.meter.settle(now_ps)


class Path:
    """Links in a row, with the capacity that a byte takes of each; `alone` is the rate of a flow that has it
    all.
    """

    __slots__ = ("alone", "bundles", "hops")

    def __init__(self, hops: Sequence[tuple[DirectedLink, float]]) -> None:
        costs: dict[DirectedLink, float] = {}
        for link, cost in hops:
            costs[link] = costs.get(link, 0.0) + cost
        self.hops = tuple(costs.items())
        self.alone = inf
        for link, cost in self.hops:
            taken = cost
            if link.reverse is not None:
                taken += link.coupling * costs.get(link.reverse, 0.0)
            self.alone = min(self.alone, link.capacity / taken)
        self.bundles: dict[float, Bundle] = {}  # by cap: those that belong to a component


class Bundle(Pool):
    """The flows with the same path and the same cap.

    It stays in its component for a while when the last of them has ended: mostly the next one comes soon. `used` is
    set when one comes.
    """

    __slots__ = ("_beyond", "_entered", "_env", "_touched", "component", "least", "path", "used")

    def __init__(
        self, env: Environment, path: Path, cap: float, touched: Callable[[Component], None]
    ) -> None:
        """`touched` is called when the rates of the bundle's component have to be found again."""
        super().__init__(cap)
        self._env = env
        self._touched = touched
        self.path = path
        self.component: Component | None = None  # set by the one that takes it in
        self.used = True
        #: bytes of a flow of weight 1 that ends no sooner than it starts
        self.least = 2.0 * EPSILON_PS * min(cap, path.alone)
        self._entered = 0  # what the links were not told yet
        self._beyond = 0.0

    @property
    def home(self) -> Component:
        """The component that it belongs to."""
        assert self.component is not None
        return self.component

    def settle(self) -> int:
        now = self._env._now
        self.home.settle(now)
        return now

    def changed(self) -> None:
        self._touched(self.home)

    def corrected(self, entered: int, moved: float) -> None:
        self._entered += entered
        self._beyond += moved

    def report(self) -> None:
        """Tell the links what was entered and corrected."""
        entered, beyond = self._entered, self._beyond
        if entered or beyond:
            self._entered = 0
            self._beyond = 0.0
            for link, _ in self.path.hops:
                link.entered_bytes += entered
                link.meter.moved += beyond

    def alone_rate(self, weight: float) -> float:
        return min(self.cap * weight, self.path.alone)
