"""Two runs side by side: by what kinds of work they differ, whether that is more than chance, and since when.

The difference of the critical paths by kind sums to the difference of the makespans. With replications each of the two
scenarios runs with the same seeds, so that chance which both share cancels out: a difference counts as significant
where its 95 % confidence interval (paired, Student's t) leaves out zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import inf
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, Problem
from gpusim.kinds import Kind
from gpusim.result import text
from gpusim.result.display import listed
from gpusim.result.shares import label
from gpusim.scenario.export import resolved
from gpusim.study.paired import half_width
from gpusim.study.runs import Progress, simulated

if TYPE_CHECKING:
    from gpusim.result import Result
    from gpusim.scenario.schema import Scenario

_BREADTH = 60  # characters of a value that are shown


@dataclass(frozen=True, slots=True)
class Delta:
    """What one kind costs in both, in nanoseconds of the critical path (means over replications).

    `half_width_ns` is that of the 95 % interval of the difference; None with one run of each.
    """

    name: str
    a_ns: float
    b_ns: float
    half_width_ns: float | None

    @property
    def difference_ns(self) -> float:
        """B less A."""
        return self.b_ns - self.a_ns

    @property
    def significant(self) -> bool | None:
        """More than chance? None with one run of each."""
        if self.half_width_ns is None:
            return None
        return abs(self.difference_ns) > self.half_width_ns


@dataclass(frozen=True, slots=True)
class Change:
    """A value of the scenario that differs; None where one of them has no such key."""

    path: str
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class Parting:
    """The first time at which the two do not do the same: what is on record of both from there on."""

    at_ns: float
    table: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`whole` is the makespan; `kinds` the largest difference first."""

    a: Result
    b: Result
    runs: int
    whole: Delta
    kinds: tuple[Delta, ...]
    changes: tuple[Change, ...]
    parting: Parting | None

    def _repr_html_(self) -> str:
        kinds = [
            (
                "sum" if delta is self.whole else label(delta.name),
                *(text.time(ns) for ns in (delta.a_ns, delta.b_ns)),
                f"{'-' if delta.difference_ns < 0 else '+'}{text.time(abs(delta.difference_ns))}",
                {None: "–", True: "significant", False: "within chance"}[delta.significant],
            )
            for delta in (*self.kinds, self.whole)
        ]
        parts = [listed(("critical path", "A", "B", "difference", ""), kinds)]
        if self.changes:
            changes = [
                tuple(escape(value or "–") for value in (one.path, one.a, one.b)) for one in self.changes
            ]
            parts.append(listed(("scenario", "A", "B"), changes))
        where = self.parting
        parts.append(
            "<p>Both do the same to the end.</p>"
            if where is None
            else f"<p>They part at {text.time(where.at_ns)}, in {where.table}: "
            f"{escape(where.a)} / {escape(where.b)}</p>"
        )
        return "".join(parts)


def compare(a: Result, b: Result, *, replications: int = 1, progress: Progress | None = None) -> Comparison:
    """Compare two results. More replications are simulated with the seeds that follow those of the results.

    Raises InputError where a run has no breakdown.
    """
    for result in (a, b):
        if result.summary["attribution"] is None:
            problem = Problem(
                f"the run of {result.summary['scenario']} was not recorded, so its time has no breakdown",
                legal="run it with --record summary or spans",
            )
            raise InputError([problem])
    pairs = [(_spent(a), _spent(b))]
    for replication in range(1, replications):
        first, second = (
            simulated(_reseeded(result.scenario, replication), progress=progress) for result in (a, b)
        )
        pairs.append((_spent(first), _spent(second)))
    whole = _delta("makespan", [(sum(one.values()), sum(other.values())) for one, other in pairs])
    names = [kind.name.lower() for kind in Kind]
    kinds = [
        _delta(name, [(one.get(name, 0.0), other.get(name, 0.0)) for one, other in pairs])
        for name in names
        if any(name in one or name in other for one, other in pairs)
    ]
    kinds.sort(key=lambda delta: -abs(delta.difference_ns))
    return Comparison(
        a, b, len(pairs), whole, tuple(kinds), tuple(changes(a.scenario, b.scenario)), parting(a, b)
    )


def _reseeded(scenario: Scenario, replication: int) -> Scenario:
    return scenario.with_(seed=scenario.seed + replication)


def _spent(result: Result) -> dict[str, float]:
    whole = result.summary["makespan_ns"]
    return {kind: round(part * whole, 3) for kind, part in (result.summary["attribution"] or {}).items()}


def _delta(name: str, pairs: Sequence[tuple[float, float]]) -> Delta:
    a, b = (sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
    return Delta(name, a, b, half_width([second - first for first, second in pairs]))


# -- what in the scenario differs --------------------------------------------------------------------------------------


def changes(a: Scenario, b: Scenario) -> list[Change]:
    """Values that differ, by path: of the scenarios with everything resolved, and of the machines that they name."""
    from gpusim.scenario.resolve import resolve

    found = _differing(_leaves(resolved(a)), _leaves(resolved(b)))
    one, other = (
        {path: parameter.text for path, parameter in resolve(scenario).parameters.items()}
        for scenario in (a, b)
    )
    return found + _differing(one, other)


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[Change]:
    paths = [*one, *(path for path in other if path not in one)]
    return [
        Change(path, one.get(path), other.get(path)) for path in paths if one.get(path) != other.get(path)
    ]


def _leaves(tree: Any, path: str = "") -> dict[str, str]:
    """Dotted path -> value; members of lists go by their name where they have one."""
    if isinstance(tree, Mapping):
        items = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list) and any(isinstance(member, Mapping) for member in tree):
        items = [
            (str(member["name"]) if isinstance(member, Mapping) and "name" in member else str(number), member)
            for number, member in enumerate(tree)
        ]
    else:
        words = str(tree)
        return {path: words if len(words) <= _BREADTH else words[: _BREADTH - 1] + "…"}
    found: dict[str, str] = {}
    for key, value in items:
        found |= _leaves(value, f"{path}.{key}" if path else key)
    return found


# -- where they part ---------------------------------------------------------------------------------------------------

#: tables by which two runs are told apart: the time of a row, and what has to be the same
_EVENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("spans", "start_ns", ("who", "kind", "start_ns", "end_ns")),
    ("steps", "start_ns", ("name", "start_ns", "end_ns")),
    ("faults", "raised_ns", ("process", "page", "raised_ns", "mapped_ns")),
    ("migrations", "start_ns", ("process", "trigger", "page", "start_ns", "end_ns")),
    ("io", "start_ns", ("process", "path", "start_ns", "end_ns")),
)


def parting(a: Result, b: Result) -> Parting | None:
    """The first difference in what both have on record; None if they do the same to the end."""
    found = [
        parting
        for table, when, columns in _EVENTS
        if table in a.tables and table in b.tables
        for parting in [_first_difference(a.tables[table], b.tables[table], table, when, columns)]
        if parting is not None
    ]
    return min(found, key=lambda parting: parting.at_ns, default=None)


def _first_difference(a: Any, b: Any, table: str, when: str, columns: tuple[str, ...]) -> Parting | None:
    """Rows in order of time; where one of the two ends first, the next row of the other is the difference.

    A step or span that begins at the same time and lasts longer makes a difference when the shorter of the two ends.
    """
    import numpy as np

    one, other = (
        frame.sort_values([when, *columns], kind="stable").reset_index(drop=True) for frame in (a, b)
    )
    common = min(len(one), len(other))
    same = np.ones(common, dtype=bool)
    for name in columns:
        left, right = one[name].iloc[:common], other[name].iloc[:common]
        if name.endswith("_ns"):
            same &= np.abs(left.to_numpy() - right.to_numpy()) < 1e-3
        else:
            same &= left.astype(str).to_numpy() == right.astype(str).to_numpy()
    differing = np.flatnonzero(~same)
    if not len(differing):
        if len(one) == len(other):
            return None
        at = common
    else:
        at = int(differing[0])
    left_row, right_row = (frame.iloc[at] if at < len(frame) else None for frame in (one, other))
    found = [row for row in (left_row, right_row) if row is not None]
    time = min((float(row[when]) for row in found), default=inf)
    if len(found) == 2 and all(str(found[0][name]) == str(found[1][name]) for name in columns[:-1]):
        time = min(float(row[columns[-1]]) for row in found)
    return Parting(time, table, _words(left_row, columns), _words(right_row, columns))


def _words(row: Any, columns: tuple[str, ...]) -> str:
    if row is None:
        return "nothing more"
    from gpusim.result import text

    return ", ".join(
        f"{name.removesuffix('_ns')} {text.time(float(row[name]))}"
        if name.endswith("_ns")
        else str(row[name])
        for name in columns
    )
