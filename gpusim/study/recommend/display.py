"""A recommendation in a notebook: the settings, the gain, the ranking, and what it hangs on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from gpusim.result import text

if TYPE_CHECKING:
    from gpusim.study.recommend.findings import Candidate, Recommendation

_ROWS = 10


def html(found: Recommendation) -> str:
    """The card. Colours of text are inherited, so that it reads in light and in dark notebooks."""
    head = f"<div><b>{escape(found.scenario.name)}</b> · recommendation by {escape(found.metric)}</div>"
    lines = "".join(f"<div>{escape(line)}</div>" for line in said(found))
    if found.best is not None and found.best.how:
        lines += "<ul>" + "".join(f"<li><code>{escape(one)}</code></li>" for one in found.best.how) + "</ul>"
    rows = [
        (str(rank), settings(one), text.value(one.value, found.unit), _behind(one))
        for rank, one in enumerate(found.ranking[:_ROWS], start=1)
    ]
    ranking = _table(("", "settings", found.metric, "behind"), rows)
    effects = [
        (effect.knob, effect.label, text.value(effect.value, found.unit), behind(effect.behind))
        for effect in found.effects[: 2 * _ROWS]
    ]
    turned = _table(("one knob turned at the best", "to", found.metric, "behind"), effects)
    crossed = [
        (one.path, f"{crossing.low} to {crossing.high}", crossing.below, crossing.above)
        for one in found.crossovers
        for crossing in one.crossings
    ]
    crossings = _table(("crossover of", "between", "best below", "best above"), crossed)
    return f'<div style="max-width:780px;line-height:1.5">{head}{lines}{ranking}{turned}{crossings}</div>'


def said(found: Recommendation) -> list[str]:
    """The finding in sentences: what to set, what it gains, how sure and how flat that is."""
    best, own, unit = found.best, found.own, found.unit
    if best is None:
        return [f"None of {found.runs} combinations of settings completes: {own.outcome} as the scenario is."]
    value = text.value(best.value, unit)
    if own.value is None:
        first = f"Set {settings(best)}: {value}. As the scenario is, it ends with {own.outcome}."
    elif not best.changed:
        first = f"Leave it as it is: nothing that was tried is better than {value}."
    else:
        gain = "" if found.gain is None else f", {text.percent(found.gain)} better"
        first = f"Set {settings(best)}: {value} instead of {text.value(own.value, unit)}{gain}."
    lines = [first]
    difference = best.difference
    if best.changed and difference is not None and difference.half_width is not None and found.seeds_matter:
        sure = "more than chance" if difference.significant else "within chance: there is no reason to change"
        width = text.value(difference.half_width, unit)
        mean = text.value(abs(difference.mean), unit)
        lines.append(f"The difference of {mean} is {sure} (± {width}, {difference.pairs} seeds).")
    simple = found.simplest
    if simple is not None and len(simple.changed) < len(best.changed):
        lines.append(
            f"Within 1 % of it with fewer changes: {settings(simple)} ({text.value(simple.value, unit)})."
        )
    tried = len(found.ranking) + len(found.failed)
    scope = f"all {tried} legal combinations" if found.exhaustive else f"{tried} combinations that were tried"
    flat = ", ".join(f"{count} within {words}" for words, count in found.within.items())
    number = len(found.failed)
    failed = f"; {number} {'does' if number == 1 else 'do'} not complete" if number else ""
    lines.append(f"Of {scope}: {flat} of the best{failed}. {found.runs} runs, {found.method}.")
    return lines


def settings(candidate: Candidate) -> str:
    """`XNACK of app: on, prefetch of app.x: before scale`."""
    return ", ".join(f"{knob}: {label}" for knob, label in candidate.changed.items()) or "as the scenario is"


def behind(fraction: float | None) -> str:
    """`best`, `+3.1 %`, `4.2 x`, `does not complete`."""
    if fraction is None:
        return "does not complete"
    if fraction == float("inf"):
        return "far"
    if fraction >= 1:
        return f"{1 + fraction:,.3g} x" if fraction < 999 else f"{1 + fraction:,.0f} x"
    return (
        "best" if fraction == 0 else f"+{text.percent(fraction)}" if fraction > 0 else text.percent(fraction)
    )


def _behind(candidate: Candidate) -> str:
    return behind(candidate.behind)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    listed = list(rows)
    if not listed:
        return ""
    left = ' style="text-align:left"'
    head = "".join(f"<th{left}>{escape(one)}</th>" for one in heads)
    body = "".join(
        "<tr>" + "".join(f"<td{left}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in listed
    )
    return f"<table><tr>{head}</tr>{body}</table>"
