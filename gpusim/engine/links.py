"""Directions of links, paths over them, and bundles: the flows with the same path and cap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

from gpusim.engine.environment import Environment
from gpusim.engine.fluid import Pool
from gpusim.engine.timeline import Meter, Timeline

if TYPE_CHECKING:
    from gpusim.engine.components import Component


class DirectedLink:
    """One direction of a link. `capacity` in bytes per ps; what the reverse direction uses takes `coupling`
    of it.

    `entered_bytes` is what flows were asked to carry over it, less what was cut.
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
        self.bundles: dict[Bundle, float] = {}  # those with flows on it, and their costs
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

    def timeline(self, now_ps: int) -> Timeline:
        """Bytes carried and time busy (weighted by the share of the open capacity), up to now."""
        return self.meter.settle(now_ps, None if self.bundles else self.entered_bytes)


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
        self.bundles: dict[float, Bundle] = {}  # by cap: those with flows


class Bundle(Pool):
    """The flows with the same path and the same cap."""

    __slots__ = ("_env", "_touched", "component", "path")

    def __init__(
        self, env: Environment, path: Path, cap: float, touched: Callable[[Component], None]
    ) -> None:
        """`touched` is called when the rates of the bundle's component have to be found again."""
        super().__init__(cap)
        self._env = env
        self._touched = touched
        self.path = path
        self.component: Component  # set by the one that takes it in

    def settle(self) -> int:
        now = self._env._now
        self.component.settle(now)
        return now

    def changed(self) -> None:
        self._touched(self.component)

    def corrected(self, entered: int, moved: float) -> None:
        for link, _ in self.path.hops:
            link.entered_bytes += entered
            link.meter.moved += moved

    def alone_rate(self, weight: float) -> float:
        return min(self.cap * weight, self.path.alone)
