"""Processor sharing: mean responses within the 99.9 % interval of 30 batch means, seeds fixed; Little's law
exactly.
"""

import numpy as np
import pytest

from gpusim.engine.channel import Channel
from gpusim.engine.environment import Environment
from gpusim.engine.flows import Network
from tests.theory.oracles import confidence

MEAN_BYTES = 65_536
MEAN_PS = 1_000_000
CAPACITY = MEAN_BYTES / MEAN_PS * 1e12  # the mean job takes MEAN_PS alone


def through_channel(env):
    enter = Channel(env, "hbm", capacity_bytes_per_s=CAPACITY).job_class(None).enter
    return lambda size, done: enter(size, done)


def through_network(env):
    network = Network(env)
    network.add_link("pcie", capacity_bytes_per_s=CAPACITY)
    path = [("pcie", 1.0)]
    return lambda size, done: network.transfer(path, size, done=lambda _flow: done())


def responses(through, sizes, load, seed):
    """Start and response time of each job of a Poisson stream, in order of arrival."""
    env = Environment()
    start = through(env)
    gaps = np.random.default_rng(seed).exponential(MEAN_PS / load, len(sizes)).astype(np.int64).tolist()
    took = [0] * len(sizes)
    starts = [0] * len(sizes)

    def arrivals():
        for number, (gap, size) in enumerate(zip(gaps, sizes, strict=True)):
            yield gap
            starts[number] = now = env.now

            def done(number=number, now=now):
                took[number] = env.now - now

            start(size, done)

    env.lean(arrivals())
    env.run_to()
    return starts, took


def exponential_sizes(count, seed):
    return (np.random.default_rng(seed).exponential(MEAN_BYTES, count).astype(np.int64) + 1).tolist()


@pytest.mark.parametrize(
    ("through", "jobs", "within"), [(through_channel, 60_000, 0.1), (through_network, 25_000, 0.16)]
)
def test_mm1_ps_responds_in_service_over_one_minus_rho(through, jobs, within):
    load = 0.7
    _, took = responses(through, exponential_sizes(jobs, 41), load, 42)
    mean, half = confidence(took[2_000:])
    theory = MEAN_PS / (1 - load)
    assert abs(mean - theory) <= half
    assert half <= within * theory


def test_sharing_does_not_care_how_sizes_are_spread():
    """M/D/1-PS has the mean response of M/M/1-PS; first come, first served has not."""
    load = 0.7
    _, took = responses(through_channel, [MEAN_BYTES] * 60_000, load, 52)
    mean, half = confidence(took[2_000:])
    assert abs(mean - MEAN_PS / (1 - load)) <= half
    assert half <= 0.08 * mean


def test_a_job_twice_as_long_takes_twice_as_long_on_average():
    load = 0.6
    rng = np.random.default_rng(61)
    sizes = np.where(rng.random(60_000) < 0.5, MEAN_BYTES * 2 // 3, MEAN_BYTES * 4 // 3).tolist()
    _, took = responses(through_channel, sizes, load, 62)
    for size in set(sizes):
        mean, half = confidence([ps for ps, each in zip(took, sizes, strict=True) if each == size])
        assert abs(mean - size / MEAN_BYTES * MEAN_PS / (1 - load)) <= half


@pytest.mark.parametrize("through", [through_channel, through_network])
def test_littles_law_holds_to_the_picosecond(through):
    """The number of jobs, integrated over time from idle to idle, is the sum of their times."""
    starts, took = responses(through, exponential_sizes(3_000, 71), 0.8, 72)
    changes = sorted(
        [(start, 1) for start in starts] + [(start + ps, -1) for start, ps in zip(starts, took, strict=True)]
    )
    area = present = before = 0
    for at, change in changes:
        area += present * (at - before)
        present += change
        before = at
    assert present == 0
    assert area == sum(took)
