"""Sets of flows whose rates depend on each other: found, merged and parted as flows come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpusim.engine.fairness import Shape, fair_rates, use_of
from gpusim.engine.fluid import REBASE_BYTES
from gpusim.engine.links import Bundle, DirectedLink, Path

_SOLUTIONS = 4096  # remembered by a network

#: which bundles there are: their paths and caps, in order
Signature = tuple[tuple[Path, float], ...]


@dataclass(frozen=True, slots=True)
class Solution:
    """Rates of a component's bundles, and what its links carry and give of what is open to them."""

    rates: Sequence[float]
    links: Sequence[DirectedLink]
    carried: Sequence[float]
    shares: Sequence[float]


#: what was found for bundles and their weights; flows come and go, but mostly in ways seen before
Solutions = dict[tuple[Signature, tuple[float, ...]], Solution]


class Component:
    """Bundles that are connected by the links that they use: their rates are found together."""

    __slots__ = (
        "_shape",
        "_signature",
        "_solution",
        "_solutions",
        "bundles",
        "links",
        "next_ps",
        "settled_ps",
    )

    def __init__(self, now_ps: int, solutions: Solutions) -> None:
        self.bundles: list[Bundle] = []
        self.links: list[DirectedLink] = []
        self.settled_ps = now_ps
        self.next_ps: int | None = None  # when the next of its flows ends
        self._solutions = solutions  # of all shapes, by signature and weights
        self._shape: Shape | None = None
        self._signature: Signature | None = None
        self._solution: Solution | None = None  # the one in force

    def settle(self, now_ps: int) -> None:
        """Bring all sums from the last change of rates up to now."""
        last = self.settled_ps
        if now_ps == last:
            return
        self.settled_ps = now_ps
        for bundle in self.bundles:
            bundle.v += bundle.rate * (now_ps - last)

    def join(self, bundle: Bundle) -> None:
        """Take in a bundle; its links must not belong to another component."""
        self.bundles.append(bundle)
        self._reshaped()
        bundle.component = self
        for link, cost in bundle.path.hops:
            link.bundles[bundle] = cost
            if link.component is None:
                link.component = self
                self.links.append(link)

    def absorb(self, other: Component) -> None:
        """Take in all of another component that was settled at the same time."""
        for bundle in other.bundles:
            bundle.component = self
        for link in other.links:
            link.component = self
        self.bundles += other.bundles
        self.links += other.links
        self._reshaped()
        other.bundles = []
        other.links = []
        other.next_ps = None

    def part(self) -> list[Component]:
        """Let go of the bundles without flows: the components that are left, of which this may be one."""
        kept = []
        for bundle in self.bundles:
            if bundle.weight:
                kept.append(bundle)
                continue
            del bundle.path.bundles[bundle.cap]
            for link, _ in bundle.path.hops:
                del link.bundles[bundle]
                if not link.bundles:
                    link.meter.set(self.settled_ps, 0.0, 0.0)
        for link in self.links:
            link.component = None
        self.bundles = []
        self.links = []
        self.next_ps = None
        self._reshaped()
        parts: list[Component] = []
        for bundle in kept:
            if bundle.path.hops[0][0].component is None:
                part = self if not parts else Component(self.settled_ps, self._solutions)
                part._spread(bundle)
                parts.append(part)
        return parts

    def _spread(self, first: Bundle) -> None:
        """Take in a bundle and all that it is connected to; the links belong to nobody."""
        reached = {first: None}
        front = [first]
        for bundle in front:  # which grows
            bundle.component = self
            for link, _ in bundle.path.hops:
                for near in (link, link.coupled()):
                    if near is None or near.component is not None or not near.bundles:
                        continue
                    near.component = self
                    self.links.append(near)
                    for other in near.bundles:
                        if other not in reached:
                            reached[other] = None
                            front.append(other)
        self.bundles = front

    def share(self) -> None:
        """Set the rates of all bundles and what the links carry, and find the next end."""
        now = self.settled_ps
        bundles = self.bundles
        if len(bundles) == 1:  # processor sharing in closed form
            bundle = bundles[0]
            weight = bundle.weight
            path = bundle.path
            cap = bundle.cap
            carried = path.alone
            bundle.rate = carried / weight
            capped = cap <= bundle.rate
            if capped:
                bundle.rate = cap
                carried = cap * weight
            bundle.set_capped(capped, now)
            for link, cost in path.hops:
                link.meter.set(now, carried, carried * cost / link.capacity)
        elif bundles:
            self._share_among_many()
        soonest = None
        for bundle in bundles:
            if bundle.v > REBASE_BYTES:
                bundle.rebase()
            end = bundle.end_ps(now)
            if soonest is None or (end is not None and end < soonest):
                soonest = end
        self.next_ps = soonest

    def _share_among_many(self) -> None:
        bundles = self.bundles
        weights = tuple([bundle.weight for bundle in bundles])
        if self._signature is None:
            self._signature = tuple([(bundle.path, bundle.cap) for bundle in bundles])
        key = (self._signature, weights)
        found = self._solutions.get(key)
        if found is None:
            if len(self._solutions) >= _SOLUTIONS:
                self._solutions.clear()
            found = self._solutions[key] = self._solve(weights)
        elif found is self._solution:
            return  # most often: one flow ended and the next one took its place
        self._solution = found
        for bundle, rate in zip(bundles, found.rates, strict=True):
            bundle.rate = rate
            bundle.set_capped(rate >= bundle.cap, self.settled_ps)
        for link, rate, share in zip(found.links, found.carried, found.shares, strict=True):
            link.meter.set(self.settled_ps, rate, share)

    def _solve(self, weights: Sequence[float]) -> Solution:
        if self._shape is None:
            self._shape = self._make_shape()
        shape = self._shape
        rates = fair_rates(shape, weights)
        uses = [use_of(shape, weights, rates, index) for index in range(len(self.links))]
        open_to = list(shape.capacities)
        for one, other, mine, theirs in shape.pairs:
            open_to[one] -= mine * uses[other]
            open_to[other] -= theirs * uses[one]
        carried = []
        for users in shape.members:
            rate = 0.0  # not `sum`: from Python 3.12 on it rounds differently
            for bundle, _ in users:
                rate += weights[bundle] * rates[bundle]
            carried.append(rate)
        shares = [min(1.0, use / free) for use, free in zip(uses, open_to, strict=True)]
        return Solution(rates, tuple(self.links), carried, shares)

    def _reshaped(self) -> None:
        """Bundles or links came or went."""
        self._shape = None
        self._signature = None
        self._solution = None

    def _make_shape(self) -> Shape:
        number = {link: index for index, link in enumerate(self.links)}
        place = {bundle: index for index, bundle in enumerate(self.bundles)}
        pairs = []
        for link, index in number.items():
            reverse = link.coupled()
            if reverse is not None and number.get(reverse, -1) > index:
                pairs.append((index, number[reverse], link.coupling, reverse.coupling))
        return Shape(
            uses=[[(number[link], cost) for link, cost in bundle.path.hops] for bundle in self.bundles],
            members=[[(place[bundle], cost) for bundle, cost in link.bundles.items()] for link in self.links],
            capacities=[link.capacity for link in self.links],
            caps=[bundle.cap for bundle in self.bundles],
            pairs=pairs,
        )
