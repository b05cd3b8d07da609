"""A kernel over memory that is there pays for what waits only: more passes over it cost next to nothing."""

from statistics import median
from time import process_time

import pytest

from gpusim.simulation import simulate
from tests.programs import launch, run, scenario

EVENTS = 1.1
TIME = 1.5


def program(gib, passes, step="64KiB"):
    """The first touch of a buffer by one kernel, and `passes` over it by another."""
    return scenario(
        [launch("touch", writes="x"), launch("walk", reads="x")],
        kernels={
            "touch": {"pattern": "stream", "step": step},
            "walk": {"pattern": "stream", "step": step, "passes": passes},
        },
        buffers={"x": f"{gib}GiB malloc"},
        node="mi300x-pcie5",
    )


def events(gib, passes):
    return simulate(program(gib, passes)).engine["events"]


def test_100_passes_take_hardly_more_events_than_one():
    assert events(1, 100) <= EVENTS * events(1, 1)


def test_passes_last_as_long_as_step_by_step():
    """Over memory that another kernel has touched first, and longer than what is in flight at a time."""

    def walked(stepwise):
        steps = [launch("touch", writes="x"), launch("walk", reads="x")]
        kernels = {
            "touch": {"pattern": "stream", "step": "1MiB"},
            "walk": {"pattern": "stream", "step": "16KiB", "passes": 40},
        }
        ran = run(steps, kernels=kernels, buffers={"x": "96MiB malloc"}, stepwise=stepwise)
        return ran.makespan_ps, ran.duration("walk")

    grouped, stepwise = walked(stepwise=False), walked(stepwise=True)
    assert grouped == pytest.approx(stepwise, rel=0.005)


@pytest.mark.timing
def test_time_of_100_passes_over_16_gib(figure):
    ratios = []
    for _ in range(3):
        seconds = []
        for passes in (1, 100):
            start = process_time()
            simulate(program(16, passes))
            seconds.append(process_time() - start)
        ratios.append(seconds[1] / seconds[0])
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    figure("100 passes over 16 GiB against one: time", median(ratios), most=TIME, note=spread)
    figure("100 passes over 16 GiB against one: events", events(16, 100) / events(16, 1), most=EVENTS)
