"""One kernel that is the first to touch a buffer, on MI300X: the run that the figures are about.

9,728 wavefront slots, granules of 2 MiB, wavefront steps of 64 KiB: 16,384 steps a GiB.
"""

import gc
from dataclasses import dataclass
from functools import cache
from time import process_time

from gpusim.simulation import simulate
from tests.benchmarks.ratios import BareLoop
from tests.programs import launch, scenario

STEP_KIB = 64
STEPS_PER_GIB = 2**20 // STEP_KIB
_SLICE = 4 * 3_520  # bare timeouts after each 0.2 s of the run: about a quarter of that


def program(gib, allocator, step_kib=STEP_KIB):
    return scenario(
        [launch("touch", writes="x")],
        kernels={"touch": {"pattern": "stream", "step": f"{step_kib}KiB"}},
        buffers={"x": f"{gib}GiB {allocator}"},
        node="mi300x-pcie5",
    )


@cache
def counts(gib, allocator, record="summary"):
    """Events and wave steps: the same in each run."""
    engine = simulate(program(gib, allocator), record=record).engine
    return engine["events"], engine["wave_steps"]


@dataclass(frozen=True)
class Cost:
    """A run's events and processor time, and that of as many bare timeouts as it has wave steps."""

    events: int
    steps: int
    seconds: float
    bare_seconds: float

    @property
    def ratio(self):
        return self.seconds / self.bare_seconds


def cost(gib, allocator, record="summary"):
    """Simulate, with the bare loop in slices in between."""
    chosen = program(gib, allocator)
    steps = gib * STEPS_PER_GIB
    loop = BareLoop()
    gc.collect()

    def in_between(_progress):
        if loop.timeouts < steps:
            loop.run(min(_SLICE, steps - loop.timeouts))

    start = process_time()
    data = simulate(chosen, record=record, progress=in_between)
    seconds = process_time() - start - loop.seconds
    assert data.engine["wave_steps"] == steps
    if loop.timeouts < steps:
        loop.run(steps - loop.timeouts)
    bare_seconds = loop.seconds * steps / loop.timeouts
    return Cost(data.engine["events"], steps, seconds, bare_seconds)
