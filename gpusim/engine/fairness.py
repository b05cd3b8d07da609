"""Max-min fair rates of flows over links whose two directions take capacity from each other; pure arithmetic.

A bundle is a set of flows with the same path and the same cap. All of its flows run at one rate per unit of
weight, so only the bundles' weights enter here, not the number of flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

_ROUNDS = 200
_AVERAGE_FROM = 50  # a topology in which the plain iteration swings is averaged from here on
_TOLERANCE = 1e-13


@dataclass(frozen=True, slots=True)
class Shape:
    """Who uses what: bundles and links by index.

    `uses[b]` are the (link, cost) of bundle b: it takes `cost` of the link's capacity per byte that it moves.
    `members[l]` is the same seen from link l. `pairs` are (l, r, coupling of l, coupling of r): the
    directions of a link that both carry flows; to l is left its capacity less `coupling of l` times what is
    used of r. Capacities in bytes per ps, `caps[b]` in bytes per ps and unit of weight.
    """

    uses: Sequence[Sequence[tuple[int, float]]]
    members: Sequence[Sequence[tuple[int, float]]]
    capacities: Sequence[float]
    caps: Sequence[float]
    pairs: Sequence[tuple[int, int, float, float]] = ()


def fair_rates(shape: Shape, weights: Sequence[float]) -> list[float]:
    """Bytes per ps and unit of weight of each bundle.

    Without pairs this is progressive filling. With them it is the fixed point at which the rates are max-min
    fair for the capacities that their own use leaves to the other directions: a flow is held back by its own
    direction only, not because the other one is full. The search starts where both directions of each pair
    are full.
    """
    if not shape.pairs:
        return fill(shape, weights, shape.capacities)
    room = list(shape.capacities)
    for link, reverse, mine, theirs in shape.pairs:
        ahead = shape.capacities[link]
        back = shape.capacities[reverse]
        both = 1.0 - mine * theirs
        room[link] = ahead - mine * (back - theirs * ahead) / both
        room[reverse] = back - theirs * (ahead - mine * back) / both
    for attempt in range(_ROUNDS):
        rates = fill(shape, weights, room)
        moved = 0.0
        for link, reverse, mine, theirs in shape.pairs:
            for one, other, coupling in ((link, reverse, mine), (reverse, link, theirs)):
                left = shape.capacities[one] - coupling * use_of(shape, weights, rates, other)
                if attempt >= _AVERAGE_FROM:
                    left = 0.5 * (left + room[one])
                moved = max(moved, abs(left - room[one]) / shape.capacities[one])
                room[one] = left
        if moved <= _TOLERANCE:
            return rates
    return _within(shape, weights, rates)


def use_of(shape: Shape, weights: Sequence[float], rates: Sequence[float], link: int) -> float:
    """What the bundles take of a link's capacity."""
    use = 0.0
    for bundle, cost in shape.members[link]:
        use += cost * weights[bundle] * rates[bundle]
    return use


def fill(shape: Shape, weights: Sequence[float], room: Sequence[float]) -> list[float]:
    """Progressive filling: all rates rise together until a cap or a full link holds some back."""
    caps = shape.caps
    uses = shape.uses
    members = shape.members
    rates = [-1.0] * len(caps)  # negative: still rising
    left = list(room)
    load = [0.0] * len(room)
    for link, users in enumerate(members):
        for bundle, cost in users:
            load[link] += cost * weights[bundle]
    by_cap = sorted(
        [bundle for bundle, cap in enumerate(caps) if cap < inf], key=caps.__getitem__, reverse=True
    )
    rising = len(caps)
    level = 0.0
    while rising:
        soonest = inf
        full = -1
        for link, demand in enumerate(load):
            if demand and left[link] < soonest * demand:
                soonest = left[link] / demand
                full = link
        while by_cap and rates[by_cap[-1]] >= 0.0:
            by_cap.pop()
        if by_cap and caps[by_cap[-1]] <= soonest:
            held = [by_cap.pop()]
            level = caps[held[0]]
        else:
            held = [bundle for bundle, _ in members[full] if rates[bundle] < 0.0]
            level = max(level, soonest)  # it never falls, but for rounding
        for bundle in held:
            rates[bundle] = level
        rising -= len(held)
        touched = dict.fromkeys([link for bundle in held for link, _ in uses[bundle]])
        for link in touched:
            use = demand = 0.0
            for bundle, cost in members[link]:  # summed anew: differences would be noise after a heavy bundle
                rate = rates[bundle]
                if rate < 0.0:
                    demand += cost * weights[bundle]
                else:
                    use += cost * weights[bundle] * rate
            load[link] = demand
            left[link] = room[link] - use
    return rates


def _within(shape: Shape, weights: Sequence[float], rates: list[float]) -> list[float]:
    """Scale everybody down if the search did not end, so that no link carries more than it can."""
    worst = 1.0
    taken = [use_of(shape, weights, rates, link) for link in range(len(shape.capacities))]
    for link, reverse, mine, theirs in shape.pairs:
        worst = max(worst, (taken[link] + mine * taken[reverse]) / shape.capacities[link])
        worst = max(worst, (taken[reverse] + theirs * taken[link]) / shape.capacities[reverse])
    return [rate / worst for rate in rates]
