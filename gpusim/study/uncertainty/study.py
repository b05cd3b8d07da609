"""Draw what is uncertain, run, and say how far the answer moves and what moves it.

All runs have the scenario's seed, so that the band is that of the machine's numbers and not of chance. The numbers
whose ranks go most with the answer are then set to both ends of their range by themselves, all others as the profile
has them: what moves nothing so was a correlation by chance, and is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError
from gpusim.result.paths import lookup, statistic, unit_of
from gpusim.scenario.resolve import resolve
from gpusim.study.runs import simulated
from gpusim.study.uncertainty.draws import Uncertain, Uncertainties
from gpusim.study.uncertainty.ranks import correlations, regression, selected
from gpusim.study.workers import Workers

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from gpusim.result import Result
    from gpusim.scenario.schema import Scenario

#: called after each run with (runs done, runs in all)
Progress = Callable[[int, int], None]

FEWEST_FOR_RANKS = 8  # draws; fewer say nothing of what the answer hangs on
_SUSPECTS = 10  # numbers that are run at both ends of their range
_TRIES = 8
_MAKESPAN = "makespan_ns"


@dataclass(frozen=True, slots=True)
class Task:
    """One run with other numbers: path -> value as a scenario writes it."""

    number: int
    numbers: Mapping[str, Any]
    metric: str

    def __str__(self) -> str:
        return f"draw {self.number}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """What came of it; `held` are paths that together with the others make no machine, so they kept their value."""

    outcome: str
    value: float | None
    held: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hangs:
    """A number that the answer hangs on. `at_low` and `at_high` are the answer at the ends of its range, by itself."""

    path: str
    value: str
    low: str
    high: str
    grade: str
    source: str
    rank_correlation: float
    regression: float
    at_low: float | None
    at_high: float | None


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The band of one metric over draws of the machine's numbers.

    `band` has min, p5, p50, p95 and max over the draws that completed; `explained` is the share of the variance of
    ranks that `parameters` explain together; `draws` has one row per draw.
    """

    metric: str
    unit: str | None
    value: float | None
    outcomes: Mapping[str, int]
    band: Mapping[str, float | None]
    parameters: tuple[Hangs, ...]
    explained: float | None
    drawn: int
    held: Mapping[str, str]
    draws: pd.DataFrame
    runs: int

    def as_summary(self) -> dict[str, Any]:
        """The block `uncertainty` of summary.json."""
        return {
            "metric": self.metric,
            "unit": self.unit,
            "value": self.value,
            "draws": len(self.draws),
            "outcomes": dict(self.outcomes),
            **self.band,
            "parameters": [
                {
                    "path": one.path,
                    "value": one.value,
                    "range": [one.low, one.high],
                    "grade": one.grade,
                    "source": one.source,
                    "rank_correlation": one.rank_correlation,
                    "regression": one.regression,
                    "at_low": one.at_low,
                    "at_high": one.at_high,
                }
                for one in self.parameters
            ],
            "explained": self.explained,
            "drawn": self.drawn,
            "held": dict(self.held),
        }


def run(base: Scenario, task: Task) -> Drawn:
    """Simulate a draw; what a worker does."""
    numbers = dict(task.numbers)
    held: list[str] = []
    for attempt in range(_TRIES):
        try:
            scenario = base.with_(overrides={**base.overrides, **numbers})
            break
        except InputError as error:
            blamed = {problem.path.removeprefix("overrides.") for problem in error.problems} & set(numbers)
            if not blamed or attempt == _TRIES - 1:
                raise
            for path in sorted(blamed):
                held.append(path)
                del numbers[path]
    quick = task.metric.startswith(("steps.", _MAKESPAN)) and "attribution" not in task.metric
    summary = simulated(scenario, record="off" if quick else "summary").summary
    if summary["outcome"] != "completed":
        return Drawn(summary["outcome"], None, tuple(held))
    value = lookup(summary, task.metric)
    return Drawn("completed", float(value) if isinstance(value, int | float) else None, tuple(held))


def uncertainty(
    result: Result, *, draws: int, workers: int = 1, progress: Progress | None = None
) -> Uncertainty:
    """Of the answer of a result: `draws` runs with other numbers, and up to 20 more for what it hangs on."""
    base = result.scenario.with_(sweep=None, expect=[])
    found = Uncertainties.of(resolve(base).parameters)
    metric, value = _asked(result)
    parts = found.sample(base.seed, draws)
    numbers = _numbers(found, parts)
    most = draws + (2 * min(_SUSPECTS, len(found.drawn)) if draws >= FEWEST_FOR_RANKS else 0)
    done: dict[int, Drawn] = {}

    with Workers(run, base, workers, of="the uncertainty") as pool:

        def go(tasks: list[Task]) -> None:
            for task, drawn in pool.each(tasks):
                done[task.number] = drawn
                if progress is not None:
                    progress(len(done), most)

        go([Task(row, _written(found, numbers[row]), metric) for row in range(draws)])
        for row in range(draws):
            for index, one in enumerate(found.drawn):
                if one.path in done[row].held:
                    numbers[row, index] = one.value
        good = [row for row in range(draws) if done[row].value is not None]
        suspects = _suspects(numbers[good], [done[row].value for row in good])
        ends = [(index, end) for index in suspects for end in ("low", "high")]
        go(
            [
                Task(draws + at, {found.drawn[index].path: _end(found.drawn[index], end)}, metric)
                for at, (index, end) in enumerate(ends)
            ]
        )
    moved = {ends[at]: done[draws + at].value for at in range(len(ends))}
    hangs, explained = _hangs(found, numbers[good], [done[row].value for row in good], moved, value)
    values = [float(done[row].value or 0.0) for row in good]
    names = ("min", "p5", "p50", "p95", "max")
    return Uncertainty(
        metric=metric,
        unit=unit_of(metric),
        value=value,
        outcomes=dict(Counter(done[row].outcome for row in range(draws))),
        band={name: statistic(values, name) for name in names},
        parameters=hangs,
        explained=explained,
        drawn=len(found.drawn),
        held=found.held,
        draws=_table(found, numbers, [done[row] for row in range(draws)], metric),
        runs=len(done),
    )


def _asked(result: Result) -> tuple[str, float | None]:
    """The metric of the answer, or the makespan where the answer is no number."""
    answer = result.summary["answer"]
    metric, value = answer.get("metric"), answer.get("value")
    if isinstance(metric, str) and isinstance(value, int | float) and not isinstance(value, bool):
        return metric, float(value)
    return _MAKESPAN, float(result.summary[_MAKESPAN])


def _numbers(found: Uncertainties, parts: NDArray[np.float64]) -> NDArray[np.float64]:
    made = parts.copy()
    for index, one in enumerate(found.drawn):
        made[:, index] = [one.at(float(part)) for part in parts[:, index]]
    return made


def _written(found: Uncertainties, row: NDArray[np.float64]) -> dict[str, Any]:
    return {one.path: one.write(float(number)) for one, number in zip(found.drawn, row, strict=True)}


def _end(one: Uncertain, end: str) -> Any:
    return one.write(one.low if end == "low" else one.high)


def _suspects(numbers: NDArray[np.float64], answers: list[float | None]) -> list[int]:
    """The columns that the answer follows, as far as the draws tell."""
    import numpy as np

    if len(answers) < FEWEST_FOR_RANKS or len(set(answers)) < 2:
        return []
    return selected(numbers, np.array(answers, dtype=np.float64), min(_SUSPECTS, len(answers) // 2))


def _hangs(
    found: Uncertainties,
    numbers: NDArray[np.float64],
    answers: list[float | None],
    moved: Mapping[tuple[int, str], float | None],
    value: float | None,
) -> tuple[tuple[Hangs, ...], float | None]:
    """The suspects that move the answer by themselves, those that move it most first."""
    import numpy as np

    def swing(index: int) -> float:
        ends = [moved[index, "low"], moved[index, "high"], value]
        known = [end for end in ends if end is not None]
        return max(known) - min(known) if len(known) == len(ends) else float("inf")

    suspects = dict.fromkeys(index for index, _ in moved)
    proven = sorted((index for index in suspects if swing(index) > 0), key=swing, reverse=True)
    if not proven:
        return (), None
    target = np.array(answers, dtype=np.float64)
    columns = numbers[:, proven]
    together, explained = regression(columns, target)
    alone = correlations(columns, target)
    hangs = []
    for at, index in enumerate(proven):
        one = found.drawn[index]
        hangs.append(
            Hangs(
                path=one.path,
                value=one.parameter.text,
                low=str(one.write(one.low)),
                high=str(one.write(one.high)),
                grade=one.parameter.grade,
                source=one.parameter.source,
                rank_correlation=float(alone[at]),
                regression=float(together[at]),
                at_low=moved[index, "low"],
                at_high=moved[index, "high"],
            )
        )
    return tuple(hangs), explained


def _table(
    found: Uncertainties, numbers: NDArray[np.float64], drawn: list[Drawn], metric: str
) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, Any] = {one.path: numbers[:, index] for index, one in enumerate(found.drawn)}
    outcomes = [one.outcome for one in drawn]
    values = [one.value for one in drawn]
    return pd.DataFrame({**columns, "outcome": outcomes, metric: pd.Series(values, dtype="float64")})
