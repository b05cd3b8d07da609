"""The answer in one sentence, with the metric behind it.

What is answered: how the program ended if it died; else what the scenario's own sentences (`answer:`) say; else the
steps that the first `expect` row speaks of; else, where no step takes most of the time, the whole program with its
longest steps; else those kernels (or, without kernels, those steps) that took the most time together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.result import text
from gpusim.result.groups import StepGroup, grouped, working
from gpusim.result.paths import rounds_of, step_name_of
from gpusim.result.sentences import filled_in, steps_of
from gpusim.scenario.expression import first_metric

if TYPE_CHECKING:
    from gpusim.rundata import Formula

Row = dict[str, Any]

_STEADY = 0.02  # instances closer together than this are one number
_MOST = 0.5  # a step that takes more of the makespan is what the run is about
_LONGEST = 3  # steps named beside the whole
#: verbs whose time is that of other steps, or given
_WAITING = ("synchronize", "wait", "record", "barrier", "sleep")
_FIRST = 1.10  # a first pass slower than the rest by this factor is worth a word


def answer(
    summary: dict[str, Any], sentences: Sequence[str] = (), expected: Sequence[str] = ()
) -> dict[str, Any]:
    """`{text, metric, value, unit}` of a summary whose other parts are complete."""
    if summary["outcome"] != "completed":
        return _died(summary)
    said = filled_in(summary, sentences)
    if said is not None:
        return said
    makespan_ns = summary["makespan_ns"]
    group = _expected(summary["steps"], expected)
    if not group:
        works = [one for one in grouped(working(summary["steps"])) if one.kind not in _WAITING]
        works.sort(key=_each_ns, reverse=True)
        if not works:
            return _whole(f"The program takes {text.time(makespan_ns)}.", makespan_ns)
        if len(works) > 1 and _each_ns(works[0]) <= _MOST * makespan_ns:
            longest = _listed([_longest(one) for one in works[:_LONGEST]])
            took = f"The whole program takes {text.time(makespan_ns)}"
            return _whole(f"{took}; its longest steps are {longest}.", makespan_ns)
        group = _group(summary["steps"])
    words, metric, value_ns = _took(group)
    busy_ns = max(row["end_ns"] for row in group) - min(row["start_ns"] for row in group)
    if busy_ns < 0.95 * makespan_ns:
        words += f"; the whole program takes {text.time(makespan_ns)}"
    return {"text": words + ".", "metric": metric, "value": value_ns, "unit": "ns"}


def by_hand(
    summary: dict[str, Any], formulas: Mapping[int, Formula], sentences: Sequence[str] = ()
) -> tuple[str | None, float | None]:
    """The formula of what is answered, held against the simulation, and how far it is from that; None if none is near.

    Where none comes near the step that is answered, it is that of the next step that the sentences speak of. Where the
    answer is the whole program it is the longest step's that has one; a program that died has none.
    """
    if summary["outcome"] != "completed":
        return None, None
    steps = summary["steps"]
    asked = first_metric(str(summary["answer"]["metric"]))
    name = step_name_of(asked)
    if name is None:
        total: dict[str, float] = {}
        for row in steps:
            total[row["name"]] = total.get(row["name"], 0.0) + row["duration_ns"]
        there = [at for at in formulas if steps[at]["kind"] != "repeat"]
        there.sort(key=lambda at: (-total[steps[at]["name"]], -steps[at]["duration_ns"]))
    else:
        spoken_of = [name, *(other for sentence in sentences for other in steps_of(sentence))]
        of_each = ([at for at in formulas if steps[at]["name"] == one] for one in spoken_of)
        there = next((found for found in of_each if found), [])
        there.sort(key=lambda at: (not asked.startswith(f"steps.{steps[at]['path']}."), at))
    if not there:
        return None, None
    row, made = steps[there[0]], formulas[there[0]]
    ns = made.value_ps / 1000
    off = ns / row["duration_ns"] - 1
    near = f"{100 * off:+.1f} %" if abs(off) >= 0.0005 else "the same"
    return (
        f"{row['path']}: {made.text} = {text.time(ns)}; simulated {text.time(row['duration_ns'])} ({near})",
        off,
    )


def _died(summary: dict[str, Any]) -> dict[str, Any]:
    outcome = summary["outcome"]
    when = text.time(summary["makespan_ns"])
    culprits = [process for process in summary["processes"] if process["outcome"] == outcome]
    error = next((process["error"] for process in culprits if process["error"]), None)
    if outcome == "limit":
        words = f"Stopped at {when}, the limit of simulated time, before the program ended"
    elif outcome == "livelock":
        words = f"The program makes no progress: given up after {when}"
    else:
        who = culprits[0]["name"] if culprits else "the program"
        others = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
        at = text.time(culprits[0]["end_ns"]) if culprits else when
        words = f"{who}{others} dies of {outcome} after {at}"
    words += f": {error}" if error else ""
    return {"text": words.rstrip(".") + ".", "metric": "outcome", "value": outcome, "unit": None}


def _whole(words: str, makespan_ns: float) -> dict[str, Any]:
    return {"text": words, "metric": "makespan_ns", "value": makespan_ns, "unit": "ns"}


def _each_ns(group: StepGroup) -> float:
    """The time that each process spends in the steps of a group."""
    return group.total_ns / group.processes


def _longest(group: StepGroup) -> str:
    times = round(len(group.rows) / group.processes)
    passes = f" in {times} passes" if times > 1 else ""
    return f"`{group.name}` ({text.time(_each_ns(group))}{passes})"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _expected(steps: list[Row], expected: Sequence[str]) -> list[Row]:
    """The steps that the first `expect` row that names any speaks of."""
    names = [name for name in map(step_name_of, expected) if name is not None]
    return [row for row in steps if row["name"] == names[0]] if names else []


def _group(steps: list[Row]) -> list[Row]:
    """The steps of one name that took the most time, kernels before others."""
    candidates = [row for row in steps if row["kind"] == "launch"]
    candidates = candidates or [row for row in steps if row["kind"] not in _WAITING] or steps
    total: dict[str, float] = {}
    for row in candidates:
        total[row["name"]] = total.get(row["name"], 0.0) + row["duration_ns"]
    longest = max(total, key=lambda name: total[name], default=None)
    return [row for row in candidates if row["name"] == longest]


def _took(group: list[Row]) -> tuple[str, str, float]:
    """The sentence, its metric and its value, for steps of one name: alone, on ranks, repeated, or both."""
    name = group[0]["name"]
    if len(group) == 1:
        row = group[0]
        words = f"`{name}` takes {text.time(row['duration_ns'])}{_rate([row])}"
        return words, f"steps.{row['path']}.duration_ns", row["duration_ns"]
    ranks = len({row["process"] for row in group})
    on_ranks = f" on each of {ranks} ranks" if ranks > 1 else ""
    if ranks == len(group):  # no repeats
        spread = _spread([row["duration_ns"] for row in group])
        words = f"`{name}` takes {spread}{on_ranks}{_rate(group)}"
        return words, f"steps.{name}[*].duration_ns.mean", _mean(group)
    if len({row["path"] for row in group}) < len(group) or not all(map(rounds_of, group)):
        # several steps of the program share the name, because none was given
        words = f"Each of {len(group) // ranks} steps `{name}` takes "
        words += f"{_spread([row['duration_ns'] for row in group])}{on_ranks}{_rate(group)}"
        return words, f"steps.{name}[*].duration_ns.mean", _mean(group)
    lowest = min(rounds_of(row)[0] for row in group)
    first = [row for row in group if rounds_of(row)[0] == lowest]
    later = [row for row in group if rounds_of(row)[0] != lowest]
    if not later:
        return (
            f"`{name}` takes {text.time(_mean(group))}{on_ranks}",
            f"steps.{name}[*].duration_ns.mean",
            _mean(group),
        )
    repeats = len(later) // len({row["process"] for row in later})
    if max(_mean(first), _mean(later)) > _FIRST * min(_mean(first), _mean(later)):
        words = (
            f"The first `{name}` takes {text.time(_mean(first))}{_rate(first)}, "
            f"the {repeats} after it {text.time(_mean(later))}{_rate(later)} on average{on_ranks}"
        )
        return words, f"steps.{name}[{lowest}].duration_ns" + (".mean" if ranks > 1 else ""), _mean(first)
    words = (
        f"`{name}` takes {text.time(_mean(group))}{_rate(group)} on average of {repeats + 1} passes{on_ranks}"
    )
    return words, f"steps.{name}[*].duration_ns.mean", _mean(group)


def _mean(rows: list[Row]) -> float:
    return float(sum(row["duration_ns"] for row in rows) / len(rows))


def _rate(rows: list[Row]) -> str:
    moved, took = sum(row["bytes"] for row in rows), sum(row["duration_ns"] for row in rows)
    if not moved or not took:
        return ""
    each = text.size(moved / len(rows)) if moved % len(rows) else text.size(moved // len(rows))
    return f" for {each} ({text.rate(moved / took)})"


def _spread(durations_ns: list[float]) -> str:
    low, high = min(durations_ns), max(durations_ns)
    if high <= low * (1 + _STEADY):
        return text.time(sum(durations_ns) / len(durations_ns))
    return f"{text.time(low)} to {text.time(high)}"
