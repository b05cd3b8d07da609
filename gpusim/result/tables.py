"""DataFrames of a run: picoseconds become nanoseconds, words become categories, what is too big is binned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpusim.kinds import Kind
from gpusim.quantity import MIB
from gpusim.result.numbers import bandwidth
from gpusim.result.schema import TABLES, kind_column
from gpusim.rundata import RunData

if TYPE_CHECKING:
    import pandas as pd

TABLE_LIMIT_BYTES = 64 * MIB
_TIME_BINS = 256
_DURATION_BINS_PER_DECADE = 32  # a bin of durations spans 7 %: percentiles of a binned table are that good

_NO_IO: dict[str, list[Any]] = {
    name: [] for name in ("process", "path", "direction", "start_ps", "end_ps", "bytes", "count")
}

Make = Callable[[], "pd.DataFrame"]


class Tables(Mapping[str, "pd.DataFrame"]):
    """Tables by name, each made when it is first asked for."""

    def __init__(self, makers: Mapping[str, Make]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"Tables({', '.join(self)})"

    def _repr_html_(self) -> str:
        from gpusim.result.display import tables_html

        made = self._made
        return tables_html({name: len(made[name]) if name in made else None for name in self})


def build(data: RunData, *, limit_bytes: int = TABLE_LIMIT_BYTES) -> Tables:
    """The tables of a run. Those that the run did not record are absent."""
    makers: dict[str, Make] = {"steps": lambda: _steps(data)}
    for name, duration in (("faults", "latency_ns"), ("migrations", None)):
        if name in data.tables:
            makers[name] = _events(name, data.tables[name], duration, limit_bytes)
    makers["io"] = _events("io", data.tables.get("io") or _NO_IO, None, limit_bytes)
    makers["links"] = lambda: _links(data)
    if "kfd_events" in data.tables:
        makers["kfd_events"] = lambda: _frame("kfd_events", _to_ns(data.tables["kfd_events"]))
    if "spans" in data.tables:
        makers["spans"] = lambda: _spans(data)
    makers["parameters"] = lambda: _parameters(data)
    return Tables(makers)


def _frame(name: str, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Columns in the order of the schema with their types; a kind that never occurred has no column."""
    import pandas as pd

    known = {column.name: column for column in TABLES[name]}
    pieces = {kind_column(kind) for kind in Kind}
    unknown = set(columns) - set(known)
    if unknown:
        raise ValueError(f"table {name} has columns that its schema does not: {', '.join(sorted(unknown))}")
    made = {}
    for column in TABLES[name]:
        if column.name not in columns:
            if column.name not in pieces:
                raise ValueError(f"table {name} lacks the column {column.name}")
            continue
        made[column.name] = pd.Series(columns[column.name], dtype=_DTYPES[column.type])
    return pd.DataFrame(made)


_DTYPES: dict[str, Any] = {
    "text": "str",
    "category": "category",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool",
}


def _to_ns(columns: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    return {
        (f"{name[:-3]}_ns" if name.endswith("_ps") else name): (
            np.asarray(values, dtype=np.float64) / 1000 if name.endswith("_ps") else values
        )
        for name, values in columns.items()
    }


def _events(name: str, columns: Mapping[str, Any], duration: str | None, limit_bytes: int) -> Make:
    def make() -> pd.DataFrame:
        import numpy as np

        kept = {key: values for key, values in columns.items() if key != "reason"}
        rows = len(next(iter(kept.values())))
        counted = {"count": np.ones(rows, dtype=np.int64)} if "count" not in kept else {}
        frame = _frame(name, _to_ns(kept) | counted)
        if int(frame.memory_usage(index=False).sum()) <= limit_bytes:
            return frame
        took = frame[duration] if duration else frame["end_ns"] - frame["start_ns"]
        return _binned(frame, frame["replayed_ns" if name == "faults" else "end_ns"], took)

    return make


def _binned(frame: pd.DataFrame, when: pd.Series[float], took: pd.Series[float]) -> pd.DataFrame:
    """One row per (text columns, bin of time, bin of duration): means of numbers, the lowest address, the
    count.

    Binning durations too keeps percentiles, and means keep the pieces of a latency tiling it.
    """
    import numpy as np

    words = [name for name, dtype in frame.dtypes.items() if str(dtype) in ("category", "bool", "str")]
    width = max(float(when.max()), 1.0) / _TIME_BINS
    keys = [frame[name] for name in words]
    keys.append((when // width).astype("int64").rename("when"))
    logs = np.log10(took.clip(lower=1.0)) * _DURATION_BINS_PER_DECADE
    keys.append(np.floor(logs).astype("int64").rename("took"))
    groups = frame.groupby(keys, observed=True, sort=True)
    how = {
        name: "sum" if name == "count" else "min" if name == "page" else "mean"
        for name in frame.columns
        if name not in words
    }
    binned = groups.agg(how).reset_index().drop(columns=["when", "took"])
    return binned[list(frame.columns)]


def _steps(data: RunData) -> pd.DataFrame:
    steps = data.steps
    columns: dict[str, Any] = {
        "path": [step.path.removeprefix("steps.") for step in steps],
        "name": [step.name for step in steps],
        "process": [step.process for step in steps],
        "thread": [step.thread for step in steps],
        "kind": [step.kind for step in steps],
        "stream": [step.stream for step in steps],
        "start_ns": [step.start_ps / 1000 for step in steps],
        "end_ns": [step.end_ps / 1000 for step in steps],
        "duration_ns": [(step.end_ps - step.start_ps) / 1000 for step in steps],
        "bytes": [step.bytes for step in steps],
        "bandwidth_gb_per_s": [bandwidth(step.bytes, step.end_ps - step.start_ps) for step in steps],
        "detail": [json.dumps(dict(step.detail), default=str, sort_keys=True) for step in steps],
    }
    for kind in Kind:
        parts = [None if step.attribution is None else step.attribution.get(kind, 0) / 1000 for step in steps]
        if any(parts):
            columns[kind_column(kind)] = parts
    return _frame("steps", columns)


def _links(data: RunData) -> pd.DataFrame:
    """Every resource bin by bin; the last bin is cut where the run ends, so that full use reads as 1."""
    import numpy as np

    parts: dict[str, list[Any]] = {column.name: [] for column in TABLES["links"]}
    for use in data.uses:
        # Python's integers up to the division: the end of the last bin may lie beyond 64 bits of picoseconds
        count = min(len(use.busy_ps_per_bin), -(-data.makespan_ps // max(use.bin_ps, 1)))
        bounds = [min(index * use.bin_ps, data.makespan_ps) for index in range(count + 1)]
        starts = np.asarray(bounds[:-1], dtype=np.float64)
        ends = np.asarray(bounds[1:], dtype=np.float64)
        width = np.asarray([end - start for start, end in pairwise(bounds)], dtype=np.float64)
        busy = np.asarray(use.busy_ps_per_bin[:count], dtype=np.float64)
        moved = np.asarray(use.bytes_per_bin[:count], dtype=np.int64)
        capacity = np.nan if use.capacity_bytes_per_s is None else use.capacity_bytes_per_s / 1e9
        values: dict[str, Any] = {
            "name": [use.name] * len(starts),
            "group": [use.group] * len(starts),
            "start_ns": starts / 1000,
            "end_ns": ends / 1000,
            "bytes": moved,
            "busy_ns": busy / 1000,
            "busy_fraction": busy / width,
            "bandwidth_gb_per_s": moved * 1000.0 / width,
            "capacity_gb_per_s": np.full(len(starts), capacity),
        }
        for name, column in values.items():
            parts[name].extend(column)
    return _frame("links", parts)


def _spans(data: RunData) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    spans = data.tables["spans"]
    actors = [str(name) for name in data.tables["actors"]["name"]]
    # several actors of a name, such as the calls of a thread pool, are one in the table
    codes, names = pd.factorize(np.asarray(actors, dtype=object))
    who = pd.Categorical.from_codes(
        codes[np.asarray(spans["who"], dtype=np.int64)], categories=pd.Index([str(name) for name in names])
    )
    kinds = [kind.name.lower() for kind in Kind]
    kind = pd.Categorical.from_codes(np.asarray(spans["kind"], dtype=np.int64), categories=pd.Index(kinds))
    rest = {name: values for name, values in spans.items() if name not in ("who", "kind")}
    return _frame("spans", {"who": who, "kind": kind} | _to_ns(rest))


def _parameters(data: RunData) -> pd.DataFrame:
    rows = data.parameters
    return _frame(
        "parameters",
        {
            "path": [row.path for row in rows],
            "value": [row.text for row in rows],
            "source": [row.source for row in rows],
            "grade": [row.grade for row in rows],
            "low": [None if row.range is None else str(row.range[0]) for row in rows],
            "high": [None if row.range is None else str(row.range[1]) for row in rows],
        },
    )
