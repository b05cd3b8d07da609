"""Chains carry the critical path; spans are its rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine.record import NO_ROW, Chain, Mode, Recorder

WORK, WAIT, COPY = 0, 1, 2


@pytest.fixture
def recorder():
    return Recorder(Mode.SUMMARY, 3)


@pytest.fixture
def spans():
    return Recorder(Mode.SPANS, 3)


def test_a_chain_sums_up_what_its_time_was_spent_on(recorder):
    chain = Chain(recorder)
    chain.spend(WORK, 10)
    chain.spend(COPY, 15)
    chain.spend(WORK, 30)
    assert chain.sums == [25, 0, 5]
    assert chain.time_ps == 30


def test_time_that_has_passed_already_is_not_spent_twice(recorder):
    chain = Chain(recorder)
    chain.spend(WORK, 10)
    chain.spend(COPY, 10)
    chain.spend(COPY, 4)
    assert chain.sums == [10, 0, 0]
    assert chain.time_ps == 10


def test_who_was_released_takes_over_the_path_of_the_one_that_released_it(recorder):
    worker, waiter = Chain(recorder), Chain(recorder)
    waiter.spend(WORK, 3)
    worker.spend(COPY, 20)
    waiter.follow(worker.snapshot(), 20)
    waiter.spend(WORK, 22)
    assert waiter.sums == [2, 0, 20]
    assert worker.sums == [0, 0, 20]  # it keeps its own


def test_a_snapshot_does_not_change_when_its_chain_goes_on(recorder):
    chain = Chain(recorder)
    chain.spend(WORK, 5)
    before = chain.snapshot()
    chain.spend(WORK, 9)
    assert before[0] == [5, 0, 0]


def test_nothing_is_summed_up_when_recording_is_off_but_time_passes():
    chain = Chain(Recorder(Mode.OFF, 3))
    chain.spend(WORK, 10)
    assert chain.time_ps == 10
    assert chain.sums == [0, 0, 0]


def test_each_stretch_is_a_row_that_the_one_before_let_start(spans):
    chain = Chain(spans, spans.actor("thread"))
    chain.spend(WORK, 10)
    chain.spend(COPY, 15, alone_ps=2, behind=77)
    table = spans.table()
    assert table["kind"].tolist() == [WORK, COPY]
    assert table["start_ps"].tolist() == [0, 10]
    assert table["end_ps"].tolist() == [10, 15]
    assert table["alone_ps"].tolist() == [10, 2]
    assert table["queued_behind"].tolist() == [NO_ROW, 77]
    assert table["released_by"].tolist() == [NO_ROW, 1]  # row numbers start at 1
    assert spans.actors == ["thread"]


def test_a_span_takes_at_most_48_bytes(spans):
    assert spans.table().itemsize <= 48


def test_more_rows_than_a_chunk_holds_stay_in_order(spans):
    rows = (1 << 16) + 10
    for row in range(rows):
        assert spans.span(0, WORK, row, row + 1) == row + 1
    table = spans.table()
    assert len(table) == rows
    assert np.array_equal(table["start_ps"], np.arange(rows))


def test_no_rows_are_an_empty_table(spans):
    assert len(spans.table()) == 0


steps = st.lists(
    st.one_of(
        st.tuples(st.just("spend"), st.integers(0, 3), st.integers(0, 2), st.integers(0, 100)),
        st.tuples(st.just("follow"), st.integers(0, 3), st.integers(0, 3), st.just(0)),
    ),
    max_size=60,
)


@given(steps)
def test_the_kinds_of_a_chain_tile_its_time_and_so_do_its_rows(script):
    """Whatever actors do and whoever releases them: sums make up the time, and rows walk back to zero."""
    recorder = Recorder(Mode.SPANS, 3)
    chains = [Chain(recorder, who) for who in range(4)]
    now = 0
    for what, who, other, amount in script:
        if what == "spend":
            chains[who].spend(other, chains[who].time_ps + amount)
            now = max(now, chains[who].time_ps)
        elif chains[other].time_ps >= chains[who].time_ps:
            chains[who].follow(chains[other].snapshot(), chains[other].time_ps)
    table = recorder.table()
    for chain in chains:
        assert sum(chain.sums) == chain.time_ps
        row, end, sums = chain.row, chain.time_ps, [0, 0, 0]
        while row != NO_ROW:
            span = table[row - 1]
            assert span["end_ps"] == end
            end = int(span["start_ps"])
            sums[int(span["kind"])] += int(span["end_ps"]) - end
            row = int(span["released_by"])
        assert end == 0
        assert sums == chain.sums
