"""The metrics that `expect` and `answer` speak of: do they exist, and do their values and units fit?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpusim.errors import InputError, Problem
from gpusim.scenario import answers, metrics
from gpusim.scenario.mistakes import Mistakes
from gpusim.scenario.parts import Parts, is_amount
from gpusim.scenario.paths import TreePath
from gpusim.scenario.step_reader import VERBS
from gpusim.workload.steps.control import Repeat


def check_metrics(parts: Parts, mistakes: Mistakes) -> None:
    """Report what is wrong with the metrics of `expect` and of `answer`."""
    times = _times(parts)
    ranks = Counter(process.name for process in parts.processes)
    names = {
        process.name if ranks[process.name] == 1 else f"{process.name}[{process.rank}]"
        for process in parts.processes
    }
    rows: Any = parts.tree.get("expect")
    for index, row in enumerate(rows if isinstance(rows, list) else ()):
        if not isinstance(row, dict) or not isinstance(metric := row.get("metric"), str):
            continue
        problem = metrics.check_metric(metric, times, names)
        found = {"metric": problem}
        for key in ("value", "tolerance"):
            if problem is None and is_amount(said := row.get(key)):
                found[key] = metrics.check_amount(metric, said, tolerance=key == "tolerance")
        for key, wrong in found.items():
            _report(mistakes, ("expect", index, key), wrong)
    sentences: Any = parts.tree.get("answer")
    left_out = dict.fromkeys(_all_steps(parts.tree.get("processes")), 1)
    for index, sentence in enumerate(sentences if isinstance(sentences, list) else ()):
        if isinstance(sentence, str):
            _report(mistakes, ("answer", index), _sentence(sentence, left_out | times, names))


def _sentence(sentence: str, times: dict[str, int], names: set[str]) -> Problem | None:
    """What is wrong with a sentence of the answer. It may speak of steps that `when` leaves out of this run."""
    try:
        blanks = answers.blanks(sentence)
    except InputError as error:
        return error.problems[0]
    for blank in blanks:
        problem = metrics.check_metric(blank.expression, times, names)
        if problem is None and blank.percent and metrics.unit_of(blank.expression) not in (None, "fraction"):
            legal = "a ratio, e.g. {steps.a.duration_ns / steps.b.duration_ns :%}"
            problem = Problem("no percentage has a unit", read=repr(blank.expression), legal=legal)
        if problem is not None:
            return problem
    return None


def _report(mistakes: Mistakes, place: TreePath, wrong: Problem | None) -> None:
    if wrong is not None:
        mistakes.report(place, wrong.message, read=wrong.read, legal=wrong.legal, nearest=wrong.nearest)


def _all_steps(node: Any) -> Iterator[str]:
    """The names of all steps as they are written, also of those that are left out."""
    if isinstance(node, list):
        for child in node:
            yield from _all_steps(child)
    elif isinstance(node, dict):
        verbs = [key for key in node if key in VERBS]
        if len(verbs) == 1:
            yield str(node.get("name") or verbs[0])
        for child in node.values():
            yield from _all_steps(child)


def _times(parts: Parts) -> dict[str, int]:
    """How often the program does the steps of each name, ranks and rounds counted."""
    times: Counter[str] = Counter()
    for process in parts.processes:
        rounds: dict[TreePath, int] = {
            (*step.path, "repeat"): step.step.args.times
            for step in process.steps
            if step.step is not None and isinstance(step.step.args, Repeat)
        }
        for step in process.steps:
            turns = 1
            for outer, number in rounds.items():
                turns *= number if step.path[: len(outer)] == outer else 1
            times[step.name or step.verb] += turns
    return dict(times)
