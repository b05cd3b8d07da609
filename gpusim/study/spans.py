"""The recorded spans of a result as whole picoseconds, and the critical path through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusim.kinds import Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpusim.result import Result


@dataclass(frozen=True, slots=True)
class Spans:
    """`rows` as `engine.critical` takes them; `path` are indices of those on the critical path, first to last.

    `on_path` is picoseconds by kind, in all `makespan_ps`; `actors[who]` are names.
    """

    rows: NDArray[Any]
    path: NDArray[np.int64]
    on_path: list[int]
    makespan_ps: int
    actors: list[str]


def of(result: Result) -> Spans | None:
    """The spans of a result; None if there are none, or if nobody's path leads to the end of the run."""
    if "spans" not in result.tables:
        return None
    import numpy as np

    from gpusim.engine import critical, record

    frame = result.tables["spans"]
    if frame.empty:
        return None
    codes = np.asarray([Kind[str(name).upper()] for name in frame["kind"].cat.categories], dtype=np.uint16)
    rows = np.empty(len(frame), dtype=record.ROW)
    rows["who"] = frame["who"].cat.codes.to_numpy()
    rows["kind"] = codes[frame["kind"].cat.codes.to_numpy()]
    for name in ("start", "end", "alone"):
        rows[f"{name}_ps"] = np.rint(frame[f"{name}_ns"].to_numpy() * 1000)
    for name in ("cause", "queued_behind", "released_by"):
        rows[name] = frame[name].to_numpy()
    path = critical.path(rows["released_by"])
    on_path = critical.kinds_on(rows, path, len(Kind))
    makespan = round(result.summary["makespan_ns"] * 1000)
    if sum(on_path) != makespan:
        return None
    return Spans(rows, path, on_path, makespan, [str(name) for name in frame["who"].cat.categories])
