"""What `recommend` returns: the best settings, how much they gain, how flat the optimum is, and what it hangs on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusim.study.paired import Paired
from gpusim.study.recommend.crossover import Crossover
from gpusim.study.recommend.trials import Goal

if TYPE_CHECKING:
    import pandas as pd

    from gpusim.scenario.schema import Scenario


@dataclass(frozen=True, slots=True)
class Candidate:
    """A combination of settings and what came of it.

    `value` is the mean of the metric over `runs`; None where the program did not complete. `difference` is that to the
    scenario's own settings over runs with the same seeds. `behind` is how far it is from the best, as a fraction.
    """

    settings: Mapping[str, str]  # knob -> what it is set to
    changed: Mapping[str, str]  # those that differ from the scenario's
    how: tuple[str, ...]  # what to do for that
    outcome: str
    value: float | None
    runs: int
    behind: float | None
    difference: Paired | None


@dataclass(frozen=True, slots=True)
class Effect:
    """One knob turned at the best settings: `value` is the metric then, None where the program does not complete."""

    knob: str
    label: str
    outcome: str
    value: float | None
    behind: float | None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The best of the legal settings of a scenario.

    `ranking` has all that were tried and completed, the best first; `failed` those that did not. `simplest` changes
    least among those within 1 % of the best. `within` counts the combinations within 1 % and 5 % of the best.
    `effects` are those of single knobs at the best, the knob that matters most first. `left_alone` says what has no
    choice, and why.
    """

    scenario: Scenario
    metric: str
    unit: str | None
    goal: Goal
    method: str
    combinations: int  # legal ones, or the product where they are too many to list
    exhaustive: bool
    runs: int
    budget: int
    seeds_matter: bool
    knobs: Mapping[str, tuple[str, ...]]
    own: Candidate
    best: Candidate | None
    simplest: Candidate | None
    ranking: tuple[Candidate, ...]
    failed: tuple[Candidate, ...]
    within: Mapping[str, int]
    effects: tuple[Effect, ...]
    crossovers: tuple[Crossover, ...]
    left_alone: Mapping[str, str]
    changes: Mapping[str, Any]  # of `best`, as `Scenario.with_` takes them

    @property
    def gain(self) -> float | None:
        """By what fraction of its own value the scenario would be better; None where one of both has none."""
        if self.best is None or self.best.value is None or not self.own.value:
            return None
        change = self.best.value / self.own.value - 1
        return -change if self.goal == "min" else change

    @property
    def certain(self) -> bool:
        """Is the best more than chance better than what the scenario has? True where it needs no change."""
        if self.best is None or not self.best.changed:
            return self.best is not None
        difference = self.best.difference
        return difference is None or difference.significant is not False

    def recommended(self) -> Scenario:
        """The scenario with the best settings. Raises ValueError where nothing completed."""
        if self.best is None:
            raise ValueError("no combination of settings completed")
        return self.scenario.with_(**self.changes, sweep=None, expect=[])

    @property
    def table(self) -> pd.DataFrame:
        """One row per combination that was tried: its settings, outcome, value, and distance from the best."""
        import pandas as pd

        rows = [
            {
                **one.settings,
                "outcome": one.outcome,
                self.metric: one.value,
                "behind": one.behind,
                "runs": one.runs,
            }
            for one in (*self.ranking, *self.failed)
        ]
        return pd.DataFrame(rows)

    def by_knob(self) -> Iterator[tuple[str, list[Effect]]]:
        """The effects of each knob, in their order."""
        for knob in dict.fromkeys(effect.knob for effect in self.effects):
            yield knob, [effect for effect in self.effects if effect.knob == knob]

    def _repr_html_(self) -> str:
        from gpusim.study.recommend.display import html

        return html(self)
