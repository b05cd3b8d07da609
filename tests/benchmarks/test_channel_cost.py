"""What a wavefront step costs on the shared channel: an `enter`, an end and a call."""

from time import process_time

import pytest

from gpusim.engine.channel import Channel
from gpusim.engine.environment import Environment
from tests.benchmarks.ratios import against_bare

STEPS = 20_000


def run_steps(jobs, cap_bytes_per_s, jitter=16):
    """`jobs` wavefronts that enter again and again, with sizes that differ: seconds, steps and wake-ups."""
    env = Environment()
    channel = Channel(env, "hbm", capacity_bytes_per_s=1.6e12)
    enter = channel.job_class(cap_bytes_per_s).enter
    rounds = max(8, -(-STEPS // jobs))

    class Wave:
        __slots__ = ("left", "resume", "size")

        def __init__(self, number):
            self.left = rounds
            self.size = 65_536 + jitter * number
            self.resume = self.step

        def step(self):
            if self.left:
                self.left -= 1
                enter(self.size, self.resume)

    start = process_time()
    for number in range(jobs):
        Wave(number).step()
    env.run_to()
    return process_time() - start, rounds * jobs, channel.wakeups


EACH = pytest.mark.parametrize("jobs", [1, 16, 256, 4096, 9728])
CAPS = pytest.mark.parametrize("cap", [None, 3e9], ids=["shared", "capped"])


@EACH
@CAPS
def test_a_step_takes_a_wakeup(jobs, cap):
    _, steps, wakeups = run_steps(jobs, cap)
    assert wakeups <= 1.1 * steps


@pytest.mark.timing
@EACH
@CAPS
def test_a_step_costs_about_a_bare_timeout_or_less(jobs, cap, figure):
    _, steps, wakeups = run_steps(jobs, cap)
    name = (
        f"HBM, {jobs} jobs {'that share' if cap is None else 'at their caps'}: time a step, in bare timeouts"
    )
    ratio = against_bare(name, lambda: run_steps(jobs, cap)[0], steps)
    figure(name, ratio.middle, note=f"{ratio.spread}; {wakeups / steps:.3f} wake-ups")


@pytest.mark.timing
def test_steps_of_two_classes(figure):
    """Half of the waves in another class, as with two kernels at once."""

    def run():
        env = Environment()
        channel = Channel(env, "hbm", capacity_bytes_per_s=1.6e12)
        members = [channel.job_class(3e9), channel.job_class(None)]
        left = STEPS

        def wave(enter, size):
            def step():
                nonlocal left
                left -= 1
                if left > 0:
                    enter(size, step)

            return step

        start = process_time()
        for number in range(1024):
            enter = members[number % 2].enter
            enter(65_536 + number, wave(enter, 65_536 + number))
        env.run_to()
        return process_time() - start

    name = "HBM, 1024 jobs of two classes: time a step, in bare timeouts"
    ratio = against_bare(name, run, STEPS)
    figure(name, ratio.middle, note=ratio.spread)
