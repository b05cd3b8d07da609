"""Transfers over links, told in small stories. 1 TB/s is a byte per picosecond."""

import pytest

from gpusim.engine.environment import Environment
from gpusim.engine.flows import Network, Ride

TB_S = 1e12
PCIE5 = 55.36e9  # H200 node, measured


@pytest.fixture
def env():
    return Environment()


@pytest.fixture
def network(env):
    """Three links in a row, and a fourth apart."""
    network = Network(env)
    for name in ("drive", "switch", "gpu", "apart"):
        network.add_link(name, capacity_bytes_per_s=TB_S)
    return network


@pytest.fixture
def pcie(env):
    """A link whose directions take 9.6 % of each other's use."""
    network = Network(env)
    network.add_link("h2d", capacity_bytes_per_s=PCIE5, reverse="d2h", coupling=0.096)
    network.add_link("d2h", capacity_bytes_per_s=PCIE5, reverse="h2d", coupling=0.096)
    return network


def over(*names, cost=1.0):
    return [(name, cost) for name in names]


def took(flow):
    return flow.end_ps - flow.start_ps


def test_two_equal_copies_share_a_link_and_both_take_twice_as_long(env, network):
    copies = [network.transfer(over("gpu"), 1000) for _ in range(2)]
    env.run_to()
    assert [took(copy) for copy in copies] == [2000, 2000]
    assert [copy.alone_ps for copy in copies] == [1000, 1000]
    assert network.use("gpu").amount == network.use("gpu").busy_ps == 2000


def test_h2d_and_d2h_together_each_take_a_tenth_longer(env, pcie):
    there = pcie.transfer(over("h2d"), 512 * 2**20)
    back = pcie.transfer(over("d2h"), 512 * 2**20)
    env.run_to()
    for copy in (there, back):
        assert took(copy) / copy.alone_ps == pytest.approx(1.096, rel=1e-9)
        assert copy.alone_ps == pytest.approx(9.698e9, rel=1e-4)


def test_zero_copy_reads_carry_less_payload(env, pcie):
    reads = pcie.transfer(over("h2d", cost=1 / 0.89), 512 * 2**20)
    env.run_to()
    assert reads.size_bytes / took(reads) * 1e12 == pytest.approx(0.89 * PCIE5)
    assert pcie.use("h2d").busy_fraction(env.now) == pytest.approx(1.0)
    assert pcie.use("h2d").amount == 512 * 2**20


def test_a_slow_d2h_takes_from_h2d_only_what_it_uses(pcie):
    pcie.transfer(over("d2h"), 2**30, cap_bytes_per_s=10e9)
    fast = pcie.transfer(over("h2d"), 2**30)
    assert fast.rate_bytes_per_s == pytest.approx(PCIE5 - 0.096 * 10e9)


def test_a_direction_is_not_held_back_because_the_other_is_full(pcie):
    """Many H2D copies fill their direction at a low rate each; the D2H copy still gets what they leave."""
    for _ in range(100):
        pcie.transfer(over("h2d"), 2**30)
    back = pcie.transfer(over("d2h"), 2**30)
    assert back.rate_bytes_per_s == pytest.approx(PCIE5 / 1.096)


def test_a_path_is_as_fast_as_its_narrowest_link(env, network):
    network.add_link("narrow", capacity_bytes_per_s=0.1 * TB_S)
    flow = network.transfer(over("drive", "narrow", "gpu"), 1000)
    env.run_to()
    assert took(flow) == flow.alone_ps == 10_000
    assert network.use("gpu").busy_fraction(10_000) == pytest.approx(0.1)


def test_who_crosses_two_full_links_leaves_the_rest_to_the_others(network):
    network.add_link("half", capacity_bytes_per_s=0.5 * TB_S)
    through = network.transfer(over("half", "gpu"), 10**6)
    network.transfer(over("half"), 10**6)
    other = network.transfer(over("gpu"), 10**6)
    assert through.rate_bytes_per_s == pytest.approx(0.25 * TB_S)
    assert other.rate_bytes_per_s == pytest.approx(0.75 * TB_S)


def test_three_to_one_by_weight(env, network):
    heavy = network.transfer(over("gpu"), 3000, weight=3.0)
    light = network.transfer(over("gpu"), 1000)
    env.run_to()
    assert took(heavy) == took(light) == 4000


def test_a_cap_is_per_unit_of_weight(env, network):
    flow = network.transfer(over("gpu"), 1000, weight=5.0, cap_bytes_per_s=0.1 * TB_S)
    env.run_to()
    assert took(flow) == flow.alone_ps == flow.capped_ps == 2000


def test_time_at_the_own_cap_and_time_held_back_by_a_link(env, network):
    flow = network.transfer(over("gpu"), 1000, cap_bytes_per_s=0.5 * TB_S)
    env.call_at(1000, lambda: network.transfer(over("gpu"), 750, weight=3.0))
    env.run_to()
    assert took(flow) == 1000 + 1000 + 500
    assert flow.capped_ps == 1500


def test_flows_on_different_links_do_not_know_each_other_until_one_crosses_both(env, network):
    ends = {}

    def start(name, path, size):
        network.transfer(path, size, done=lambda flow: ends.setdefault(name, flow.end_ps))

    start("a", over("drive"), 2000)
    start("b", over("gpu"), 3000)
    assert network.components == 2
    env.call_at(1000, lambda: start("both", over("drive", "switch", "gpu"), 500))
    env.run_to(1500)
    assert network.components == 1
    env.run_to(2100)
    assert network.components == 2
    env.run_to()
    assert ends == {"both": 2000, "a": 2500, "b": 3500}
    assert network.components == 0
    assert [network.use(name).amount for name in ("drive", "switch", "gpu")] == [2500, 500, 3500]


def test_a_flow_that_is_cut_tells_what_it_has_moved_and_nobody_is_called(env, network):
    told = []
    flow = network.transfer(over("drive", "gpu"), 1000, done=told.append)
    other = network.transfer(over("gpu"), 1000, done=told.append)
    env.call_at(500, lambda: told.append(flow.cut()))
    env.run_to()
    assert told == [250, other]
    assert took(other) == 1250
    assert network.use("drive").amount == 250
    assert network.use("gpu").amount == 1250
    assert flow.cut() == 250


def test_a_flow_may_grow_shrink_and_change_its_weight(env, network):
    flow = network.transfer(over("gpu"), 1000)
    other = network.transfer(over("gpu"), 10_000)
    env.call_at(1000, lambda: flow.resize(2000))
    env.call_at(2000, lambda: flow.reweight(3.0))
    env.run_to()
    assert flow.moved_bytes == 2000
    assert took(flow) == 2000 + 1333 + 1
    assert other.end_ps == pytest.approx(12_000, abs=1)


def test_what_starts_when_another_ends_takes_its_place(env, network):
    ends = []

    def again(flow):
        ends.append(flow.end_ps)
        if len(ends) < 3:
            network.transfer(over("gpu"), 100, done=again)

    network.transfer(over("gpu"), 100, done=again)
    long = network.transfer(over("gpu"), 1000)
    env.run_to()
    assert ends == [200, 400, 600]
    assert long.end_ps == 1300


def test_an_empty_transfer_takes_a_picosecond(env, network):
    flow = network.transfer(over("drive", "gpu"), 0)
    env.run_to()
    assert took(flow) == flow.alone_ps == 1
    assert network.use("gpu").amount == 0


def test_a_loop_back_over_both_directions_pays_for_both(env, pcie):
    flow = pcie.transfer([("d2h", 1.0), ("h2d", 1.0)], 10**9)
    assert flow.rate_bytes_per_s == pytest.approx(PCIE5 / 1.096)
    env.run_to()
    assert took(flow) == flow.alone_ps


def test_a_heavy_flow_leaves_the_light_ones_exact(env, network):
    heavy = network.transfer(over("gpu"), 10**6, weight=1e12)
    light = network.transfer(over("gpu"), 10**6, weight=0.1)
    env.call_at(10, heavy.cut)
    env.run_to()
    assert light.end_ps == pytest.approx(10 + 10**6, abs=2)


def test_a_lone_transfer_after_a_pause_is_recorded_when_it_was(env, network):
    network.transfer(over("gpu"), 1000)
    env.run_to()
    env.call_at(100_000, lambda: network.transfer(over("gpu"), 1000))
    env.run_to()
    assert network.use("gpu").rows() == [(0, 1000, 1000)] + [(n * 1000, 0, 0) for n in range(1, 100)] + [
        (100_000, 1000, 1000)
    ]


def test_small_transfers_one_by_one_beside_a_large_one_take_a_wakeup_each(env, pcie):
    left = 4000

    def again(_flow):
        nonlocal left
        left -= 1
        if left:
            pcie.transfer(over("h2d"), 4096, done=again)

    pcie.transfer(over("h2d"), 2**30)
    pcie.transfer(over("h2d"), 4096, done=again)
    env.run_to()
    assert pcie.transfers == 4001
    assert pcie.wakeups <= 1.1 * pcie.transfers


def test_transfers_over_crossing_paths_take_at_most_one_and_a_half_wakeups(env, network):
    paths = [over("drive", "switch"), over("switch", "gpu"), over("drive", "switch", "gpu"), over("gpu")]
    left = 2000

    def again(path, size):
        def done(_flow):
            nonlocal left
            left -= 1
            if left >= 0:
                network.transfer(path, size, done=done)

        network.transfer(path, size, done=done)

    for number in range(16):
        again(paths[number % 4], 4096 + 61 * number)
    env.run_to()
    assert network.transfers == 2016
    assert network.wakeups <= 1.5 * network.transfers


class Told(Ride):
    """Notes when it arrived, and may start another."""

    def __init__(self, env, ends, then=None):
        self.env, self.ends, self.then = env, ends, then

    def __call__(self):
        self.ends.append(self.env.now)
        if self.then:
            self.then()


def test_a_ride_shares_like_any_flow_and_is_told_its_end(env, network):
    ends = []
    network.carry(network.way(over("drive", "gpu")), 1000, Told(env, ends))
    flow = network.transfer(over("gpu"), 1000)
    slow = network.way(over("switch"), 0.5 * TB_S)
    network.carry(slow, 1000, Told(env, ends, lambda: network.carry(slow, 250, Told(env, ends))))
    env.run_to()
    assert ends == [2000, 2000, 2500]
    assert took(flow) == 2000
    assert [network.use(name).amount for name in ("drive", "gpu", "switch")] == [1000, 2000, 1250]
    assert network.components == 0


def test_a_way_is_good_again_after_a_long_silence(env, network):
    """Who has had no flow for long is let go, whatever the others do meanwhile."""
    ends = []
    way = network.way(over("drive"))
    network.carry(way, 1000, Told(env, ends))
    left = 1000

    def again():
        nonlocal left
        left -= 1
        if left:
            network.carry(busy, 100, Told(env, [], again))

    busy = network.way(over("gpu"))
    again()
    env.run_to()
    assert not network.link("drive").held
    network.carry(way, 500, Told(env, ends))
    assert network.link("drive").held
    assert network.link("drive").share == 1.0
    env.run_to()
    assert ends == [1000, 99_900 + 500]
    assert network.use("drive").amount == 1500


def test_a_busy_network_says_so_and_an_idle_one_too(env, network):
    assert network.busy == 0
    first = network.transfer(over("drive", "gpu"), 1000)
    network.transfer(over("gpu"), 10)
    network.transfer(over("apart"), 3000)
    assert network.busy == 3
    env.run_to(100)
    assert network.busy == 2
    network.transfer(over("gpu", "apart"), 10)
    assert network.busy == 3
    first.cut()
    env.run_to()
    assert network.busy == network.components == 0


def test_what_makes_no_sense_is_refused(network):
    with pytest.raises(KeyError, match="nowhere"):
        network.transfer(over("nowhere"), 1)
    with pytest.raises(ValueError, match="at least one link"):
        network.transfer([], 1)
    with pytest.raises(ValueError, match="cost"):
        network.transfer(over("gpu", cost=0.0), 1)
    with pytest.raises(ValueError, match="0 bytes or more"):
        network.transfer(over("gpu"), -1)
    with pytest.raises(ValueError, match="weight"):
        network.transfer(over("gpu"), 1, weight=0.0)
    with pytest.raises(ValueError, match="cap"):
        network.transfer(over("gpu"), 1, cap_bytes_per_s=0.0)
    assert network.components == network.transfers == 0


def test_links_that_make_no_sense_are_refused(network):
    with pytest.raises(ValueError, match="there is a link"):
        network.add_link("gpu", capacity_bytes_per_s=1e9)
    with pytest.raises(ValueError, match="coupling"):
        network.add_link("a", capacity_bytes_per_s=1e9, coupling=1.0)
    network.add_link("up", capacity_bytes_per_s=1e9, reverse="down", coupling=0.2)
    with pytest.raises(ValueError, match="leave nothing"):
        network.add_link("down", capacity_bytes_per_s=5e9, reverse="up")
    network.add_link("down", capacity_bytes_per_s=1e9)
    with pytest.raises(ValueError, match="is the reverse of"):
        network.add_link("third", capacity_bytes_per_s=1e9, reverse="up")
