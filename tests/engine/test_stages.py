"""Serial work as stages: fixed times are arithmetic, transfers are waited for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine.environment import Environment
from gpusim.engine.record import Chain, Mode, Recorder
from gpusim.engine.stages import Do, Transfer, Until, run_stages
from gpusim.errors import SimulatedFailure

CPU, LINK, SERVER = 0, 1, 2


class Bench:
    """An environment with one chain, and what became of the work."""

    def __init__(self):
        self.env = Environment()
        self.chain = Chain(Recorder(Mode.SUMMARY, 3))
        self.ended = []
        self.failed = []

    def work(self, stages):
        run_stages(
            self.env,
            self.chain,
            stages,
            lambda: self.ended.append(self.env.now),
            lambda failure: self.failed.append((self.env.now, failure.outcome)),
        )
        self.env.run_to()

    def transfer(self, length, beside=None, log=None):
        def start(done):
            if log is not None:
                log.append(self.env.now)
            self.env.call_at(self.env.now + length, done)

        return Transfer(LINK, start, beside)


@pytest.fixture
def bench():
    return Bench()


def test_fixed_stages_are_one_event_at_their_end(bench):
    def stages():
        yield CPU, 10
        yield SERVER, 5
        yield CPU, 1

    bench.work(stages())
    assert bench.ended == [16]
    assert bench.chain.sums == [11, 0, 5]
    assert bench.env.events == 1


def test_work_without_stages_ends_at_once(bench):
    bench.work(iter_nothing())
    assert bench.ended == [0]
    assert bench.env.events == 0


def iter_nothing():
    return
    yield


def test_the_generator_is_told_the_time_that_it_has_reached(bench):
    reached = []

    def stages():
        reached.append((yield CPU, 10))
        reached.append((yield Until(SERVER, 25)))
        reached.append((yield bench.transfer(5)))

    bench.work(stages())
    assert reached == [10, 25, 30]


def test_the_end_of_a_reservation_that_has_passed_costs_nothing(bench):
    def stages():
        yield CPU, 10
        yield Until(SERVER, 4)

    bench.work(stages())
    assert bench.ended == [10]
    assert bench.chain.sums == [10, 0, 0]


def test_a_transfer_starts_when_the_stages_before_it_have_passed(bench):
    started = []

    def stages():
        yield CPU, 10
        yield bench.transfer(7, log=started)
        yield CPU, 1

    bench.work(stages())
    assert started == [10]
    assert bench.ended == [18]
    assert bench.chain.sums == [11, 7, 0]


@pytest.mark.parametrize(("beside", "end", "sums"), [(3, 7, [0, 7, 0]), (9, 9, [9, 0, 0]), (7, 7, [0, 7, 0])])
def test_of_two_at_once_the_longer_gets_the_whole_stretch(bench, beside, end, sums):
    def stages():
        yield bench.transfer(7, beside=(CPU, beside))

    bench.work(stages())
    assert bench.ended == [end]
    assert bench.chain.sums == sums


def test_an_act_happens_at_the_time_reached(bench):
    acts = []

    def stages():
        yield Do(lambda: acts.append(bench.env.now))
        yield CPU, 10
        yield Do(lambda: acts.append(bench.env.now))
        yield CPU, 2

    bench.work(stages())
    assert acts == [0, 10]
    assert bench.ended == [12]


def test_work_may_begin_ahead_of_the_clock(bench):
    bench.chain.spend(SERVER, 100)

    def stages():
        yield CPU, 10

    bench.work(stages())
    assert bench.ended == [110]


def test_a_failure_is_told_when_the_work_has_come_to_it(bench):
    def stages():
        yield CPU, 10
        raise SimulatedFailure("out_of_memory", "no room")

    bench.work(stages())
    assert bench.ended == []
    assert bench.failed == [(10, "out_of_memory")]


def test_a_failure_in_an_act_is_told_too(bench):
    def fails():
        raise SimulatedFailure("hip_error", "broken")

    def stages():
        yield CPU, 10
        yield Do(fails)

    bench.work(stages())
    assert bench.failed == [(10, "hip_error")]


pieces = st.lists(
    st.one_of(
        st.tuples(st.just("fixed"), st.integers(0, 50)),
        st.tuples(st.just("until"), st.integers(0, 500)),
        st.tuples(st.just("transfer"), st.integers(0, 50)),
        st.tuples(st.just("act"), st.just(0)),
    ),
    max_size=20,
)


@given(pieces, st.integers(0, 30))
def test_stages_end_when_a_plain_sum_says(script, beside):
    bench = Bench()
    expected, acts, acted = 0, [], []

    def stages():
        for what, amount in script:
            if what == "fixed":
                yield CPU, amount
            elif what == "until":
                yield Until(SERVER, amount)
            elif what == "transfer":
                yield bench.transfer(amount, beside=(CPU, beside))
            else:
                yield Do(lambda: acted.append(bench.env.now))

    for what, amount in script:
        if what == "fixed":
            expected += amount
        elif what == "until":
            expected = max(expected, amount)
        elif what == "transfer":
            expected += max(amount, beside)
        else:
            acts.append(expected)
    bench.work(stages())
    assert bench.ended == [expected]
    assert acted == acts
    assert sum(bench.chain.sums) == expected
