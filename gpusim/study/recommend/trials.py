"""Runs of combinations of settings. Replication r has the same seed with all of them (common random numbers)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gpusim.errors import InputError, Problem
from gpusim.result.paths import lookup
from gpusim.study.recommend.space import Choice, Space
from gpusim.study.runs import simulated
from gpusim.study.workers import Workers

if TYPE_CHECKING:
    from gpusim.scenario.schema import Scenario

Goal = Literal["min", "max"]
#: called after each run with (runs done, runs allowed)
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Task:
    """One run: changes for `Scenario.with_`, the seed, and the metric that is asked for."""

    number: int
    words: str
    changes: Mapping[str, Any]
    seed: int
    metric: str

    def __str__(self) -> str:
        return f"{self.words}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Reading:
    """How one run ended, and the metric; None if it did not complete, or has no such metric."""

    outcome: str
    value: float | None
    missing: str = ""  # why a completed run has no value


def run(base: Scenario, task: Task) -> Reading:
    """Simulate; what a worker does. What this version cannot simulate is no result, but for the scenario as it is."""
    try:
        summary = simulated(base.with_(**task.changes, seed=task.seed)).summary
    except InputError as error:
        if not task.changes:
            raise
        return Reading(f"refused: {error.problems[0].message}", None)
    if summary["outcome"] != "completed":
        return Reading(summary["outcome"], None)
    try:
        value = lookup(summary, task.metric)
    except InputError as error:
        return Reading("completed", None, str(error))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Reading("completed", None, f"{task.metric}: is no number here (read {value!r})")
    return Reading("completed", float(value))


@dataclass(slots=True)
class Trials:
    """`readings[choice]` are those of replications 0, 1, ...; `runs` counts them all."""

    scenario: Scenario
    space: Space
    metric: str
    goal: Goal
    budget: int
    pool: Workers[Task, Reading]
    progress: Progress | None = None
    readings: dict[Choice, list[Reading]] = field(default_factory=dict)
    runs: int = 0

    @property
    def left(self) -> int:
        """Runs that the budget still allows."""
        return self.budget - self.runs

    def measure(self, choices: Iterable[Choice], *, replications: int = 1) -> None:
        """Run what has not been run yet, in the given order until the budget is used up."""
        tasks: list[Task] = []
        wanted: list[tuple[Choice, int]] = []
        for replication in range(replications):
            for choice in dict.fromkeys(choices):
                if len(self.readings.get(choice, ())) <= replication and len(tasks) < self.left:
                    wanted.append((choice, replication))
                    tasks.append(self._task(len(tasks), choice, replication))
        found: dict[int, Reading] = {}
        for task, reading in self.pool.each(tasks):
            found[task.number] = reading
            if self.progress is not None:
                self.progress(self.runs + len(found), self.budget)
        self.runs += len(found)
        for number, (choice, _) in enumerate(wanted):  # in the order of the tasks, whoever finished first
            self.readings.setdefault(choice, []).append(found[number])

    def _task(self, number: int, choice: Choice, replication: int) -> Task:
        words = ", ".join(f"{knob.name}: {label}" for knob, label in self.space.changed(choice))
        return Task(
            number,
            words or "as the scenario is",
            self.space.changes(choice),
            self.scenario.seed + replication,
            self.metric,
        )

    def values(self, choice: Choice, *, replications: int | None = None) -> list[float]:
        """The metric over replications; empty if one of those runs had none."""
        readings = self.readings.get(choice, [])[:replications]
        values = [reading.value for reading in readings if reading.value is not None]
        return values if len(values) == len(readings) else []

    def loss(self, choice: Choice, *, replications: int | None = None) -> float:
        """What is minimised; infinite for what is no result."""
        values = self.values(choice, replications=replications)
        if not values:
            return float("inf")
        mean = sum(values) / len(values)
        return mean if self.goal == "min" else -mean

    def ranked(self) -> list[Choice]:
        """All that gave a value, by their first run: the best first, among equals whoever changes least."""
        good = [choice for choice in self.readings if self.values(choice)]
        return sorted(good, key=lambda one: (self.loss(one, replications=1), self.space.distance(one)))

    def check(self) -> None:
        """Raise InputError where the metric is one that no run has."""
        completed = [
            one for readings in self.readings.values() for one in readings if one.outcome == "completed"
        ]
        if completed and all(reading.value is None for reading in completed):
            raise InputError(
                [
                    Problem(
                        completed[0].missing, legal="a metric of this scenario; see `gpusim schema results`"
                    )
                ]
            )


def closeness(trials: Trials, value: float, best: float) -> float:
    """How far a value is from the best, as a fraction of it; 0 for the best itself."""
    if value == best:
        return 0.0
    low, high = (best, value) if trials.goal == "min" else (value, best)
    return high / low - 1 if low > 0 else float("inf")


def mean(values: Sequence[float]) -> float:
    """Of at least one."""
    return sum(values) / len(values)
