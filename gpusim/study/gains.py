"""What would help: how long the run would take if one kind of work took less time.

The prediction times the recorded spans anew: each begins when all that it waited for has ended, so that what was hidden
behind the critical path comes to light. It knows the run as it was: who was served before whom, which requests shared
a link. `resimulated` runs the scenario again on a machine with that change, and so knows better.

What runs at HBM's rate cannot run faster than its own, and what runs at its own rate not faster than HBM allows: the
use of HBM meanwhile says how much that leaves. On several GPUs the busiest counts. In the same way a request to a drive
cannot be faster than the links between; and no run is shorter than the time for which a link is busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusim.kinds import Kind
from gpusim.study.limits import MOVERS, Use

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpusim.engine.critical import Graph
    from gpusim.result import Result
    from gpusim.scenario.schema import Scenario
    from gpusim.study.spans import Spans

#: who waits does nothing that could be faster: what it waits for has a kind of its own
WAITS = frozenset(
    {Kind.FAULT_QUEUE, Kind.LOCK_WAIT, Kind.WAVE_SLOTS, Kind.IO_QUEUE, Kind.IO_LOCK, Kind.WRITEBACK}
)
TWICE = 0.5
FREE = 0.0
_LEAST = 0.005  # of the makespan: what is less on the path is not asked for
_NEARLY_FREE = 1e-3  # a rate cannot be infinite, nor a flow end within a picosecond


@dataclass(frozen=True, slots=True)
class Gain:
    """A kind on the critical path: its share, and the makespan if it were twice as fast, and if it were free."""

    kind: Kind
    share: float
    twice_ns: float
    free_ns: float
    resimulated_ns: float | None = None  # twice as fast


def predicted(result: Result, spans: Spans) -> list[Gain]:
    """The kinds on the path, the one that helps most at double speed first."""
    from gpusim.engine.critical import Graph

    graph = Graph(spans.rows)
    floors = _floors(result, spans)
    least = _Least(result)
    found = []
    for kind in Kind:
        share = spans.on_path[kind] / spans.makespan_ps if spans.makespan_ps else 0.0
        if share < _LEAST or kind in WAITS:
            continue
        paced = (lengths(spans, graph, kind, pace, floors) for pace in (TWICE, FREE))
        twice, free = (
            max(ps / 1000, least.of(kind, pace))
            for ps, pace in zip(graph.makespans(*paced), (TWICE, FREE), strict=True)
        )
        found.append(Gain(kind, share, twice, free))
    return sorted(found, key=lambda gain: (gain.twice_ns, -gain.share))


class _Least:
    """No run is shorter than the time for which one of its links, memories or pin locks is busy.

    Who asks sooner finds a full link as full as before; only what makes the transfers themselves faster helps there.
    """

    def __init__(self, result: Result) -> None:
        self._busy: dict[str, float] = {}
        self._locks: set[str] = set()
        for name, part in result.tables["links"].groupby("name", observed=True, sort=True):
            group, lock = str(part["group"].iloc[0]), str(name)
            if group in ("link", "memory") or (group == "lock" and not lock.endswith(".svms")):
                self._busy[lock] = float(part["busy_ns"].sum())
                if group == "lock":
                    self._locks.add(lock)

    def of(self, kind: Kind, pace: float) -> float:
        """Nanoseconds."""
        moves = MOVERS.get(kind, ())
        return max(
            (
                busy
                * (pace if name.endswith(moves) or (kind is Kind.IO_PIN and name in self._locks) else 1.0)
                for name, busy in self._busy.items()
            ),
            default=0.0,
        )


def lengths(
    spans: Spans, graph: Graph, kind: Kind, pace: float, floors: Mapping[Kind, NDArray[np.float64]]
) -> NDArray[np.int64]:
    """What each span takes by itself if a kind takes `pace` times as long."""
    import numpy as np

    rows, own = spans.rows, graph.lengths
    chosen = rows["kind"] == kind
    if kind is Kind.COMPUTE:
        # whoever lacks slots is as much faster as those who hold them
        chosen |= rows["kind"] == Kind.WAVE_SLOTS
    changed = own * pace
    if kind is Kind.HBM:
        changed = np.maximum(changed, np.minimum(rows["alone_ps"], own))
    elif kind in floors:
        changed = np.maximum(changed, own * np.minimum(floors[kind], 1.0))
    made: NDArray[np.int64] = np.where(chosen, np.rint(changed).astype(np.int64), own)
    return made


def _floors(result: Result, spans: Spans) -> dict[Kind, NDArray[np.float64]]:
    """For each span the share in use meanwhile of what its kind shares with others: the busiest of its sort."""
    import numpy as np

    rows = spans.rows
    start, end = rows["start_ps"] / 1000, rows["end_ps"] / 1000
    shared = (Kind.COMPUTE, Kind.DRIVE, Kind.PAGE_CACHE)
    found = {kind: np.zeros(len(rows)) for kind in shared if spans.on_path[kind]}
    for name, part in result.tables["links"].groupby("name", observed=True, sort=True):
        for kind, most in found.items():
            if _holds_back(kind, str(name), str(part["group"].iloc[0])):
                np.maximum(most, Use(part).of(start, end), out=most)
    return found


def _holds_back(kind: Kind, name: str, group: str) -> bool:
    """Can a resource keep work of a kind from running faster, one that this work shares but is not of its kind?"""
    if kind is Kind.COMPUTE:
        return name.endswith(".hbm")
    if kind is Kind.PAGE_CACHE:
        return name == "host.memory"
    return group in ("link", "memory") and not name.endswith((*MOVERS[kind], ".hbm"))


def resimulated(scenario: Scenario, kind: Kind, pace: float = TWICE) -> float:
    """The makespan in nanoseconds of a run in which a kind takes `pace` times as long."""
    from gpusim.simulation import simulate

    paces: Sequence[float] = [max(pace, _NEARLY_FREE) if other is kind else 1.0 for other in Kind]
    return simulate(scenario, paces=paces).makespan_ps / 1000


def verified(scenario: Scenario, gains: Iterable[Gain]) -> list[Gain]:
    """The same with what simulating says, in the order given."""
    return [
        Gain(gain.kind, gain.share, gain.twice_ns, gain.free_ns, resimulated(scenario, gain.kind))
        for gain in gains
    ]
