"""A lock with its holders on record."""

import pytest

from gpusim.engine.environment import Environment
from gpusim.engine.mutex import Mutex


@pytest.fixture
def env():
    return Environment()


@pytest.fixture
def lock(env):
    return Mutex(env, "mmap_lock")


def test_it_goes_to_who_asked_first(env, lock):
    order = []
    for who in (1, 2, 3):
        lock.acquire(who, lambda who=who: order.append((who, lock.behind)))
    assert (order, lock.holder, lock.waiters) == ([(1, 0)], 1, 2)
    env.call_at(100, lock.release)
    env.call_at(250, lock.release)
    env.run_to()
    assert order == [(1, 0), (2, 1), (3, 2)]
    assert (lock.waited, lock.waited_ps, lock.longest_wait_ps, lock.grants) == (2, 350, 250, 3)
    assert lock.use.busy_ps == 250


def test_a_thousand_who_let_go_at_once_are_no_thousand_calls_deep(lock):
    served = []

    def visit(who):
        def granted():
            served.append(who)
            lock.release()

        return granted

    lock.acquire(5000, lambda: None)
    for who in range(1, 5000):
        lock.acquire(who, visit(who))
    lock.release()
    assert served == list(range(1, 5000))
    assert lock.holder is None


def test_who_asks_again_queues_again(lock):
    order = []

    def greedy():
        order.append("greedy")
        lock.release()
        if order.count("greedy") < 2:
            lock.acquire(1, greedy)

    lock.acquire(9, lambda: None)
    lock.acquire(1, greedy)
    lock.acquire(2, lambda: (order.append("other"), lock.release()))
    lock.release()
    assert order == ["greedy", "other", "greedy"]


def test_nobody_releases_what_nobody_holds(lock):
    with pytest.raises(RuntimeError, match="mmap_lock"):
        lock.release()
