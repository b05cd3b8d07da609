"""The language that names a metric: `steps.blur[1:100].duration_ns.mean`, `links.gpu[0].pcie.h2d.bytes`.

| path | gives |
|---|---|
| `makespan_ns`, `outcome`, `seed`, `answer.value` | the value of summary.json |
| `faults.serviced`, `faults.latency_ns.p95`, `faults.per_gpu.gpu0.raised` | counters and latency blocks |
| `counters.gpu[0].table_reads` | what a GPU's translation and interrupts did |
| `migrations.host_to_device.bytes`, `engine.events` | the same |
| `io.fastpath.read.requests` | the same, in runs that model file I/O |
| `links.NAME.bytes`, `resources.NAME.busy_fraction` | NAME may hold dots and brackets |
| `processes.NAME.outcome`, `processes.NAME.end_ns` | one process; NAME may end in `[rank]` |
| `attribution.KIND` | fraction of the makespan; 0 for a kind that did not occur |
| `steps.NAME[i][rank].FIELD` | one step; FIELD is `duration_ns`, `bytes`, `attribution.KIND`, ... |
| `steps.NAME[a:b].FIELD.STATISTIC`, `[*]` | over several steps; see `STATISTICS` |
| `A / B`, `A - (B + C)`, `2 * A` | calculated from several; see `gpusim.scenario.expression` |

Slices count as Python's do. An index that is left out means all of that level.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpusim.errors import InputError, Problem
from gpusim.scenario import expression
from gpusim.scenario.metrics import KINDS, STATISTICS, STEP_FIELDS, WORDS, symbol_of

Value = int | float | str | None

_PLAIN = (
    "answer",
    "faults",
    "counters",
    "migrations",
    "thrash",
    "io",
    "engine",
)  # nested objects without names of the user's choosing
_SCALARS = ("makespan_ns", "outcome", "scenario", "bound_by", "seed", "version", "schema_version")
_INDEX = re.compile(r"\[([^\[\]]*)\]")
_SELECTORS = re.compile(r"(?:\[[^\[\]]*\])*$")


def lookup(summary: Mapping[str, Any], path: str) -> Value:
    """The value of one metric, or of what is calculated from several.

    Raises InputError, with the nearest metric, when there is none.
    """
    if expression.is_calculated(path):
        return expression.evaluate(expression.parse(path), lambda part: _number(summary, part))
    root, _, rest = path.partition(".")
    if not rest and path in _SCALARS:
        return summary[path]  # type: ignore[no-any-return]
    if root == "steps" and rest:
        return _steps(summary, path, rest)
    if root == "attribution" and rest in KINDS:
        return _fraction(summary["attribution"], rest, path)
    if root in ("links", "resources") and rest:
        name, _, field = rest.rpartition(".")
        if field in summary[root].get(name, {}):
            return summary[root][name][field]  # type: ignore[no-any-return]
    elif root == "processes":
        name, _, field = rest.rpartition(".")
        for process in summary["processes"]:
            if process["name"] == name and field in process:
                return process[field]  # type: ignore[no-any-return]
    elif root in _PLAIN:
        value: Any = _descend(summary.get(root, {}), rest)
        if value is None or isinstance(value, int | float | str):
            return value
    raise _unknown(summary, path)


def unit_of(path: str) -> str | None:
    """`ns`, `s`, `bytes`, `GB/s`, `fraction`, or None for counts and words. Works on the path alone."""
    symbol = symbol_of(path)
    return None if symbol == "word" else symbol


def names(summary: Mapping[str, Any]) -> Iterator[str]:
    """Every metric that this result has, as `lookup` takes it."""
    yield from _SCALARS
    for root in _PLAIN:
        yield from (f"{root}.{leaf}" for leaf in _leaves(summary.get(root) or {}))
    for root in ("links", "resources"):
        yield from (f"{root}.{name}.{field}" for name, use in summary[root].items() for field in use)
    for process in summary["processes"]:
        yield from (f"processes.{process['name']}.{field}" for field in ("outcome", "error", "end_ns"))
    if summary["attribution"] is not None:
        yield from (f"attribution.{kind}" for kind in KINDS)
    for path, times in Counter(row["path"] for row in summary["steps"]).items():
        if times == 1:
            yield from (f"steps.{path}.{field}" for field in STEP_FIELDS)
        else:  # steps without names of their own: only together
            yield from (f"steps.{path}.{field}.mean" for field in STEP_FIELDS if field not in WORDS)


def step_name_of(path: str) -> str | None:
    """The step's name in a path such as `steps.blur[0].duration_ns`; None for other metrics.

    Of an expression: that of its first metric.
    """
    root, _, rest = expression.first_metric(path).partition(".")
    named, field, _ = _split_field(rest)
    return _SELECTORS.sub("", named) if root == "steps" and field else None


def indices_of(path: str) -> tuple[int, ...]:
    """`blur[3][1]` -> (3, 1)."""
    return tuple(int(index) for index in _INDEX.findall(_SELECTORS.search(path)[0]))  # type: ignore[index]


def rounds_of(row: Mapping[str, Any]) -> tuple[int, ...]:
    """The repeat indices of a step's row, without the rank; () outside loops."""
    indices = indices_of(row["path"])
    return indices[:-1] if row["process"].endswith("]") else indices


def statistic(values: Sequence[float], name: str) -> float | int | None:
    """A statistic over values; percentiles by nearest rank; None over nothing (except `count`)."""
    if name == "count":
        return len(values)
    if not values:
        return None
    if name == "mean":
        return sum(values) / len(values)
    if name == "sum":
        return sum(values)
    ordered = sorted(values)
    if name in ("min", "max"):
        return ordered[0 if name == "min" else -1]
    return ordered[-(-int(name[1:]) * len(ordered) // 100) - 1]


def _number(summary: Mapping[str, Any], path: str) -> float | None:
    value = lookup(summary, path)
    if isinstance(value, str):
        message = "is a word, which cannot be calculated with"
        raise InputError([Problem(message, path=path, legal="metrics that are numbers")])
    return value


def _steps(summary: Mapping[str, Any], path: str, rest: str) -> Value:
    named, field, wanted = _split_field(rest)
    selectors = _SELECTORS.search(named)[0]  # type: ignore[index]
    name = named[: len(named) - len(selectors)]
    rows = [row for row in summary["steps"] if row["name"] == name]
    if field is None or not rows:
        raise _unknown(summary, path)
    exact = [row for row in rows if row["path"] == named]
    chosen = exact if len(exact) == 1 else _select(rows, _INDEX.findall(selectors), path)
    many = any(":" in index or "*" in index for index in _INDEX.findall(selectors))
    values = [
        _fraction(row["attribution"], field.removeprefix("attribution."), path)
        if field.startswith("attribution.")
        else row[field]
        for row in chosen
    ]
    if wanted is None:
        if many or len(values) != 1:
            same = len({row["path"] for row in chosen}) < len(chosen)
            remedy = "give the steps names of their own" if same else "name one of them"
            raise InputError(
                [
                    Problem(
                        f"names {len(values)} steps ({', '.join(row['path'] for row in chosen[:3])}"
                        f"{', ...' if len(chosen) > 3 else ''}): end it in a statistic or {remedy}",
                        path=path,
                        legal=", ".join(STATISTICS),
                        nearest=f"{path}.mean",
                    )
                ]
            )
        return values[0]
    if any(isinstance(value, str) for value in values):
        raise InputError(
            [
                Problem(
                    f"{field} is text, it has no {wanted}", path=path, legal="one step, without a statistic"
                )
            ]
        )
    return statistic([value for value in values if value is not None], wanted)


def _split_field(rest: str) -> tuple[str, str | None, str | None]:
    """`blur[1:3].duration_ns.mean` -> its three parts; the field is None when it is no field of a step."""
    parts = rest.split(".")
    wanted = parts.pop() if len(parts) > 2 and parts[-1] in STATISTICS else None
    if len(parts) > 2 and parts[-2] == "attribution" and parts[-1] in KINDS:
        return ".".join(parts[:-2]), f"attribution.{parts[-1]}", wanted
    if len(parts) > 1 and parts[-1] in STEP_FIELDS:
        return ".".join(parts[:-1]), parts[-1], wanted
    return rest, None, wanted


def _select(rows: list[Any], selectors: list[str], path: str) -> list[Any]:
    depth = max(len(indices_of(row["path"])) for row in rows)
    while len(selectors) > depth and selectors[-1].strip() == "*":  # all of the one that there is
        selectors = selectors[:-1]
    if len(selectors) > depth:
        raise InputError(
            [
                Problem(
                    f"has {len(selectors)} indices, the step has {depth}", path=path, legal=_range_text(rows)
                )
            ]
        )
    chosen = rows
    for level, selector in enumerate(selectors):
        if selector.strip() == "*":  # also those outside the loop, which have no index at this level
            continue
        there = sorted(
            {indices_of(row["path"])[level] for row in rows if len(indices_of(row["path"])) > level}
        )
        wanted = _indices(selector, there, path)
        chosen = [row for row in chosen if indices_of(row["path"])[level : level + 1] in wanted]
    if not chosen:
        raise InputError([Problem("selects no step", path=path, legal=_range_text(rows))])
    return chosen


def _indices(selector: str, there: list[int], path: str) -> set[tuple[int]]:
    length = there[-1] + 1
    try:
        if ":" in selector:
            bounds = [int(part) if part.strip() else None for part in selector.split(":")]
            found: Sequence[int] = range(length)[slice(*bounds)]
        else:
            index = int(selector)
            found = [index + length if index < 0 else index]
    except (ValueError, TypeError):
        legal = "[3], [-1], [1:100], [::2] or [*]"
        raise InputError([Problem("is not an index", path=path, read=f"[{selector}]", legal=legal)]) from None
    return {(index,) for index in found}


def _range_text(rows: list[Any]) -> str:
    return f"{rows[0]['path']} to {rows[-1]['path']}" if len(rows) > 1 else str(rows[0]["path"])


def _fraction(parts: Mapping[str, float] | None, kind: str, path: str) -> float:
    if parts is None:
        raise InputError(
            [Problem("was not recorded", path=path, legal="a run with --record summary or spans")]
        )
    return parts.get(kind, 0.0)


def _descend(node: Any, rest: str) -> Any:
    """Follow dotted keys through nested objects, keys with dots in them included; {} when lost."""
    if not isinstance(node, Mapping):
        return node if not rest else {}
    for key in sorted(node, key=len, reverse=True):
        if rest == key:
            return node[key]
        if rest.startswith(f"{key}."):
            found = _descend(node[key], rest[len(key) + 1 :])
            if not isinstance(found, Mapping):
                return found
    return {}


def _leaves(node: Mapping[str, Any]) -> Iterator[str]:
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from (f"{key}.{leaf}" for leaf in _leaves(value))
        elif not isinstance(value, list | tuple):
            yield key


def _unknown(summary: Mapping[str, Any], path: str) -> InputError:
    known = list(names(summary))
    root = path.partition(".")[0]
    plain = re.sub(r"\[[^\[\]]*\]", "", path)
    pool = {re.sub(r"\[[^\[\]]*\]", "", name) if root == "steps" else name: name for name in reversed(known)}
    near = difflib.get_close_matches(plain if root == "steps" else path, pool, 1, 0.6)
    roots = sorted({name.partition(".")[0] for name in known} | {"steps"})
    legal = None if near else "a path that begins with " + ", ".join(roots)
    return InputError(
        [
            Problem(
                "this result has no such metric",
                path=path,
                nearest=pool[near[0]] if near else None,
                legal=legal,
            )
        ]
    )
