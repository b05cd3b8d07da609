"""Which numbers of a machine are drawn, and from what.

Those graded `fitted` or `assumed` that have a range and are not overridden by the scenario. Half of the draws lie below
the profile's value, half above; on each side they are uniform, or uniform in the logarithm where that side spans a
factor of ten or more. Each number has its own stream of random numbers, stratified over the draws (Latin hypercube):
another number that is added or taken away changes no draw of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusim.machine.hardware import random_stream
from gpusim.rundata import Parameter
from gpusim.scenario import profiles
from gpusim.study.amounts import WRITERS, written

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_UNCERTAIN = ("fitted", "assumed")
_WIDE = 10.0  # a side that spans this factor is drawn by magnitude


@dataclass(frozen=True, slots=True)
class Uncertain:
    """A number that is drawn: its value and range in base units."""

    parameter: Parameter
    kind: str
    value: float
    low: float
    high: float

    @property
    def path(self) -> str:
        return self.parameter.path

    @property
    def whole(self) -> bool:
        """Only whole numbers are legal."""
        bounds = self.parameter.range or ()
        return all(isinstance(number, int) for number in (self.parameter.value, *bounds))

    @property
    def powers(self) -> bool:
        """Value and range are powers of two: so are sizes of tables and granules, and all that lies between."""
        return (
            self.whole
            and self.low >= 1
            and all(math.log2(number).is_integer() for number in (self.low, self.value, self.high))
        )

    def at(self, part: float) -> float:
        """The number at a quantile of its distribution."""
        below, above = self.value > self.low, self.high > self.value
        if below and (part < 0.5 or not above):
            share = part * 2 if above else part
            number = _between(self.low, self.value, share)
        else:
            share = part * 2 - 1 if below else part
            number = _between(self.value, self.high, share)
        number = min(max(number, self.low), self.high)
        if self.powers:
            return float(2 ** round(math.log2(number)))
        return float(round(number)) if self.whole else number

    def write(self, number: float) -> Any:
        """As `overrides` of a scenario have it."""
        return written(number, self.kind, whole=self.whole)


@dataclass(frozen=True, slots=True)
class Uncertainties:
    """`drawn` are drawn; `held` stay at their value: path -> why."""

    drawn: tuple[Uncertain, ...]
    held: Mapping[str, str]

    @classmethod
    def of(cls, parameters: Mapping[str, Parameter]) -> Uncertainties:
        """Sort the numbers of a machine."""
        drawn: list[Uncertain] = []
        held: dict[str, str] = {}
        for path, parameter in parameters.items():
            if parameter.grade not in _UNCERTAIN:
                continue
            kind = _kind(parameter)
            if kind is None:
                held[path] = f"{parameter.grade}, a choice that has no range"
            elif parameter.range is None:
                held[path] = f"{parameter.grade}, without a range"
            elif parameter.range[0] == parameter.range[1]:
                held[path] = f"{parameter.grade}, and its range is a single value"
            else:
                low, high = (float(bound) for bound in parameter.range)
                drawn.append(Uncertain(parameter, kind, float(parameter.value), low, high))
        return cls(tuple(drawn), held)

    def sample(self, seed: int, count: int) -> NDArray[np.float64]:
        """Quantiles: one row per draw, one column per drawn number."""
        import numpy as np

        columns = []
        for one in self.drawn:
            stream = random_stream(seed, f"uncertainty of {one.path}")
            columns.append((stream.permutation(count) + stream.random(count)) / count)
        return np.array(columns, dtype=np.float64).T.reshape(count, len(self.drawn))


def _kind(parameter: Parameter) -> str | None:
    """What sort of amount it is; None for words and truth values. Bare numbers have no unit in their text."""
    if isinstance(parameter.value, bool | str):
        return None
    amount = profiles.amount(parameter.text)
    kind = "number" if amount is None else amount[1]
    return kind if kind in WRITERS else None


def _between(low: float, high: float, share: float) -> float:
    if low > 0 and high / low >= _WIDE:
        return low * math.exp(share * math.log(high / low))
    return low + (high - low) * share
