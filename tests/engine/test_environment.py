"""The clock, timers and lean processes, beside SimPy's own."""

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine import environment
from gpusim.engine.environment import Environment


def test_a_timer_fires_at_its_time():
    env = Environment()
    fired = []
    env.call_at(5, lambda: fired.append(env.now))
    env.run_to()
    assert fired == [5]


def test_a_cancelled_timer_does_nothing():
    env = Environment()
    fired = []
    timer = env.call_at(5, lambda: fired.append(env.now))
    timer.cancel()
    env.run_to()
    assert fired == []
    assert env.now == 5  # its place in the queue stays


@given(st.lists(st.integers(0, 20)))
def test_ties_keep_the_order_in_which_they_were_scheduled(times):
    env = Environment()
    fired = []
    for number, time in enumerate(times):
        env.call_at(time, lambda entry=(time, number): fired.append(entry))
    env.run_to()
    assert fired == sorted((time, number) for number, time in enumerate(times))
    assert env.events == len(times)


def test_a_lean_process_sleeps_and_is_parked():
    env = Environment()
    seen = []

    def life():
        seen.append(env.now)
        yield 3
        seen.append(env.now)
        yield None  # parked
        seen.append(env.now)

    lean = env.lean(life())
    env.call_at(10, lambda: lean.wake_at(12))
    env.run_to()
    assert seen == [0, 3, 12]


def test_a_lean_process_runs_to_its_first_wait_at_once_and_tells_its_end():
    env = Environment()
    ended = []

    def life():
        yield 1

    env.lean(life(), finished=lambda: ended.append(env.now))
    assert ended == []
    env.run_to()
    assert ended == [1]


def test_a_parked_process_can_be_resumed_now():
    env = Environment()
    seen = []

    def life():
        yield None
        seen.append(env.now)
        yield None
        seen.append(env.now)

    lean = env.lean(life())
    env.call_at(4, lean.resume)
    env.call_at(9, lean.resume)
    env.run_to()
    assert seen == [4, 9]


def test_lean_processes_mix_with_those_of_simpy():
    env = Environment()
    seen = []
    door = env.event()

    def lean():
        for _ in range(3):
            yield 10
            seen.append(("lean", env.now))
        door.succeed()

    def stock():
        for _ in range(2):
            yield env.timeout(15)
            seen.append(("stock", env.now))
        yield door
        seen.append(("stock", env.now))

    env.process(stock())
    env.lean(lean())
    env.run_to()
    # at 30 the stock timeout was scheduled at 15, the lean one at 20: ties keep the schedule order
    assert seen == [
        ("lean", 10),
        ("stock", 15),
        ("lean", 20),
        ("stock", 30),
        ("lean", 30),
        ("stock", 30),
    ]


def test_a_limit_ends_the_run_and_sets_the_clock():
    env = Environment()
    fired = []
    for time in (5, 10, 11):
        env.call_at(time, lambda: fired.append(env.now))
    assert env.run_to(10) is True
    assert fired == [5, 10]  # what is due at the limit still happens
    assert env.now == 10


def test_a_run_below_its_limit_stops_where_its_last_event_was():
    env = Environment()
    env.call_at(5, lambda: None)
    assert env.run_to(10) is False
    assert env.now == 5


def test_stop_ends_the_run_after_the_event_in_hand_and_it_can_go_on():
    env = Environment()
    fired = []
    env.call_at(1, lambda: (fired.append(1), env.stop()))
    env.call_at(2, lambda: fired.append(2))
    assert env.run_to() is False
    assert fired == [1]
    env.run_to()
    assert fired == [1, 2]


def test_an_error_in_a_process_comes_out_and_the_events_before_it_are_counted():
    env = Environment()

    def breaks():
        yield env.timeout(3)
        raise RuntimeError("broken")

    env.process(breaks())
    with pytest.raises(RuntimeError, match="broken"):
        env.run_to()
    assert env.now == 3
    assert env.events == 1 + 1  # its start and the timeout; the failed end did not finish


def test_a_handled_failure_does_not_come_out():
    env = Environment()
    caught = []

    def breaks():
        yield env.timeout(3)
        raise RuntimeError("broken")

    def watches():
        try:
            yield env.process(breaks())
        except RuntimeError as error:
            caught.append(str(error))

    env.process(watches())
    env.run_to()
    assert caught == ["broken"]


def test_progress_is_told_every_fifth_of_a_second_of_wall_time(monkeypatch):
    wall = iter(range(1000))  # each look at the clock is 1 s after the last
    monkeypatch.setattr(environment, "monotonic", lambda: next(wall))
    env = Environment()
    counted = []

    def life():
        for _ in range(5000):
            yield 1

    env.lean(life())
    env.run_to(tick=lambda: counted.append(env.events))
    assert counted == [1024, 2048, 3072, 4096]  # it looks at the clock once in 1,024 events
    assert env.events == 5000


@given(st.lists(st.lists(st.integers(0, 50), max_size=8), max_size=6))
def test_lean_processes_see_the_times_that_simpy_would_give_them(programs):
    def stock(env, delays, seen):
        for delay in delays:
            yield env.timeout(delay)
            seen.append((env.now, id(delays)))

    def lean(env, delays, seen):
        for delay in delays:
            yield delay
            seen.append((env.now, id(delays)))

    ours, theirs = [], []
    env = Environment()
    for delays in programs:
        env.lean(lean(env, delays, ours))
    env.run_to()
    plain = simpy.Environment()
    for delays in programs:
        plain.process(stock(plain, delays, theirs))
    plain.run()
    assert ours == theirs
