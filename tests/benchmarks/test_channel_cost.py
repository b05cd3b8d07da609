"""What a wavefront step costs on the shared channel: an `enter`, an end and a call."""

from time import perf_counter

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

    start = perf_counter()
    for number in range(jobs):
        Wave(number).step()
    env.run_to()
    return perf_counter() - start, rounds * jobs, channel.wakeups


@pytest.mark.timing
@pytest.mark.parametrize("jobs", [1, 16, 256, 4096, 9728])
@pytest.mark.parametrize("cap", [None, 3e9], ids=["shared", "capped"])
def test_a_step_costs_about_a_bare_timeout_or_less(jobs, cap):
    _, steps, wakeups = run_steps(jobs, cap)
    assert wakeups <= 1.1 * steps
    ratio = against_bare(
        f"{jobs} jobs, {wakeups / steps:.3f} wake-ups a step", lambda: run_steps(jobs, cap)[0], steps
    )
    print(f"\n{ratio}")


@pytest.mark.timing
def test_steps_of_two_classes():
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

        start = perf_counter()
        for number in range(1024):
            enter = members[number % 2].enter
            enter(65_536 + number, wave(enter, 65_536 + number))
        env.run_to()
        return perf_counter() - start

    print(f"\n{against_bare('1024 jobs of two classes', run, STEPS)}")
