"""Small transfers by arithmetic. 1 TB/s is a byte per picosecond."""

import pytest

from gpusim.engine.environment import Environment
from gpusim.engine.express import Express
from gpusim.engine.flows import Network

TB_S = 1e12


@pytest.fixture
def network():
    network = Network(Environment())
    for name, rate in (("drive", TB_S), ("gpu", 4 * TB_S)):
        network.add_link(name, capacity_bytes_per_s=rate)
    return network


@pytest.fixture
def express(network):
    return Express(network)


BOTH = (("drive", 1.0), ("gpu", 1.0))


def test_two_at_once_take_their_turn_on_the_slower_link(express):
    row = express.path(BOTH)
    assert express.reserve(row, 1000, 0) == 1001
    assert express.reserve(row, 1000, 0) == 2002


def test_who_is_announced_early_finds_the_work_of_now(express):
    row = express.path(BOTH)
    express.reserve(row, 1000, 0)
    assert express.reserve(row, 1000, 5000) == 5000 + 2002


def test_a_link_that_two_paths_share_is_one_queue(express):
    express.reserve(express.path(BOTH), 4000, 0)
    assert express.reserve(express.path((("gpu", 1.0),)), 4000, 0) == 1001 + 1001
    assert express.reserve(express.path((("drive", 1.0),)), 500, 0) == 4001 + 501


def test_work_that_was_done_is_no_longer_ahead(express, network):
    row = express.path(BOTH)
    express.reserve(row, 1000, 0)
    network.env.call_at(600, lambda: None)
    network.env.run_to()
    assert express.reserve(row, 1000, 600) == 600 + 401 + 1001


def test_every_byte_is_credited_whatever_the_sizes(express, network):
    row = express.path(BOTH)
    for size in range(1, 301):
        express.reserve(row, size, 0)
        express.reserve(row, 512, 0)
    express.settle()
    moved = sum(range(1, 301)) + 300 * 512
    for name in ("drive", "gpu"):
        assert network.use(name).amount == network.link(name).entered_bytes == moved
    assert network.use("drive").busy_ps == moved + 600


def test_a_path_with_a_flow_on_one_of_its_links_is_not_idle(express, network):
    row = express.path(BOTH)
    alone = express.path((("drive", 1.0),))
    assert express.idle(row)
    flow = network.transfer((("gpu", 1.0),), 10**6)
    assert not express.idle(row)
    assert express.idle(alone)
    flow.cut()
    assert express.idle(row)
