"""Search the settings of a scenario for the best, and say what that rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, Problem
from gpusim.result.paths import unit_of
from gpusim.scenario.metrics import check_metric
from gpusim.study.paired import Paired, paired
from gpusim.study.recommend import optimise
from gpusim.study.recommend.crossover import MOST_COMPARED, Crossover, crossover
from gpusim.study.recommend.discover import discover
from gpusim.study.recommend.findings import Candidate, Effect, Recommendation
from gpusim.study.recommend.knob import GROUPS, words
from gpusim.study.recommend.program import programs
from gpusim.study.recommend.space import Choice, Space
from gpusim.study.recommend.trials import Goal, Progress, Trials, closeness, mean, run
from gpusim.study.workers import Workers

if TYPE_CHECKING:
    from gpusim.scenario.schema import Scenario

BUDGET = 200
REPLICATIONS = 5
_FINALISTS = 6  # combinations that are run again with other seeds
_NEAR = 0.05  # of the best: who may still be the best with other seeds
_FLAT = {"1 %": 0.01, "5 %": 0.05}
_LEAST_BUDGET = 4

__all__ = ["BUDGET", "GROUPS", "REPLICATIONS", "recommend"]


def recommend(
    scenario: Scenario,
    *,
    metric: str = "makespan_ns",
    goal: Goal | None = None,
    budget: int = BUDGET,
    replications: int = REPLICATIONS,
    over: Mapping[str, Sequence[Any]] | None = None,
    only: Collection[str] | None = None,
    crossovers: Mapping[str, Sequence[Any]] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Recommendation:
    """The best of the legal settings by `metric`.

    `goal` is `min` or `max`; by default rates are maximised and all else is minimised. At most `budget` runs are
    made: all combinations if they are that few, else a search that needs Optuna. Those near the best are run with
    `replications` seeds where the seed matters. `over` adds settings (path -> values), `only` names the groups of
    settings that may be changed. `crossovers` are paths with two values each, between which the best may change;
    their runs are not counted in the budget.

    Raises InputError for a metric, group, path or value that does not exist, and where Optuna is needed and missing.
    """
    if budget < _LEAST_BUDGET:
        legal = f"at least {_LEAST_BUDGET}"
        raise InputError(
            [Problem("the budget is too small to compare settings", read=str(budget), legal=legal)]
        )
    if goal is None:
        goal = "max" if unit_of(metric) == "GB/s" else "min"
    base = scenario.with_(sweep=None, expect=[])
    _check_metric(base, metric)
    space = discover(base, over=over, only=only)
    if not space.knobs:
        why = "; ".join(f"{what}: {reason}" for what, reason in space.left_alone.items())
        legal = "name some with --over PATH=A,B"
        raise InputError([Problem(f"nothing can be set otherwise{': ' if why else ''}{why}", legal=legal)])
    with Workers(run, base, workers, of="the recommendation") as pool:
        trials = Trials(base, space, metric, goal, budget, pool, progress)
        trials.measure([space.own])
        if not metric.startswith(
            "steps."
        ):  # other settings may do other steps, but all else is there in each run
            trials.check()
        legal_choices = space.legal()
        again = min(_FINALISTS * (replications - 1), budget // 2)
        exhaustive = legal_choices is not None and len(legal_choices) <= budget - again
        if exhaustive:
            assert legal_choices is not None
            optimise.every(trials, legal_choices)
        else:
            optimise.search(trials, seed=scenario.seed, reserve=again)
        trials.check()
        matters = _replicate(trials, replications)
        ranked = _ranked(trials, matters=matters)
        if ranked:
            trials.measure([choice for _, _, choice in space.neighbours(ranked[0])])
            ranked = _ranked(trials, matters=matters)
        found = [
            crossover(trials, path, bounds, _contenders(trials, ranked))
            for path, bounds in (crossovers or {}).items()
        ]
    return _report(
        scenario, trials, ranked, found,
        combinations=space.product if legal_choices is None else len(legal_choices),
        exhaustive=exhaustive,
        matters=matters,
    )  # fmt: skip


def _check_metric(scenario: Scenario, metric: str) -> None:
    """Raise InputError for what no run of the scenario can have, before any."""
    ranks = Counter(process.name for process in scenario.processes)
    times = Counter[str]()
    for program in programs(scenario, scenario.raw):
        for site in program.all_sites:
            times[site.step.name or site.step.verb] += ranks[program.name] * (2 if site.looped else 1)
    names = [process.label if ranks[process.name] > 1 else process.name for process in scenario.processes]
    problem = check_metric(metric, times, names)
    if problem is not None:
        raise InputError([replace(problem, path="metric")])


def _replicate(trials: Trials, replications: int) -> bool:
    """Run those near the best, and the scenario's own, with more seeds; does the seed matter?"""
    ranked = trials.ranked()
    if replications < 2 or not ranked:
        return False
    best = trials.values(ranked[0])[0]
    near = [choice for choice in ranked if closeness(trials, trials.values(choice)[0], best) <= _NEAR][
        :_FINALISTS
    ]
    if trials.space.own in ranked and trials.space.own not in near:
        near = [*near[: _FINALISTS - 1], trials.space.own]
    trials.measure(near, replications=2)
    if all(len(set(trials.readings[choice])) == 1 for choice in near):
        return False
    trials.measure(near, replications=replications)
    return True


def _ranked(trials: Trials, *, matters: bool) -> list[Choice]:
    """All that completed, the best first. Where the seed matters, the best is one of those that had several."""
    ranked = trials.ranked()
    again = [choice for choice in ranked if len(trials.readings[choice]) > 1]
    if not (matters and again):
        return ranked
    best = min(again, key=lambda choice: (trials.loss(choice), trials.space.distance(choice)))
    return [best, *sorted((choice for choice in ranked if choice != best), key=trials.loss)]


def _contenders(trials: Trials, ranked: list[Choice]) -> list[Choice]:
    """For a crossover: the best, the scenario's own, and those that differ from the best in one knob."""
    if not ranked:
        return [trials.space.own]
    around = {choice for _, _, choice in trials.space.neighbours(ranked[0])}
    near = [choice for choice in ranked if choice in around]
    return list(dict.fromkeys([ranked[0], trials.space.own, *near]))[:MOST_COMPARED]


def _report(
    scenario: Scenario,
    trials: Trials,
    ranked: list[Choice],
    found: list[Crossover],
    *,
    combinations: int,
    exhaustive: bool,
    matters: bool,
) -> Recommendation:
    space = trials.space
    candidates = {choice: _candidate(trials, choice, ranked) for choice in trials.readings}
    best = candidates[ranked[0]] if ranked else None
    near = [choice for choice in ranked if _behind(candidates[choice]) <= _FLAT["1 %"]]
    simplest = min(near, key=space.distance, default=None)
    effects = _effects(trials, ranked[0], candidates) if ranked else ()
    method = (
        "every legal combination" if exhaustive else "a search (Optuna, tree-structured Parzen estimator)"
    )
    return Recommendation(
        scenario=scenario,
        metric=trials.metric,
        unit=unit_of(trials.metric),
        goal=trials.goal,
        method=method,
        combinations=combinations,
        exhaustive=exhaustive,
        runs=trials.runs,
        budget=trials.budget,
        seeds_matter=matters,
        knobs={knob.name: tuple(knob.labels) for knob in space.knobs},
        own=candidates[space.own],
        best=best,
        simplest=None if simplest is None else candidates[simplest],
        ranking=tuple(candidates[choice] for choice in ranked),
        failed=tuple(one for choice, one in candidates.items() if choice not in set(ranked)),
        within={
            words: sum(_behind(candidates[choice]) <= most for choice in ranked)
            for words, most in _FLAT.items()
        },
        effects=effects,
        crossovers=tuple(found),
        left_alone=space.left_alone,
        changes=space.changes(ranked[0]) if ranked else {},
    )


def _behind(candidate: Candidate) -> float:
    return float("inf") if candidate.behind is None else candidate.behind


def _candidate(trials: Trials, choice: Choice, ranked: list[Choice]) -> Candidate:
    space = trials.space
    values = trials.values(choice)
    own = trials.values(space.own)
    behind = None
    if values and ranked:
        common = min(len(values), len(trials.values(ranked[0])))
        behind = closeness(trials, mean(values[:common]), mean(trials.values(ranked[0])[:common]))
    difference: Paired | None = None
    if values and own:
        common = min(len(values), len(own))
        difference = paired(own[:common], values[:common])
    readings = trials.readings[choice]
    return Candidate(
        settings={knob.name: label for knob, label in zip(space.knobs, choice, strict=True)},
        changed={knob.name: label for knob, label in space.changed(choice)},
        how=_how(space, choice),
        outcome=next((one.outcome for one in readings if one.outcome != "completed"), "completed"),
        value=mean(values) if values else None,
        runs=len(readings),
        behind=behind,
        difference=difference,
    )


def _how(space: Space, choice: Choice) -> tuple[str, ...]:
    made = dict.fromkeys(words(space.tree, edit) for edit in space.edits(choice))
    return tuple(line for line in made if line)


def _effects(trials: Trials, best: Choice, candidates: Mapping[Choice, Candidate]) -> tuple[Effect, ...]:
    """Each knob turned by itself at the best settings; the knob that costs most comes first."""
    found: dict[str, list[Effect]] = {}
    for number, label, choice in trials.space.neighbours(best):
        one = candidates.get(choice)
        if one is not None:
            name = trials.space.knobs[number].name
            found.setdefault(name, []).append(Effect(name, label, one.outcome, one.value, one.behind))

    def most(effects: list[Effect]) -> float:
        return max((effect.behind for effect in effects if effect.behind is not None), default=float("inf"))

    return tuple(effect for effects in sorted(found.values(), key=most, reverse=True) for effect in effects)
