"""Any step: what a link, a drive or a memory carried while it ran, over what that can carry."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpusim.machine.by_hand.case import Candidate, Case, quotient
from gpusim.quantity import format_rate, format_size
from gpusim.rundata import ResourceUse

_LEAST = 0.7  # of its ceiling: what carried less did not set the pace


def of_the_fullest(case: Case) -> Iterator[Candidate]:
    """The fullest sort of resource first; several of one sort that were as full count together."""
    sorts: dict[str, list[tuple[ResourceUse, int]]] = {}
    for use in case.data.uses:
        if use.capacity_bytes_per_s and use.bytes:
            moved = carried(use, case.step.start_ps, case.step.end_ps)
            if moved * 1e12 / use.capacity_bytes_per_s >= _LEAST * case.length_ps:
                sorts.setdefault(re.sub(r"\d+", "#", use.name), []).append((use, moved))
    found = []
    for uses in sorts.values():
        moved = sum(size for _, size in uses)
        rate = sum(use.capacity_bytes_per_s or 0.0 for use, _ in uses)
        name = uses[0][0].name if len(uses) == 1 else f"{uses[0][0].name} and {len(uses) - 1} more"
        own = moved if abs(moved - case.step.bytes) > 0.01 * moved else case.step.bytes
        by_all = "" if own == case.step.bytes else " that all moved"
        text = f"{format_size(own)}{by_all} / {format_rate(rate)} of {name}"
        found.append((text, quotient(own, rate)))
    yield from sorted(found, key=case.off)


def carried(use: ResourceUse, start_ps: int, end_ps: int) -> int:
    """Bytes between two times, from the bins of a resource: those cut by an end count in part."""
    total = 0.0
    first = start_ps // use.bin_ps
    for number in range(first, min(len(use.bytes_per_bin), end_ps // use.bin_ps + 1)):
        low, high = number * use.bin_ps, (number + 1) * use.bin_ps
        inside = (min(high, end_ps) - max(low, start_ps)) / use.bin_ps
        total += use.bytes_per_bin[number] * inside
    return round(total)
