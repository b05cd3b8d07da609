"""Numbers in base units as a scenario writes them, by the kind that `profiles.amount` gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpusim import quantity

WRITERS: Mapping[str, Callable[[float], Any]] = {
    "size": lambda size: quantity.write_size(round(size)),
    "time": lambda time: quantity.write_duration(round(time)),
    "rate": quantity.write_rate,
    "frequency": quantity.write_frequency,
    "number": float,
}


def written(number: float, kind: str, *, whole: bool = False) -> Any:
    """`4194304`, size -> `4MiB`; a plain number stays one, an integer where it has to be `whole`."""
    if kind == "number" and whole:
        return round(number)
    return WRITERS[kind](number)
