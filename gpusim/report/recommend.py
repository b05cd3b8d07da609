"""What `gpusim explain --recommend` prints."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gpusim.report import parts
from gpusim.result import text
from gpusim.study.recommend import display

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpusim.study.recommend.crossover import Crossover
    from gpusim.study.recommend.findings import Candidate, Effect, Recommendation

_DIM = "bright_black"
_ROWS = 10


def recommendation(found: Recommendation) -> list[RenderableType]:
    """The report for a terminal."""
    first, *more = display.said(found)
    made: list[RenderableType] = [
        Text(found.scenario.name, style="bold").append(f" · by {found.metric}", style=_DIM),
        Text(first, style="bold"),
        *(Text(line) for line in more),
    ]
    if found.best is not None and found.best.how:
        made.append(parts.heading("How"))
        made += [Text(f"  {line}") for line in found.best.how]
    if found.ranking:
        made += [parts.heading("Ranking"), _ranking(found)]
    if found.effects:
        made += [parts.heading("One setting changed at the best"), _effects(found)]
    for one in found.crossovers:
        made += [parts.heading(f"Crossover of {one.path}"), *_crossover(one, found.unit)]
    if found.failed:
        made.append(parts.heading("These do not complete"))
        made += [Text(f"  {words}") for words in _failed(found)]
    if found.left_alone:
        made.append(parts.heading("Left as it is"))
        made += [Text(f"  {what}: {why}") for what, why in found.left_alone.items()]
    return made


def _ranking(found: Recommendation) -> RenderableType:
    """One line for each value: of combinations that come to the same, the one that changes least."""
    made = parts.table("", "settings", found.metric, "behind", "", right=(0, 2, 3))
    lines = [list(same) for _, same in groupby(found.ranking, key=lambda one: one.value)]
    for rank, same in enumerate(lines[:_ROWS], start=1):
        one = min(same, key=lambda candidate: len(candidate.changed))
        more = f"and {len(same) - 1} more" if len(same) > 1 else ""
        made.add_row(
            str(rank),
            display.settings(one),
            text.value(one.value, found.unit),
            display.behind(one.behind),
            Text(more, style=_DIM),
        )
    if found.own.value is not None and all(found.own not in same for same in lines[:_ROWS]):
        value, far = text.value(found.own.value, found.unit), display.behind(found.own.behind)
        made.add_row("…", "as the scenario is", value, far, "")
    return made


def _effects(found: Recommendation) -> RenderableType:
    made = parts.table("", "at the best", "changed to", found.metric, "behind", right=(3, 4))
    assert found.best is not None
    for knob, effects in found.by_knob():
        for number, effect in enumerate(effects):
            names = (knob, found.best.settings[knob]) if number == 0 else ("", "")
            made.add_row(
                *names,
                effect.label,
                text.value(effect.value, found.unit) if effect.value is not None else effect.outcome,
                display.behind(effect.behind) if effect.value is not None else "–",
            )
    return made


def _crossover(one: Crossover, unit: str | None) -> Iterator[RenderableType]:
    made = parts.table("", "best settings", "", right=(2,))
    for written, words, value in one.points:
        made.add_row(written, words, text.value(value, unit))
    yield made
    for crossing in one.crossings:
        yield Text(
            f"between {crossing.low} and {crossing.high}: below {crossing.below}; above {crossing.above}",
            style="bold",
        )
    if not one.crossings:
        yield Text("the same settings are best at all of these values", style=_DIM)


def _failed(found: Recommendation) -> Iterator[str]:
    for one in found.failed[:_ROWS]:
        yield f"{display.settings(one)}: {one.outcome}"
    if len(found.failed) > _ROWS:
        yield f"and {len(found.failed) - _ROWS} more"


def as_data(found: Recommendation) -> dict[str, Any]:
    """The same for `--json`."""
    return {
        "scenario": found.scenario.name,
        "metric": found.metric,
        "unit": found.unit,
        "goal": found.goal,
        "runs": found.runs,
        "budget": found.budget,
        "exhaustive": found.exhaustive,
        "combinations": found.combinations,
        "seeds_matter": found.seeds_matter,
        "gain": found.gain,
        "certain": found.certain,
        "own": _candidate(found.own),
        "best": None if found.best is None else _candidate(found.best),
        "simplest": None if found.simplest is None else _candidate(found.simplest),
        "within": dict(found.within),
        "ranking": [_candidate(one) for one in found.ranking],
        "failed": [_candidate(one) for one in found.failed],
        "effects": [_effect(one) for one in found.effects],
        "crossovers": [
            {
                "path": one.path,
                "points": [dict(zip(("at", "best", "value"), point, strict=True)) for point in one.points],
                "crossings": [
                    {"low": c.low, "high": c.high, "at": c.at, "below": c.below, "above": c.above}
                    for c in one.crossings
                ],
            }
            for one in found.crossovers
        ],
        "settings": {name: list(labels) for name, labels in found.knobs.items()},
        "left_alone": dict(found.left_alone),
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    difference = one.difference
    return {
        "changed": dict(one.changed),
        "how": list(one.how),
        "outcome": one.outcome,
        "value": one.value,
        "behind": _finite(one.behind),
        "runs": one.runs,
        "difference": None
        if difference is None
        else {
            "mean": difference.mean,
            "half_width": difference.half_width,
            "significant": difference.significant,
        },
    }


def _effect(one: Effect) -> dict[str, Any]:
    return {
        "setting": one.knob,
        "to": one.label,
        "outcome": one.outcome,
        "value": one.value,
        "behind": _finite(one.behind),
    }


def _finite(fraction: float | None) -> float | None:
    return None if fraction == float("inf") else fraction
