"""An agenda among the events of SimPy's queue: as if each of its items were an event there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine.agenda import Agenda
from gpusim.engine.alarm import Alarm
from gpusim.engine.environment import Environment


class Item:
    def __init__(self, log, name, act=None):
        self.log, self.name, self.act = log, name, act

    def due(self, now_ps):
        self.log.append((now_ps, self.name))
        if self.act is not None:
            self.act(now_ps)


@pytest.fixture
def env():
    return Environment()


def test_items_come_at_their_times_among_other_events(env):
    log = []
    agenda = Agenda(env)
    agenda.add(30, Item(log, "last"))
    agenda.add(10, Item(log, "first"))
    env.call_at(20, lambda: log.append((env.now, "event")))
    env.run_to()
    assert log == [(10, "first"), (20, "event"), (30, "last")]
    assert (env.now, env.events) == (30, 3)


def test_an_item_may_bring_something_that_comes_before_the_next_one(env):
    log = []
    agenda = Agenda(env)
    alarm = Alarm(env, lambda: log.append((env.now, "alarm")))

    def act(_now):
        env.call_at(12, lambda: log.append((env.now, "event")))
        alarm.set(11)
        agenda.add(13, Item(log, "added"))

    agenda.add(10, Item(log, "first", act))
    agenda.add(14, Item(log, "last"))
    env.run_to()
    assert log == [(10, "first"), (11, "alarm"), (12, "event"), (13, "added"), (14, "last")]
    assert env.events == 5


def test_the_limit_and_a_stop_hold_within_a_row_of_items(env):
    log = []
    agenda = Agenda(env)
    agenda.add(10, Item(log, "first"))
    agenda.add(11, Item(log, "stops", lambda _now: env.stop()))
    agenda.add(12, Item(log, "later"))
    agenda.add(20, Item(log, "too late"))
    assert env.run_to() is False
    assert log == [(10, "first"), (11, "stops")]
    assert env.run_to(15) is True
    assert log[2:] == [(12, "later")]
    assert env.now == 15


def test_what_is_taken_out_does_not_come(env):
    log = []
    agenda = Agenda(env)
    items = [Item(log, number) for number in range(4)]
    for time, item in enumerate(items):
        agenda.add(10 + time, item)
    taken = []
    env.call_at(10, lambda: taken.extend(agenda.take_out(lambda item: item.name % 2 == 0)))
    env.run_to()
    assert taken == [(12, items[2])]
    assert log == [(10, 0), (11, 1), (13, 3)]


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 5)), max_size=30))
def test_it_makes_no_difference_to_the_order_of_things(wanted):
    """Each item or event adds another one a little later; ties keep the order in which they were added."""

    def play(with_agenda):
        env, log = Environment(), []
        agenda = Agenda(env)

        def add(time, on_agenda, delay, name):
            def act(now):
                if delay:
                    add(now + delay, not on_agenda, delay - 1, f"{name}+")

            item = Item(log, name, act)
            if on_agenda and with_agenda:
                agenda.add(time, item)
            else:
                env.call_at(time, lambda: item.due(env.now))

        for number, (time, on_agenda, delay) in enumerate(wanted):
            add(time, on_agenda, delay, str(number))
        env.run_to()
        return log, env.events, env.now

    assert play(True) == play(False)
