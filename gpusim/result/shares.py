"""Fractions of a whole, made ready for people: rounded so that they still sum to 100, the small ones
gathered.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.kinds import LABELS, Kind

REST = "other"


def percentages(fractions: Mapping[str, float], digits: int = 1) -> dict[str, float]:
    """Percentages with `digits` decimals whose sum is that of the fractions, rounded (largest remainder).

    Rounding each on its own would print breakdowns that sum to 99.9 or 100.1.
    """
    scale = 100 * 10**digits
    exact = {name: fraction * scale for name, fraction in fractions.items()}
    whole = {name: int(value) for name, value in exact.items()}
    missing = round(sum(exact.values())) - sum(whole.values())
    by_remainder = sorted(exact, key=lambda name: (whole[name] - exact[name], name))
    for name in by_remainder[: max(missing, 0)]:
        whole[name] += 1
    return {name: value / 10**digits for name, value in whole.items()}


def largest(fractions: Mapping[str, float], count: int, least: float = 0.0) -> dict[str, float]:
    """The `count` largest fractions of at least `least`, largest first; what is left is gathered under
    `other`.
    """
    ordered = sorted(
        ((name, part) for name, part in fractions.items() if part > 0), key=lambda item: -item[1]
    )
    kept = [(name, part) for name, part in ordered[:count] if part >= least]
    rest = ordered[len(kept) :]
    if len(rest) == 1:  # one small part has a name of its own
        kept, rest = [*kept, rest[0]], []
    result = dict(kept)
    if rest:
        result[REST] = sum(part for _, part in rest)
    return result


def label(kind_name: str) -> str:
    """The words for a kind as it is written in summary.json: `recent_skip` -> `2 ms skip`."""
    try:
        return LABELS[Kind[kind_name.upper()]]
    except KeyError:
        return kind_name.replace("_", " ")
