"""Where the best changes: values of one number of the scenario at which other settings take over.

The settings that are compared are the best, the scenario's own, and all that differ from the best in one knob. They are
run at values from `low` to `high`; between two neighbours with different winners the range is halved until it is
within 1 % (or between two whole numbers, or two pages).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

from gpusim.errors import InputError, Problem
from gpusim.scenario import profiles
from gpusim.spec import PAGE_BYTES
from gpusim.study.amounts import WRITERS, written
from gpusim.study.recommend.discover import check_root
from gpusim.study.recommend.space import Choice, Space
from gpusim.study.recommend.trials import Task, Trials, mean

_POINTS = 5  # values at which all are compared
_WITHIN = 1.01
_MOST_HALVINGS = 40
MOST_COMPARED = 12


@dataclass(frozen=True, slots=True)
class Crossing:
    """Up to `low` the settings `below` win, from `high` on `above`; both as they are written."""

    low: str
    high: str
    at: float  # between the two, in base units
    below: str
    above: str


@dataclass(frozen=True, slots=True)
class Crossover:
    """`points` are (value as written, the settings that are best there, their metric)."""

    path: str
    points: tuple[tuple[str, str, float | None], ...]
    crossings: tuple[Crossing, ...]
    runs: int


@dataclass(frozen=True, slots=True)
class _Axis:
    """The numbers of one path: in base units, and as the scenario writes them."""

    path: str
    kind: str
    unit: float  # the distance of two values that can be told apart; 0 where there is none

    def write(self, number: float) -> Any:
        return written(number, self.kind, whole=self.unit == 1.0)

    def settled(self, number: float) -> float:
        """The nearest value that can be written."""
        return round(number / self.unit) * self.unit if self.unit else number

    def between(self, low: float, high: float, part: float = 0.5) -> float:
        """Geometrically, so that sizes of all magnitudes get their share."""
        if low <= 0:
            return self.settled(low + (high - low) * part)
        return self.settled(low * (high / low) ** part)

    def close(self, low: float, high: float) -> bool:
        """Is there nothing of interest between?"""
        if high - low <= self.unit or self.between(low, high) in (low, high):
            return True
        return low > 0 and high / low <= _WITHIN


def crossover(trials: Trials, path: str, bounds: Sequence[Any], contenders: Sequence[Choice]) -> Crossover:
    """The best of `contenders` along a path. Raises InputError for bounds that are no range of one kind."""
    check_root(path)
    axis, low, high = _axis(path, bounds)
    race = _Race(trials, axis, list(contenders))
    numbers = [axis.between(low, high, part / (_POINTS - 1)) for part in range(1, _POINTS - 1)]
    numbers = list(dict.fromkeys([low, *numbers, high]))
    race.run([(number, choice) for number in numbers for choice in race.contenders])
    winners = [race.winner(number) for number in numbers]
    crossings = [
        race.crossing(first, second, before, after)
        for (first, second), (before, after) in zip(pairwise(numbers), pairwise(winners), strict=True)
        if before != after and before is not None and after is not None
    ]
    words = race.words
    points = tuple(
        (str(axis.write(number)), words(winner), race.value(number, winner))
        for number, winner in zip(numbers, winners, strict=True)
    )
    return Crossover(path, points, tuple(crossings), race.runs)


def _axis(path: str, bounds: Sequence[Any]) -> tuple[_Axis, float, float]:
    read = [number for bound in bounds if (number := profiles.amount(bound)) is not None]
    kinds = {kind for _, kind in read}
    if len(bounds) != 2 or len(read) != 2 or len(kinds) != 1:
        raise _wrong(path, bounds, "a crossover needs two amounts of one kind")
    (low, kind), (high, _) = read
    if kind not in WRITERS or not 0 <= low < high:
        raise _wrong(path, bounds, "a crossover needs a range from a lower to a higher value")
    whole = all(isinstance(bound, int) for bound in bounds)
    unit = 1.0 if whole else 0.0
    if kind == "size":
        unit = float(PAGE_BYTES) if low % PAGE_BYTES == high % PAGE_BYTES == 0 else 1.0
    return _Axis(path, kind, unit), low, high


def _wrong(path: str, bounds: Sequence[Any], why: str) -> InputError:
    legal = f"{path}=LOW,HIGH, e.g. 8MiB,4GiB or 1,100"
    return InputError([Problem(why, path=path, read=",".join(map(str, bounds)), legal=legal)])


class _Race:
    """Runs of contenders at values of the axis."""

    def __init__(self, trials: Trials, axis: _Axis, contenders: list[Choice]) -> None:
        self._trials = trials
        self._axis = axis
        self.contenders = contenders
        self._values: dict[tuple[float, Choice], float | None] = {}

    @property
    def runs(self) -> int:
        return len(self._values)

    def run(self, wanted: Sequence[tuple[float, Choice]]) -> None:
        """Run what has not been run yet."""
        trials, axis = self._trials, self._axis
        numbers = dict.fromkeys(number for number, _ in wanted)
        trees = {
            number: trials.scenario.with_(**{axis.path: axis.write(number)}, sweep=None, expect=[]).raw
            for number in numbers
        }
        fresh = [pair for pair in dict.fromkeys(wanted) if pair not in self._values]
        serial = count()
        tasks = [
            Task(
                next(serial),
                f"{axis.path}={axis.write(number)}, {self.words(choice)}",
                {axis.path: axis.write(number)} | trials.space.changes(choice, trees[number]),
                trials.scenario.seed,
                trials.metric,
            )
            for number, choice in fresh
        ]
        found = {task.number: reading.value for task, reading in trials.pool.each(tasks)}
        for index, pair in enumerate(fresh):
            self._values[pair] = found[index]

    def value(self, number: float, choice: Choice | None) -> float | None:
        return None if choice is None else self._values[number, choice]

    def winner(self, number: float) -> Choice | None:
        """The best at a value; of equals the first contender; None where none completes."""
        good = [choice for choice in self.contenders if self._values[number, choice] is not None]
        return min(good, key=lambda choice: self._loss(number, choice), default=None)

    def _loss(self, number: float, choice: Choice) -> float:
        value = self._values[number, choice]
        if value is None:
            return float("inf")
        return value if self._trials.goal == "min" else -value

    def crossing(self, low: float, high: float, below: Choice, above: Choice) -> Crossing:
        """Halve the range in which `above` takes over from `below`."""
        axis = self._axis
        for _ in range(_MOST_HALVINGS):
            if axis.close(low, high):
                break
            middle = axis.between(low, high)
            self.run([(middle, below), (middle, above)])
            if self._loss(middle, above) < self._loss(middle, below):
                high = middle
            else:
                low = middle
        return Crossing(
            str(axis.write(low)),
            str(axis.write(high)),
            mean([low, high]),
            self.words(below, above),
            self.words(above, below),
        )

    def words(self, choice: Choice | None, other: Choice | None = None) -> str:
        """What a combination is: all that it changes, or what differs from another."""
        return "none completes" if choice is None else described(self._trials.space, choice, other)


def described(space: Space, choice: Choice, other: Choice | None = None) -> str:
    """The settings of a combination that differ from the scenario's, or from those of another."""
    base = space.own if other is None else other
    parts = [
        f"{knob.name}: {label}"
        for knob, label, before in zip(space.knobs, choice, base, strict=True)
        if label != before
    ]
    return ", ".join(parts) or "as the scenario is"
