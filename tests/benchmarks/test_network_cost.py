"""What a transfer costs: on one link beside a large one, in both directions, and over crossing paths."""

from random import Random
from time import process_time

import pytest

from gpusim.engine.environment import Environment
from gpusim.engine.flows import Network
from tests.benchmarks.ratios import against_bare

TRANSFERS = 4_000
PCIE5 = 55.36e9


def pcie(env):
    network = Network(env)
    network.add_link("h2d", capacity_bytes_per_s=PCIE5, reverse="d2h", coupling=0.096)
    network.add_link("d2h", capacity_bytes_per_s=PCIE5, reverse="h2d", coupling=0.096)
    return network


def tree(env):
    """Four drives behind a switch, two GPUs; all links shared in turn."""
    network = Network(env)
    for name, rate in [(f"drive{n}", 7e9) for n in range(4)] + [(f"gpu{n}", PCIE5) for n in range(2)]:
        network.add_link(name, capacity_bytes_per_s=rate)
    network.add_link("switch", capacity_bytes_per_s=25e9)
    return network


def closed(build, paths, streams):
    """`streams` that each start a 4 KiB transfer when the last has ended."""
    env = Environment()
    network = build(env)
    left = TRANSFERS

    def stream(path, size):
        def done(_flow):
            nonlocal left
            left -= 1
            if left >= 0:
                network.transfer(path, size, done=done)

        network.transfer(path, size, done=done)

    start = process_time()
    for number in range(streams):
        stream(paths[number % len(paths)], 4096 + 64 * number)
    env.run_to()
    return process_time() - start, network


def beside_a_large_one():
    """4 KiB at a time beside 1 GiB."""
    env = Environment()
    network = pcie(env)
    path = (("h2d", 1.0),)
    left = TRANSFERS

    def done(_flow):
        nonlocal left
        left -= 1
        if left >= 0:
            network.transfer(path, 4096, done=done)

    start = process_time()
    network.transfer(path, 2**30)
    done(None)
    env.run_to()
    return process_time() - start, network


def by_chance():
    """4 KiB at random times beside 1 GiB, at 70 % load."""
    env = Environment()
    network = pcie(env)
    chance = Random(7)

    def arrivals():
        network.transfer((("h2d", 1.0),), 2**30)
        for _ in range(TRANSFERS):
            yield int(chance.expovariate(0.7 * PCIE5 / 4096 / 1e12))
            network.transfer((("h2d", 1.0),), 4096)

    start = process_time()
    env.lean(arrivals())
    env.run_to()
    return process_time() - start, network


def both_ways():
    """Four streams in each direction of a link."""
    return closed(pcie, [(("h2d", 1.0),), (("d2h", 1.0),)], 8)


def over_paths():
    """32 streams from four drives through a switch to two GPUs."""
    paths = [((f"drive{n}", 1.0), ("switch", 1.0), (f"gpu{g}", 1.0)) for n in range(4) for g in range(2)]
    return closed(tree, paths, 32)


EACH = pytest.mark.parametrize(
    ("run", "most"), [(beside_a_large_one, 1.1), (by_chance, 1.1), (both_ways, 1.5), (over_paths, 1.5)]
)


@EACH
def test_a_transfer_takes_few_wakeups(run, most):
    network = run()[1]
    assert network.transfers >= TRANSFERS
    assert network.wakeups <= most * network.transfers


@pytest.mark.timing
@EACH
def test_what_a_transfer_costs(run, most, figure):
    network = run()[1]
    name = f"link, {run.__name__.replace('_', ' ')}"
    figure(f"{name}: wake-ups a transfer", network.wakeups / network.transfers, most=most, digits=3)
    ratio = against_bare(name, lambda: run()[0], network.transfers)
    figure(f"{name}: time a transfer, in bare timeouts", ratio.middle, note=ratio.spread)
