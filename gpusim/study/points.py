"""The columns of a sweep's table: named as `Result.metric` takes them, one row per run.

| columns | what |
|---|---|
| the swept paths | the values of the point |
| `replication`, `seed` | which repetition, and its seed |
| `outcome`, `makespan_ns` | how it ended, when |
| `answer.metric`, `answer.value` | what the run's answer is about, and its value; none where that is a word |
| `steps.NAME.duration_ns`, `.bandwidth_gb_per_s` | of a step that ran once |
| `steps.NAME[0].duration_ns`, `steps.NAME[*].duration_ns.mean`, ... | of one that ran more often |
| `faults.*`, `faults.latency_ns.*`, `migrations.*.bytes`, `migrations.*.count` | counters |
| `links.*.busy_fraction`, `links.*.bytes` | use of links |
| `attribution.KIND` | fractions of the makespan; 0 for a kind that did not occur |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.kinds import Kind
from gpusim.result.paths import indices_of, statistic
from gpusim.rundata import FAULT_COUNTERS

if TYPE_CHECKING:
    import pandas as pd

_MEASURES = ("duration_ns", "bandwidth_gb_per_s")


def row(
    values: Sequence[tuple[str, Any]], replication: int, seed: int, summary: Mapping[str, Any]
) -> dict[str, Any]:
    """One run as a flat mapping from metric to value."""
    made: dict[str, Any] = dict(values)
    made |= {"replication": replication, "seed": seed}
    made |= {"outcome": summary["outcome"], "makespan_ns": summary["makespan_ns"]}
    value = summary["answer"]["value"]
    made |= {
        "answer.metric": summary["answer"]["metric"],
        "answer.value": None if isinstance(value, str) else value,
    }
    made |= _steps(summary["steps"])
    faults = summary["faults"]
    made |= {f"faults.{name}": faults[name] for name in ("raised", *FAULT_COUNTERS) if name in faults}
    latency = faults["latency_ns"] or {}
    made |= {f"faults.latency_ns.{name}": value for name, value in latency.items() if name != "count"}
    for direction, total in summary["migrations"].items():
        made |= {f"migrations.{direction}.{name}": total[name] for name in ("count", "bytes")}
    for name, use in summary["links"].items():
        made |= {f"links.{name}.{field}": use[field] for field in ("bytes", "busy_fraction")}
    if summary["attribution"] is not None:
        made |= {f"attribution.{kind}": part for kind, part in summary["attribution"].items()}
    return made


def _steps(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for step in steps:
        by_name.setdefault(step["name"], []).append(step)
    for name, rows in by_name.items():
        if len(rows) == 1:
            made |= {f"steps.{name}.{measure}": rows[0][measure] for measure in _MEASURES}
            continue
        groups: dict[str, list[Mapping[str, Any]]] = {}
        first = min((indices[:1] for step in rows if (indices := indices_of(step["path"]))), default=None)
        if first is not None:  # steps of one name outside any loop have no index
            chosen = [step for step in rows if indices_of(step["path"])[:1] == first]
            groups[f"{name}[{first[0]}]"] = chosen
        groups[f"{name}[*]"] = rows
        for label, chosen in groups.items():
            for measure in _MEASURES:
                found = [step[measure] for step in chosen if step[measure] is not None]
                if len(chosen) == 1:
                    made[f"steps.{label}.{measure}"] = chosen[0][measure]
                    continue
                for name_of in ("mean", "min", "max"):
                    made[f"steps.{label}.{measure}.{name_of}"] = statistic(found, name_of)
    return made


def table(rows: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> pd.DataFrame:
    """The rows as a table whose columns and types do not depend on anything but the rows."""
    import pandas as pd

    kinds = [f"attribution.{kind.name.lower()}" for kind in Kind]
    seen = dict.fromkeys(name for one in rows for name in one)
    names = [name for name in seen if name not in kinds] + [name for name in kinds if name in seen]
    columns: dict[str, pd.Series[Any]] = {}
    for name in names:
        recorded = [one.get(name) for one in rows]
        if name in kinds:  # of a run with a breakdown, a kind that is not there did not occur
            recorded = [
                0.0 if value is None and any(kind in one for kind in kinds) else value
                for value, one in zip(recorded, rows, strict=True)
            ]
        columns[name] = _column(recorded, axis=name in axes)
    return pd.DataFrame(columns)


def _column(values: list[Any], *, axis: bool) -> pd.Series[Any]:
    import pandas as pd

    types = {type(value) for value in values if value is not None}
    if axis and len(types) > 1 and not types <= {int, float}:
        return pd.Series([str(value) for value in values], dtype="str")
    if types == {str}:
        return pd.Series(values, dtype="str")
    if types == {bool}:
        return pd.Series(values, dtype="bool" if None not in values else "boolean")
    if types == {int} and None not in values:
        return pd.Series(values, dtype="int64")
    return pd.Series(values, dtype="float64")
