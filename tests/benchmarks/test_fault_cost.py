"""What a served retry fault costs in the worst case: granules of 4 KiB, so that none serves two pages.

The yardsticks: the bare SimPy loop, and a pipeline as one would write it first, a process a fault through eight
`Resource` stages.
"""

from statistics import median
from time import process_time

import pytest
import simpy

from gpusim.simulation import simulate
from tests.benchmarks.ratios import BareLoop
from tests.programs import launch, scenario

BARE = 12
NAIVE = 3.5  # times cheaper than the pipeline of resources
EVENTS = 6
STAGES = (2_000_000, 600_000, 15_500_000, 3_000_000, 1_000_000, 20_000_000, 2_000_000, 4_000_000)  # ps


def program(mib):
    return scenario(
        [launch("touch", writes="x")],
        kernels={"touch": {"pattern": "stream", "step": "4KiB"}},
        buffers={"x": f"{mib}MiB malloc"},
        overrides={"driver.svm.default_granularity": "4KiB"},
    )


def naive(faults, in_flight):
    """Seconds of processor time for as many faults as waves send them, each when its last one is served."""
    env = simpy.Environment()
    stages = [(simpy.Resource(env), delay) for delay in STAGES]

    def wave(count):
        for _ in range(count):
            for stage, delay in stages:
                with stage.request() as turn:
                    yield turn
                    yield env.timeout(delay)

    for _ in range(in_flight):
        env.process(wave(faults // in_flight))
    start = process_time()
    env.run()
    return process_time() - start


def test_each_page_is_a_fault_of_its_own_and_takes_few_events():
    data = simulate(program(8))
    assert data.faults[0].counts["serviced"] == 2048
    assert data.engine["events"] <= EVENTS * 2048


@pytest.mark.timing
def test_time_of_a_fault(figure):
    against_bare, against_naive = [], []
    for _ in range(5):
        loop = BareLoop()
        bare = loop.run(50_000)
        start = process_time()
        simulate(program(64))
        fault = (process_time() - start) / 16_384
        bare = (bare + loop.run(50_000)) / 2
        against_bare.append(fault / bare)
        against_naive.append(naive(4_096, 1_024) / 4_096 / fault)
    spread = f"{min(against_bare):.1f} to {max(against_bare):.1f}"
    figure("a fault on 4 KiB: time, in bare timeouts", median(against_bare), most=BARE, note=spread)
    figure("the same, as a part of a pipeline of resources", 1 / median(against_naive), most=1 / NAIVE)
