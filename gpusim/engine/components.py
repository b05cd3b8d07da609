"""Sets of flows whose rates depend on each other: found, merged and parted as flows come and go.

Flows come and go, but mostly in ways seen before: what was found for a set of bundles and their weights is kept. A
bundle whose last flow has ended stays where it is for a while, with weight 0, so that the next flow on its way finds
everything in place; what its links carry is summed up by the time that each solution was in force, not change by
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop
from math import ceil, inf

from gpusim.engine.fairness import Shape, fair_rates, use_of
from gpusim.engine.fluid import REBASE_BYTES
from gpusim.engine.links import Bundle, DirectedLink, Path
from gpusim.engine.timeline import TURN_BITS
from gpusim.engine.work import EPSILON_PS, Call

_MOST_SOLUTIONS = 4096  # of one signature
_MOST_SIGNATURES = 256
#: which bundles there are: their paths and caps, in order
Signature = tuple[tuple[Path, float], ...]
#: bundles by index, and their shape, which a lone bundle does not need
Group = tuple[list[int], list[DirectedLink], Shape | None]


class Solution:
    """Rates of a component's bundles, and what links carry (bytes per ps) and use of what is open to them.

    `dwell_ps` is how long it was in force since links were told.
    """

    __slots__ = ("active", "capped", "dwell_ps", "loads", "rates", "shares")

    def __init__(
        self,
        rates: Sequence[float],
        capped: Sequence[bool],
        loads: Sequence[tuple[DirectedLink, float, float]],
        active: int,
    ) -> None:
        self.rates = rates
        self.capped = capped
        self.loads = loads
        self.shares = {link: share for link, _, share in loads}
        self.active = active  # bundles with flows
        self.dwell_ps = 0


class Known:
    """What was found for one set of bundles: solutions by their weights, groups by which of them have flows."""

    __slots__ = ("capped", "groups", "solutions")

    def __init__(self) -> None:
        self.capped: dict[tuple[bool, ...], tuple[bool, ...]] = {}  # one object for all that are equal
        self.solutions: dict[tuple[float, ...], Solution] = {}
        self.groups: dict[tuple[bool, ...], list[Group]] = {}


class Memory:
    """What a network remembers of the sets of bundles that it had."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Signature, Known] = {}

    def of(self, bundles: Sequence[Bundle]) -> Known:
        """What is known of these bundles in this order."""
        signature = tuple([(bundle.path, bundle.cap) for bundle in bundles])
        found = self._known.get(signature)
        if found is None:
            if len(self._known) >= _MOST_SIGNATURES:
                self._known.clear()
            found = self._known[signature] = Known()
        return found


_NOTHING = Solution((), (), (), 0)


class Component:
    """Bundles that are connected by the links that they use: their rates are found together."""

    __slots__ = (
        "_dwelt",
        "_known",
        "_memory",
        "_solution",
        "_turn_ps",
        "bundles",
        "counted",
        "links",
        "next_ps",
        "settled_ps",
    )

    def __init__(self, now_ps: int, memory: Memory) -> None:
        self.bundles: list[Bundle] = []
        self.links: list[DirectedLink] = []
        self.settled_ps = now_ps
        self.next_ps: int | None = None  # when the next of its flows ends
        self.counted = 0  # bundles with flows, as of the last rates
        self._memory = memory
        self._known: Known | None = None  # of the bundles that it has
        self._solution = _NOTHING  # the one in force
        self._dwelt: list[Solution] = []  # those whose time the links were not told
        self._turn_ps = 0  # when they are to be told

    def settle(self, now_ps: int) -> None:
        """Bring all sums from the last change of rates up to now."""
        last = self.settled_ps
        if now_ps == last:
            return
        stretch = now_ps - last
        for bundle in self.bundles:
            bundle.v += bundle.rate * stretch
        self._passed(now_ps, stretch)

    def take(self, finished: list[Call], now_ps: int) -> None:
        """Settle, and move all flows that have ended to `finished`."""
        stretch = now_ps - self.settled_ps
        if stretch:
            self._passed(now_ps, stretch)
        for bundle in self.bundles:
            rate = bundle.rate
            v = bundle.v + rate * stretch
            bundle.v = v
            ends = bundle.ends
            if ends and ends[0] <= v + rate * EPSILON_PS:
                beyond = bundle.take(finished, now_ps)
                if beyond:
                    bundle.corrected(0, -beyond)

    def _passed(self, now_ps: int, stretch: int) -> None:
        """The solution was in force for a stretch of time."""
        solution = self._solution
        if now_ps < self._turn_ps:
            if not solution.dwell_ps:
                self._dwelt.append(solution)
            solution.dwell_ps += stretch
            self.settled_ps = now_ps
            return
        self.credit()  # what came before this stretch belongs to the bins before
        self.settled_ps = now_ps
        solution.dwell_ps = stretch
        self._dwelt.append(solution)
        self.credit()
        self._turn_ps = now_ps + (now_ps >> TURN_BITS) + 1000
        for bundle in self.bundles:
            if bundle.v > REBASE_BYTES:
                bundle.rebase()

    def credit(self) -> None:
        """Tell the links what they have carried up to the last settling."""
        for solution in self._dwelt:
            dwell = solution.dwell_ps
            solution.dwell_ps = 0
            for link, carried, share in solution.loads:
                link.meter.took(carried * dwell, share * dwell)
        self._dwelt.clear()
        for bundle in self.bundles:
            bundle.report()
        now = self.settled_ps
        for link in self.links:
            link.meter.credit(now)

    def share_of(self, link: DirectedLink) -> float:
        """How much of what is open to a link is in use: 1 is all."""
        return self._solution.shares.get(link, 0.0)

    def join(self, bundle: Bundle) -> None:
        """Take in a bundle; its links must not belong to another component."""
        self._reshaped()
        self.bundles.append(bundle)
        bundle.component = self
        for link, cost in bundle.path.hops:
            link.bundles[bundle] = cost
            if link.component is None:
                link.component = self
                self.links.append(link)

    def absorb(self, other: Component) -> None:
        """Take in all of another component that was settled at the same time."""
        self._reshaped()
        other._reshaped()
        for bundle in other.bundles:
            bundle.component = self
        for link in other.links:
            link.component = self
        self.bundles += other.bundles
        self.links += other.links
        self.counted += other.counted
        other.counted = 0
        other.bundles = []
        other.links = []
        other.next_ps = None

    def part(self, *, idle: bool) -> list[Component] | None:
        """Let go of the bundles without flows, with `idle` of those only that had none since the last time.

        Returns the components that are left, of which this may be one, for their rates to be found; None where all
        stays as it is.
        """
        gone = [bundle for bundle in self.bundles if not (bundle.weight or (idle and bundle.used))]
        for bundle in self.bundles:
            bundle.used = False
        if not gone:
            return None
        self._reshaped()
        for bundle in gone:
            del bundle.path.bundles[bundle.cap]
            bundle.component = None
            for link, _ in bundle.path.hops:
                del link.bundles[bundle]
        kept = [bundle for bundle in self.bundles if bundle.component is not None]
        for link in self.links:
            link.component = None
        self.bundles = []
        self.links = []
        self.counted = 0
        self.next_ps = None
        parts: list[Component] = []
        for bundle in kept:
            if bundle.path.hops[0][0].component is None:
                part = self if not parts else Component(self.settled_ps, self._memory)
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
        known = self._known
        if known is None:
            known = self._known = self._memory.of(bundles)
        weights = tuple([bundle.weight for bundle in bundles])
        found = known.solutions.get(weights)
        if found is None:
            if len(known.solutions) >= _MOST_SOLUTIONS:
                known.solutions.clear()
            found = known.solutions[weights] = self._solve(known, weights)
        now_in_force = self._solution
        if found is not now_in_force:
            self._solution = found
            self.counted = found.active
            if found.capped is not now_in_force.capped:
                for bundle, capped in zip(bundles, found.capped, strict=True):
                    bundle.set_capped(capped, now)
        soonest = inf
        for bundle, rate in zip(bundles, found.rates, strict=True):
            bundle.rate = rate
            calls = bundle.calls
            if calls:
                ends = bundle.ends
                while ends[0] not in calls:
                    heappop(ends)
                wait = (ends[0] - bundle.v) / rate
                if wait < soonest:  # noqa: PLR1730 - min() would cost twice as much
                    soonest = wait
        if soonest == inf:
            self.next_ps = None
        else:
            soonest -= EPSILON_PS
            self.next_ps = now + (ceil(soonest) if soonest > 1.0 else 1)

    def _solve(self, known: Known, weights: tuple[float, ...]) -> Solution:
        bundles = self.bundles
        mask = tuple([weight > 0 for weight in weights])
        groups = known.groups.get(mask)
        if groups is None:
            groups = known.groups[mask] = self._groups(mask)
        rates = [0.0] * len(weights)
        capped = [False] * len(weights)
        loads: list[tuple[DirectedLink, float, float]] = []
        active = 0
        for members, links, shape in groups:
            active += len(members)
            if shape is None:
                self._alone(members[0], weights, rates, loads)
            else:
                _together(members, links, shape, weights, rates, loads)
            for index in members:
                capped[index] = rates[index] >= bundles[index].cap
        same = tuple(capped)
        return Solution(rates, known.capped.setdefault(same, same), loads, active)

    def _alone(
        self,
        index: int,
        weights: Sequence[float],
        rates: list[float],
        loads: list[tuple[DirectedLink, float, float]],
    ) -> None:
        """Processor sharing in closed form."""
        bundle = self.bundles[index]
        weight = weights[index]
        carried = bundle.path.alone
        rates[index] = carried / weight
        if bundle.cap <= rates[index]:
            rates[index] = bundle.cap
            carried = bundle.cap * weight
        loads += [(link, carried, carried * cost / link.capacity) for link, cost in bundle.path.hops]

    def _groups(self, mask: Sequence[bool]) -> list[Group]:
        """The bundles that `mask` names, by whether links connect them."""
        place = {bundle: index for index, bundle in enumerate(self.bundles) if mask[index]}
        number = {link: index for index, link in enumerate(self.links)}
        seen: set[Bundle] = set()
        groups: list[Group] = []
        for first in place:
            if first in seen:
                continue
            seen.add(first)
            front = [first]
            for bundle in front:  # which grows
                for link, _ in bundle.path.hops:
                    for near in (link, link.coupled()):
                        for other in () if near is None else near.bundles:
                            if other in place and other not in seen:
                                seen.add(other)
                                front.append(other)
            members = sorted(place[bundle] for bundle in front)
            if len(members) == 1:
                groups.append((members, [], None))
                continue
            held = {link for bundle in front for link, _ in bundle.path.hops}
            links = sorted(held, key=number.__getitem__)
            groups.append((members, links, self._shape(members, links)))
        return groups

    def _shape(self, members: Sequence[int], links: Sequence[DirectedLink]) -> Shape:
        bundles = [self.bundles[index] for index in members]
        number = {link: index for index, link in enumerate(links)}
        place = {bundle: index for index, bundle in enumerate(bundles)}
        pairs = []
        for link, index in number.items():
            reverse = link.coupled()
            if reverse is not None and number.get(reverse, -1) > index:
                pairs.append((index, number[reverse], link.coupling, reverse.coupling))
        return Shape(
            uses=[[(number[link], cost) for link, cost in bundle.path.hops] for bundle in bundles],
            members=[
                [(place[bundle], cost) for bundle, cost in link.bundles.items() if bundle in place]
                for link in links
            ],
            capacities=[link.capacity for link in links],
            caps=[bundle.cap for bundle in bundles],
            pairs=pairs,
        )

    def _reshaped(self) -> None:
        """Bundles or links come or go: what was is summed up, and all is to be found anew."""
        self.credit()
        self._known = None
        self._solution = _NOTHING
        self._turn_ps = 0


def _together(
    members: Sequence[int],
    links: Sequence[DirectedLink],
    shape: Shape,
    weights: Sequence[float],
    rates: list[float],
    loads: list[tuple[DirectedLink, float, float]],
) -> None:
    """Max-min fair rates of connected bundles, and what their links carry."""
    own = [weights[index] for index in members]
    fair = fair_rates(shape, own)
    for index, rate in zip(members, fair, strict=True):
        rates[index] = rate
    uses = [use_of(shape, own, fair, link) for link in range(len(links))]
    open_to = list(shape.capacities)
    for one, other, mine, theirs in shape.pairs:
        open_to[one] -= mine * uses[other]
        open_to[other] -= theirs * uses[one]
    for index, users in enumerate(shape.members):
        carried = 0.0  # not `sum`: from Python 3.12 on it rounds differently
        for bundle, _ in users:
            carried += own[bundle] * fair[bundle]
        loads.append((links[index], carried, min(1.0, uses[index] / open_to[index])))
