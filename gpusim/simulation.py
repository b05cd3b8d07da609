"""One scenario in, what it did out."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from gpusim import native
from gpusim.engine.environment import Progress
from gpusim.engine.record import Mode
from gpusim.machine.build import Machine
from gpusim.machine.harvest import harvest
from gpusim.rundata import RunData
from gpusim.scenario.schema import Scenario

#: the longest simulated time: what an int64 of picoseconds holds, about 104 days
MOST_PS = 9 * 10**18


def simulate(
    scenario: Scenario,
    *,
    record: str = "summary",
    events: bool = False,
    progress: Callable[[Progress], None] | None = None,
    paces: Sequence[float] | None = None,
) -> RunData:
    """Simulate a scenario; with `events` the result has the KFD events as a table.

    `progress` is called about every 0.2 s of wall time. `paces` asks what if: what is spent on kind k takes
    `paces[k]` times as long.

    Raises InputError for what can only be found while it runs (NotSupportedYet among it), never for what the
    simulated program does wrong: that is an outcome.
    """
    begun = perf_counter()
    machine = Machine(scenario, Mode(record), paces, events=events)
    env = machine.env
    shown = Progress()

    def tick() -> None:
        shown.now_ps = env.now
        shown.events = env.events
        shown.faults = len(machine.hardware.fault_log)
        shown.wall_s = perf_counter() - begun
        if progress is not None:
            progress(shown)

    machine.start()
    with _rare_collections():
        limit = min(scenario.limits.simulated_time or MOST_PS, MOST_PS)
        limited = env.run_to(limit, tick if progress is not None else None)
    data = harvest(machine, limited=limited, events=events)
    data.engine |= _engine(machine, perf_counter() - begun)
    return data


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python look for garbage cycles rarely: a run makes few, and each search walks all wavefronts in flight."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _engine(machine: Machine, wall_s: float) -> dict[str, Any]:
    return {
        "compiled": native.active(),
        "events": machine.env.events,
        "wave_steps": sum(device.gpu.wave_steps for device in machine.hardware.node.devices),
        "wall_s": wall_s,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
