"""What the first touch of memory costs on MI300X: events, time against the bare SimPy loop, and memory.

Events and memory do not depend on what else the machine does: they are asserted, here on sizes that `make test` has
time for. Times are shown by `make bench`.
"""

from statistics import median

import pytest

from tests.benchmarks.first_touch import STEPS_PER_GIB, cost, counts
from tests.benchmarks.peak_memory import measured, needs_proc
from tests.programs import gpu_spec

EVENTS_PER_STEP = 2.4
PEAK_MIB = 100


def test_the_gpu_of_these_figures_holds_9728_wavefronts():
    assert gpu_spec("mi300x-pcie5").compute.slots == 9_728


@pytest.mark.parametrize("allocator", ["malloc", "hipMallocManaged"])
def test_a_wave_step_takes_few_events(allocator):
    events, steps = counts(2, allocator)
    assert steps == 2 * STEPS_PER_GIB
    assert events <= EVENTS_PER_STEP * steps


@needs_proc
@pytest.mark.parametrize("allocator", ["malloc", "hipMallocManaged"])
def test_a_quarter_of_the_footprint_takes_half_of_the_memory(allocator):
    """Wavefronts take theirs at any footprint. Long steps, for the sake of time, leave their number as it is."""
    assert measured(16, allocator, step_kib=1024)["peak"] < PEAK_MIB / 2


@pytest.mark.timing
@pytest.mark.parametrize(("allocator", "most"), [("malloc", 3.0), ("hipMallocManaged", 3.5)])
def test_64_gib(allocator, most, figure):
    costs = [cost(64, allocator) for _ in range(3)]
    events = costs[0].events / costs[0].steps
    ratios = sorted(each.ratio for each in costs)
    name = f"64 GiB first touch by {allocator}"
    figure(f"{name}: events a wave step", events, most=EVENTS_PER_STEP)
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, 3 runs; a bare timeout took "
    bare = median(each.bare_seconds / each.steps for each in costs) * 1e6
    figure(f"{name}: time a step, in bare timeouts", median(ratios), most=most, note=f"{spread}{bare:.1f} us")
    assert events <= EVENTS_PER_STEP


@needs_proc
@pytest.mark.timing
@pytest.mark.parametrize("allocator", ["malloc", "hipMallocManaged"])
def test_memory_of_64_gib(allocator, figure):
    used = measured(64, allocator, step_kib=64)
    name = f"64 GiB first touch by {allocator}: peak memory less imports"
    figure(
        name, used["peak"], most=PEAK_MIB, unit=" MiB", digits=0, note=f"imports {used['imports']:.0f} MiB"
    )
    assert used["peak"] < PEAK_MIB
