"""What limits a run: for each resource its part of the critical path, its use and its ceiling; and phase by phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpusim.kinds import Kind

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from gpusim.result import Result
    from gpusim.study.spans import Spans

_PHASES = 128  # equal pieces of the run; neighbours that are spent alike become one phase
_LEAST_PHASE = 0.01
_LEAST_USE = 0.005  # what is used less is not named

#: kinds that move data: what the names of the resources that they use end in
MOVERS: Mapping[Kind, tuple[str, ...]] = {
    Kind.HBM: (".hbm",),
    Kind.ZERO_COPY_LINK: (".h2d", ".d2h"),
    Kind.SDMA_COPY: (".h2d", ".d2h"),
    Kind.BO_CLEAR: (".sdma",),
    Kind.HOST_MEMORY: ("host.memory",),
    Kind.PAGE_CACHE: ("host.page_cache",),
    Kind.DRIVE: (".read", ".write"),
    Kind.WRITEBACK: (".write",),
}


#: kinds that somebody spends while he holds a resource for himself
HOLDERS: Mapping[Kind, tuple[str, ...]] = {
    Kind.IO_PIN: (".pin_lock",),
    Kind.HOST_FUNCTION: (".host_functions",),
}
#: kinds that somebody spends in wait for one
WAITED_FOR: Mapping[Kind, tuple[str, ...]] = {
    Kind.FAULT_QUEUE: (".fault_worker",),
    Kind.LOCK_WAIT: (".svms",),
    Kind.IO_LOCK: (".pin_lock",),
    Kind.HOST_FUNCTION: (".host_functions",),
}


#: kinds of which nobody knows how long they would have taken alone: what a flush waits for was written by anybody
UNTOLD = (Kind.WRITEBACK,)


@dataclass(frozen=True, slots=True)
class Limit:
    """One resource. Fractions of the makespan but `ceiling`: bytes moved over what it could have moved meanwhile.

    `queueing` is time that spans waited for others there, over the makespan: how many waited at a time, in the mean.
    Nobody knows that of a drive that somebody flushes, since what it writes then is anybody's; and without spans nobody
    knows it at all, nor what a resource has of the path.
    """

    name: str
    group: str
    path: float | None
    use: float
    peak: float
    ceiling: float | None
    queueing: float | None


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the run: the kind that most of its critical path is spent on, and the resource used most."""

    start_ns: float
    end_ns: float
    kind: Kind
    share: float
    resource: str
    use: float


class Use:
    """How long a resource was busy up to a time."""

    def __init__(self, part: pd.DataFrame) -> None:
        import numpy as np

        self.at = np.concatenate(([0.0], part["end_ns"].to_numpy()))
        self.busy = np.concatenate(([0.0], np.cumsum(part["busy_ns"].to_numpy())))

    def of(self, start: Any, end: Any) -> NDArray[np.float64]:
        """The fraction of each interval."""
        import numpy as np

        between = np.interp(end, self.at, self.busy) - np.interp(start, self.at, self.busy)
        made: NDArray[np.float64] = between / np.maximum(end - start, 1e-3)
        return made


def limits(result: Result, spans: Spans | None) -> list[Limit]:
    """Every resource that was used or lies on the path, the one with the largest part of the path first."""
    import numpy as np

    table = result.tables["links"]
    makespan = max(result.summary["makespan_ns"], 1e-3)
    parts = {str(name): part for name, part in table.groupby("name", observed=True, sort=True)}
    on_path: dict[str, float] = {}
    waited: dict[str, float] = {}
    untold: set[str] = set()
    if spans is not None:
        uses = {name: Use(part) for name, part in parts.items()}
        on_path = _charged(spans, uses, spans.rows[spans.path])
        waited = _charged(spans, uses, spans.rows, waiting=True)
        untold = _untold(spans, uses)
    found = []
    for name, part in parts.items():
        busy = float(part["busy_ns"].sum())
        if not busy and not on_path.get(name):
            continue
        capacity = float(part["capacity_gb_per_s"].iloc[0])
        moved = float(part["bytes"].sum())
        found.append(
            Limit(
                name=name,
                group=str(part["group"].iloc[0]),
                path=None if spans is None else on_path.get(name, 0.0) / makespan,
                use=busy / makespan,
                peak=float(part["busy_fraction"].max()),
                ceiling=None if np.isnan(capacity) or not moved else moved / (capacity * makespan),
                queueing=None if spans is None or name in untold else waited.get(name, 0.0) / makespan,
            )
        )
    return sorted(found, key=lambda limit: (-(limit.path or 0.0), -limit.use, limit.name))


def _charged(
    spans: Spans, uses: Mapping[str, Use], rows: NDArray[Any], *, waiting: bool = False
) -> dict[str, float]:
    """Nanoseconds of spans by resource: what a worker does is its own, data belong to what was used most meanwhile."""
    import numpy as np

    start, end = rows["start_ps"] / 1000, rows["end_ps"] / 1000
    length = end - start
    if waiting:
        length = np.maximum(length - rows["alone_ps"] / 1000, 0.0)
    charged = dict.fromkeys(uses, 0.0)
    for number, actor in enumerate(spans.actors):
        if actor in uses:
            charged[actor] += float(length[rows["who"] == number].sum())
    for kind, ends in (*MOVERS.items(), *(WAITED_FOR if waiting else HOLDERS).items()):
        chosen = rows["kind"] == kind
        for name, mine in _users(uses, ends, start[chosen], end[chosen]):
            charged[name] += float(length[chosen][mine].sum())
    return charged


def _users(
    uses: Mapping[str, Use], ends: tuple[str, ...], start: NDArray[Any], end: NDArray[Any]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Resources by the ends of their names, each with those spans during which it was used most."""
    import numpy as np

    names = [name for name in uses if name.endswith(ends)]
    if names and len(start):
        most = np.stack([uses[name].of(start, end) for name in names]).argmax(axis=0)
        for number, name in enumerate(names):
            yield name, most == number


def _untold(spans: Spans, uses: Mapping[str, Use]) -> set[str]:
    """Resources of which nobody knows who waited there."""
    rows = spans.rows
    found: set[str] = set()
    for kind in UNTOLD:
        chosen = rows[rows["kind"] == kind]
        users = _users(uses, MOVERS[kind], chosen["start_ps"] / 1000, chosen["end_ps"] / 1000)
        found.update(name for name, mine in users if mine.any())
    return found


def phases(result: Result, spans: Spans) -> list[Phase]:
    """The run from start to end."""
    import numpy as np

    makespan = spans.makespan_ps
    if not makespan:
        return []
    rows = spans.rows[spans.path]
    bounds = np.linspace(0, makespan, min(_PHASES, makespan) + 1)
    spent = np.zeros((len(Kind), len(bounds) - 1))
    for kind in np.unique(rows["kind"]).tolist():
        chosen = rows["kind"] == kind
        at = np.concatenate(([0], rows["start_ps"][chosen], rows["end_ps"][chosen]))
        steps = np.concatenate(([0], np.ones(chosen.sum()), -np.ones(chosen.sum())))
        order = np.argsort(at, kind="stable")
        at, level = at[order], np.cumsum(steps[order])
        total = np.concatenate(([0.0], np.cumsum(np.diff(at) * level[:-1])))
        spent[kind] = np.diff(np.interp(bounds, at, total))
    mostly = spent.argmax(axis=0)
    cuts = [0, *(np.flatnonzero(np.diff(mostly)) + 1).tolist(), len(mostly)]
    uses = {str(name): Use(part) for name, part in result.tables["links"].groupby("name", observed=True)}
    found: list[Phase] = []
    for first, last in _merged(cuts, len(mostly)):
        sums = spent[:, first:last].sum(axis=1)
        kind = Kind(int(sums.argmax()))
        start, end = float(bounds[first]) / 1000, float(bounds[last]) / 1000
        used = {name: float(use.of(start, end)) for name, use in uses.items()}
        name = max(used, key=lambda name: used[name], default="")
        if used.get(name, 0.0) < _LEAST_USE:
            name = ""
        share = float(sums[kind] / max(sums.sum(), 1.0))
        phase = Phase(start, end, kind, share, name, used.get(name, 0.0))
        before = found[-1] if found else None
        if before is not None and (before.kind, before.resource) == (kind, name):
            found[-1] = _joined(before, phase)
        else:
            found.append(phase)
    return found


def _joined(one: Phase, next_: Phase) -> Phase:
    long, more = one.end_ns - one.start_ns, next_.end_ns - next_.start_ns
    share = (one.share * long + next_.share * more) / (long + more)
    use = (one.use * long + next_.use * more) / (long + more)
    return Phase(one.start_ns, next_.end_ns, one.kind, share, one.resource, use)


def _merged(cuts: list[int], total: int) -> list[tuple[int, int]]:
    """Pieces between the cuts; those shorter than a hundredth of the run go with the one before."""
    made: list[tuple[int, int]] = []
    for first, last in pairwise(cuts):
        if made and (last - first) < max(2, _LEAST_PHASE * total):
            made[-1] = (made[-1][0], last)
        else:
            made.append((first, last))
    return made
