"""Which combinations to try: all of them where they are few, else a search.

The search begins with the scenario's own settings and each knob alone, goes on with Optuna's tree-structured Parzen
estimator, and then makes every change of one knob at the best, as long as that makes it better; what is left of the
budget goes to more of both. Proposals come in batches of a fixed size, so that the answer does not depend on the number
of workers.
"""

from __future__ import annotations

import random
import warnings
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, Problem
from gpusim.study.recommend.space import Choice
from gpusim.study.recommend.trials import Trials

if TYPE_CHECKING:
    import optuna

_BATCH = 8
_ASKED = 40  # proposals, for each that is new and legal, before chance is asked instead


def every(trials: Trials, choices: list[Choice]) -> None:
    """Try all."""
    trials.measure(choices)


def search(trials: Trials, *, seed: int, reserve: int) -> None:
    """Spend the budget but for `reserve` runs. Raises InputError where Optuna is not installed."""
    tool = _optuna(trials)
    space = trials.space
    trials.measure([space.own])
    allowed = trials.left - reserve
    first = [choice for _, _, choice in space.neighbours(space.own)]
    trials.measure(first[: max(allowed // 2, 0)])
    polish = sum(len(knob.options) - 1 for knob in space.knobs)
    until = reserve + min(polish, allowed // 4)
    study = _Study(tool, trials, seed)
    while trials.left > until and study.step(trials.left - until):
        pass
    _climb(trials, reserve)
    while trials.left > reserve and study.step(trials.left - reserve):
        _climb(trials, reserve)


def _climb(trials: Trials, reserve: int) -> None:
    """Change one knob at a time for as long as that helps."""
    while trials.left > reserve:
        ranked = trials.ranked()
        if not ranked:
            return
        best = ranked[0]
        around = [choice for _, _, choice in trials.space.neighbours(best) if choice not in trials.readings]
        trials.measure(around[: trials.left - reserve])
        if trials.ranked()[0] == best:
            return


class _Study:
    """Optuna's, which knows each knob as a category of labels."""

    def __init__(self, tool: Any, trials: Trials, seed: int) -> None:
        self._tool = tool
        self._trials = trials
        self._space = trials.space
        self._random = random.Random(seed)
        self._open: dict[Choice, optuna.trial.Trial] = {}
        self._kinds = {
            knob.name: tool.distributions.CategoricalDistribution(knob.labels) for knob in self._space.knobs
        }
        sampler = tool.samplers.TPESampler(seed=seed % 2**32)
        self._study = tool.create_study(sampler=sampler)
        self._told: set[Choice] = set()

    def proposals(self, count: int) -> list[Choice]:
        """New legal combinations; fewer than asked for where there are hardly any left."""
        for known in [known for known in self._trials.readings if known not in self._told]:
            self._tell(known, None)
        made: list[Choice] = []
        for _ in range(_ASKED * count):
            if len(made) == count:
                break
            trial = self._study.ask(self._kinds)
            choice = self._space.settle([trial.params[knob.name] for knob in self._space.knobs])
            if choice is None:
                self._study.tell(trial, state=self._tool.trial.TrialState.PRUNED)
            elif choice in self._trials.readings:
                self._tell(choice, trial)
            elif choice in self._open:
                self._study.tell(trial, state=self._tool.trial.TrialState.PRUNED)
            else:
                self._open[choice] = trial
                made.append(choice)
        for _ in range(_ASKED * (count - len(made))):
            if len(made) == count:
                break
            drawn = self._space.settle([self._random.choice(knob.labels) for knob in self._space.knobs])
            if drawn is not None and drawn not in self._trials.readings and drawn not in made:
                made.append(drawn)
        return made

    def step(self, most: int) -> bool:
        """Propose a batch, run it and learn from it; False where there is nothing left to propose."""
        batch = self.proposals(min(_BATCH, most))
        self._trials.measure(batch)
        self.learn(batch)
        return bool(batch)

    def learn(self, batch: list[Choice]) -> None:
        """Tell it what came of its proposals, and of those that chance made."""
        for choice in batch:
            if choice in self._trials.readings:
                self._tell(choice, self._open.pop(choice, None))

    def _tell(self, choice: Choice, trial: optuna.trial.Trial | None) -> None:
        self._told.add(choice)
        loss = self._trials.loss(choice, replications=1)
        failed = loss == float("inf")
        state = self._tool.trial.TrialState
        if trial is not None:
            self._study.tell(trial, None if failed else loss, state=state.PRUNED if failed else None)
            return
        params = dict(zip(self._kinds, choice, strict=True))
        self._study.add_trial(
            self._tool.trial.create_trial(
                params=params,
                distributions=self._kinds,
                value=None if failed else loss,
                state=state.PRUNED if failed else state.COMPLETE,
            )
        )


def _optuna(trials: Trials) -> Any:
    """The module, its messages off. It is not needed for anything else, so it is an extra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import optuna
    except ImportError:
        legal = "pip install 'gpusim[recommend]'; or a higher --budget, or fewer settings with --only"
        message = (
            f"{trials.space.product} combinations of settings are more than {trials.budget} runs can try, and the "
            "search needs the package optuna, which is not installed"
        )
        raise InputError([Problem(message, legal=legal)]) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
