"""A server as a number."""

import pytest

from gpusim.engine.environment import Environment
from gpusim.engine.server import Server


@pytest.fixture
def env():
    return Environment()


def test_the_second_waits_for_the_first(env):
    server = Server(env, "sdma")
    assert server.reserve(100) == (0, 100)
    assert server.reserve(50) == (100, 150)
    assert server.waited_ps == 100
    assert server.free_ps == 150


def test_two_lanes_serve_two_at_a_time(env):
    server = Server(env, "sdma", lanes=2)
    assert [server.reserve(service) for service in (100, 30, 30, 30)] == [
        (0, 100),
        (0, 30),
        (30, 60),
        (60, 90),
    ]


def test_who_comes_later_finds_it_free(env):
    server = Server(env, "sdma")
    server.reserve(100)
    assert server.reserve(10, at_ps=500) == (500, 510)
    env.run_to(1000)
    env.call_at(1000, lambda: None)
    env.run_to()
    assert server.free_ps == 1000


def test_it_says_who_was_before(env):
    server = Server(env, "sdma")
    server.reserve(100, tag=7)
    assert server.behind == 0
    server.reserve(100, tag=8)
    assert server.behind == 7
    server.reserve(100, at_ps=10_000, tag=9)
    assert server.behind == 0


def test_what_makes_no_sense_is_refused(env):
    server = Server(env, "sdma")
    with pytest.raises(ValueError, match="sdma"):
        server.reserve(-1)
    env.call_at(10, lambda: None)
    env.run_to()
    with pytest.raises(ValueError, match="it is 10 ps"):
        server.reserve(1, at_ps=9)
    with pytest.raises(ValueError, match="lane"):
        Server(env, "none", lanes=0)
