"""Who moved data over time: file requests by process and path, migrations, and copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from gpusim.result.result import Result

BINS = 24


def movers(result: Result, bins: int = BINS) -> pd.DataFrame:
    """Bytes that each mover has moved in each of `bins` equal parts of the run.

    Columns: mover (`app fastpath read`, `app migration to gpu[0]`, `app memcpy`), start_ns and end_ns of the part,
    bytes, and share, which is that of all that was moved then. The bytes of a request, a migration or a copy are
    spread evenly over its life. Empty where nothing moved.
    """
    import numpy as np
    import pandas as pd

    parts = [_requests(result), _migrations(result), _copies(result)]
    rows = pd.concat([part for part in parts if len(part)] or [parts[0]], ignore_index=True)
    edges = np.linspace(0.0, float(result.summary["makespan_ns"]), bins + 1)
    found: list[dict[str, Any]] = []
    for mover, own in rows.groupby("mover", sort=False):
        start = own["start_ns"].to_numpy(dtype=np.float64)[:, None]
        length = np.maximum(own["end_ns"].to_numpy(dtype=np.float64)[:, None] - start, 1e-3)
        done = np.clip((edges[None, :] - start) / length, 0.0, 1.0)
        moved = np.diff((own["bytes"].to_numpy(dtype=np.float64)[:, None] * done).sum(axis=0))
        found += [
            {"mover": str(mover), "start_ns": edges[i], "end_ns": edges[i + 1], "bytes": moved[i]}
            for i in range(bins)
        ]
    made = pd.DataFrame(found, columns=["mover", "start_ns", "end_ns", "bytes"])
    whole = made.groupby("start_ns")["bytes"].transform("sum")
    made["share"] = (made["bytes"] / whole.where(whole > 0)).fillna(0.0)
    return made


def _requests(result: Result) -> pd.DataFrame:
    table = result.tables["io"]
    mover = (
        table["process"].astype(str) + " " + table["path"].astype(str) + " " + table["direction"].astype(str)
    )
    return _rows(mover, table, table["bytes"] * table["count"])


def _migrations(result: Result) -> pd.DataFrame:
    table = result.tables["migrations"]
    mover = table["process"].astype(str) + " migration to " + table["to"].astype(str)
    return _rows(mover, table, table["bytes"] * table["count"])


def _copies(result: Result) -> pd.DataFrame:
    table = result.tables["steps"]
    table = table[table["kind"].astype(str).str.startswith("memcpy")]
    return _rows(table["process"].astype(str) + " memcpy", table, table["bytes"])


def _rows(mover: pd.Series[Any], table: pd.DataFrame, size: pd.Series[Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {"mover": mover, "start_ns": table["start_ns"], "end_ns": table["end_ns"], "bytes": size}
    )
