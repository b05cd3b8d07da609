"""Metric paths as far as they can be checked before a run: `steps.blur[1:100].duration_ns.mean`.

The names of links, and what a run leaves behind, are known afterwards only; those parts are taken as they
are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from gpusim import quantity
from gpusim.errors import InputError, Problem
from gpusim.kinds import Kind
from gpusim.scenario import expression
from gpusim.scenario.paths import listed, nearest

STATISTICS = ("min", "max", "mean", "p50", "p95", "p99", "sum", "count")
STEP_FIELDS = (
    "duration_ns",
    "bandwidth_gb_per_s",
    "bytes",
    "start_ns",
    "end_ns",
    "process",
    "thread",
    "kind",
)
WORDS = ("outcome", "bound_by", "scenario", "version", "process", "thread", "kind", "error")
SCALARS = ("makespan_ns", "outcome", "bound_by", "seed")
ROOTS = (
    "steps",
    "processes",
    "faults",
    "counters",
    "migrations",
    "thrash",
    "links",
    "resources",
    "io",
    "attribution",
    "answer",
    "engine",
)
KINDS = tuple(kind.name.lower() for kind in Kind)
PROCESS_FIELDS = ("outcome", "error", "end_ns")

_SELECTED = re.compile(r"([^\[\]]*)((?:\[[^\[\]]*\])*)")
_INDEX = re.compile(r"\[\s*(\*|-?\d*(?::-?\d*){0,2})\s*\]")


def check_metric(metric: str, steps: Mapping[str, int], processes: Collection[str]) -> Problem | None:
    """What is wrong with a metric, or with what is calculated from several, without a place; None if nothing is.

    `steps` says how often the program does the steps of each name; `processes` are names with ranks.
    """
    if not expression.is_calculated(metric):
        return _metric(metric, steps, processes)
    try:
        node = expression.parse(metric)
        for part in expression.metrics(node):
            problem = _metric(part, steps, processes)
            if problem is not None:
                return problem
        expression.unit(node, symbol_of)
    except InputError as error:
        return error.problems[0]
    return None


def _metric(metric: str, steps: Mapping[str, int], processes: Collection[str]) -> Problem | None:
    root, _, rest = metric.partition(".")
    if metric in SCALARS:
        return None
    if root not in ROOTS or not rest or rest.endswith("."):
        known = [*SCALARS, *ROOTS]
        wrong = "not a metric" if root not in known else f"{root} is not a metric by itself"
        return Problem(wrong, read=repr(metric), legal=listed(known, 20), nearest=nearest(root, known))
    if root == "steps":
        return _step(metric, rest, steps)
    if root == "attribution" and rest not in KINDS:
        return _unknown_kind(rest)
    if root == "processes":
        name, _, field = rest.rpartition(".")
        if field not in PROCESS_FIELDS:
            near = nearest(field, PROCESS_FIELDS)
            return Problem(f"a process has no {field!r}", legal=listed(PROCESS_FIELDS), nearest=near)
        if name not in processes:
            near = nearest(name, processes)
            return Problem(f"there is no process {name!r}", legal=listed(sorted(processes)), nearest=near)
    return None


def _unknown_kind(kind: str) -> Problem:
    return Problem(f"there is no kind {kind!r}", legal=listed(KINDS, 40), nearest=nearest(kind, KINDS))


def _step(metric: str, rest: str, steps: Mapping[str, int]) -> Problem | None:
    parts = _split(rest)
    statistic = parts.pop() if len(parts) > 2 and parts[-1] in STATISTICS else None
    attribution = len(parts) == 3 and parts[1] == "attribution"
    match = _SELECTED.fullmatch(parts[0])
    if match is None or not match[1] or len(parts) != 2 + attribution:
        legal = "steps.NAME.FIELD, steps.NAME[i].FIELD or steps.NAME[a:b].FIELD.STATISTIC"
        return Problem("not a metric of a step", read=repr(metric), legal=legal)
    name, selectors = match[1], re.findall(r"\[[^\[\]]*\]", match[2])
    for selector in selectors:
        if not _INDEX.fullmatch(selector) or selector == "[]":
            return Problem("not an index", read=selector, legal="[3], [-1], [1:100], [::2] or [*]")
    if name not in steps:
        return Problem(
            f"there is no step {name!r}", legal=listed(sorted(steps)) or None, nearest=nearest(name, steps)
        )
    if not attribution and parts[1] not in STEP_FIELDS:
        near = nearest(parts[1], STEP_FIELDS)
        return Problem(f"a step has no {parts[1]!r}", legal=listed(STEP_FIELDS), nearest=near)
    many = any(":" in selector or "*" in selector for selector in selectors)
    if many and statistic is None:
        legal = listed(STATISTICS)
        return Problem(
            "a slice ends in a statistic", read=repr(metric), legal=legal, nearest=f"{metric}.mean"
        )
    if attribution and parts[2] not in KINDS:
        return _unknown_kind(parts[2])
    if steps[name] > 1 and not selectors and statistic is None:
        message = f"the program does {name!r} {steps[name]} times: pick one by [index], or add a statistic"
        return Problem(message, read=repr(metric), legal=listed(STATISTICS), nearest=f"{metric}.mean")
    return None


def _split(rest: str) -> list[str]:
    """At the dots outside brackets."""
    return re.findall(r"(?:[^.\[\]]|\[[^\[\]]*\])+|[\[\]]", rest) or [rest]


def symbol_of(metric: str) -> str | None:
    """`ns`, `s`, `bytes`, `GB/s`, `fraction`, `word`, or None for plain numbers. Works on the text alone.

    Raises InputError for an expression that cannot be read or whose units do not go together.
    """
    if expression.is_calculated(metric):
        return expression.unit(expression.parse(metric), symbol_of)
    parts = metric.split(".")
    if parts[-1] == "count":
        return None
    if parts[-1] in STATISTICS and len(parts) > 2:
        parts = parts[:-1]
    last = parts[-1]
    if "attribution" in parts[:-1] or last.endswith("_fraction"):
        return "fraction"
    if last in WORDS:
        return "word"
    for end, unit in (("_gb_per_s", "GB/s"), ("_ns", "ns"), ("_s", "s"), ("_bytes", "bytes")):
        if last.endswith(end):
            return unit
    return "bytes" if last == "bytes" else None


def unit_of(metric: str) -> str | None:
    """`time`, `size`, `rate`, `fraction`, `word`, or None for plain numbers."""
    names = {"ns": "time", "s": "time", "bytes": "size", "GB/s": "rate"}
    symbol = symbol_of(metric)
    return names.get(symbol, symbol) if symbol is not None else None


def check_amount(metric: str, value: Any, *, tolerance: bool = False) -> Problem | None:
    """What is wrong with an expected value or its tolerance, without a place; None if nothing is."""
    unit = unit_of(metric)
    if tolerance:
        if unit == "word":
            return Problem("a word has no tolerance", read=repr(value), legal="leave it out")
        if isinstance(value, str) and value.strip().endswith("%"):
            digits = value.strip()[:-1].strip()
            if _number(digits) is None or float(digits) < 0:
                return Problem("not a percentage", read=repr(value), legal="e.g. 20%")
            return None
    if unit == "word":
        return (
            None
            if isinstance(value, str)
            else Problem("needs a word", read=repr(value), legal="text, e.g. completed")
        )
    if unit is None or (unit == "fraction" and not isinstance(value, str)):
        number = _number(value) if isinstance(value, str) else value
        return (
            None
            if number is not None
            else Problem("needs a number", read=repr(value), legal="a number without a unit")
        )
    try:
        _READERS[unit](value)
    except quantity.QuantityError as error:
        legal = f"20%, or {error.legal}" if tolerance else error.legal
        return Problem(error.why, read=error.read, legal=legal)
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


_READERS = {
    "time": quantity.parse_duration,
    "size": quantity.parse_size,
    "rate": quantity.parse_rate,
    "fraction": quantity.parse_fraction,
}
