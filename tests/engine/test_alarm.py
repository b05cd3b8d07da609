"""An alarm that moves, among the events of SimPy's queue."""

from random import Random

import pytest

from gpusim.engine.alarm import Alarm
from gpusim.engine.channel import Channel
from gpusim.engine.environment import Environment
from gpusim.engine.flows import Network


@pytest.fixture
def env():
    return Environment()


def test_it_rings_when_it_was_last_set_to(env):
    rung = []
    alarm = Alarm(env, lambda: rung.append(env.now))
    alarm.set(100)
    env.call_at(50, lambda: alarm.set(200))
    env.call_at(150, lambda: alarm.set(170))
    env.run_to()
    assert (rung, alarm.rings, env.now, env.events) == ([170], 1, 170, 3)


def test_it_can_be_taken_back_and_leaves_nothing_behind(env):
    alarm = Alarm(env, lambda: None)
    alarm.set(100)
    env.call_at(50, lambda: alarm.set(None))
    env.run_to()
    assert (alarm.rings, env.now) == (0, 50)


def test_it_is_set_again_from_within(env):
    rung = []

    def ring():
        rung.append(env.now)
        return env.now + 10 if len(rung) < 3 else None

    Alarm(env, ring).set(5)
    env.run_to()
    assert rung == [5, 15, 25]


def test_ties_keep_the_order_in_which_they_were_set(env):
    order = []
    first, second = (Alarm(env, lambda name=name: order.append(name)) for name in ("first", "second"))
    env.call_at(10, lambda: order.append("before"))
    second.set(10)
    first.set(20)
    env.call_at(10, lambda: order.append("after"))
    first.set(10)
    env.run_to()
    assert order == ["before", "second", "after", "first"]


def test_simpys_own_run_rings_it_too(env):
    rung = []
    Alarm(env, lambda: rung.append(env.now)).set(7)
    env.timeout(3)
    assert env.stock.peek() == 3
    env.stock.run(until=5)
    assert (env.now, rung) == (5, [])
    env.stock.run()
    assert rung == [7]
    assert env.stock.peek() == float("inf")


def test_a_limit_before_it_ends_the_run(env):
    alarm = Alarm(env, lambda: None)
    alarm.set(100)
    assert env.run_to(50)
    assert (env.now, alarm.rings) == (50, 0)
    assert not env.run_to(100)
    assert (env.now, alarm.rings) == (100, 1)


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_transfers_at_random_times_beside_a_large_one_take_a_wakeup_each(env, load):
    """4 KiB beside 1 GiB: each arrival moves the next end, and that costs no event."""
    network = Network(env)
    network.add_link("pcie", capacity_bytes_per_s=55e9)
    channel = Channel(env, "hbm", capacity_bytes_per_s=55e9)
    waves = channel.job_class(None)
    chance = Random(1)

    def arrivals():
        network.transfer([("pcie", 1.0)], 2**30)
        waves.enter(2**30, lambda: None)
        for _ in range(5000):
            yield int(chance.expovariate(load * 55e9 / 4096 / 1e12))
            network.transfer([("pcie", 1.0)], 4096)
            waves.enter(4096, lambda: None)

    env.lean(arrivals())
    env.run_to()
    assert network.wakeups <= 5001
    assert channel.wakeups <= 5001
