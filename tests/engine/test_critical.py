"""Walking the critical path of recorded spans, and timing them anew with other lengths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine.critical import Graph, kinds_on, path, time_by_kind
from gpusim.engine.record import Chain, Mode, Recorder

WORK, COPY, WAIT = 0, 1, 2


@pytest.fixture
def recorder():
    return Recorder(Mode.SPANS, 3)


def faster(recorder, kind, pace):
    """The makespan if a kind took `pace` times as long."""
    spans = recorder.table()
    graph = Graph(spans)
    lengths = np.where(spans["kind"] == kind, np.rint(graph.lengths * pace), graph.lengths)
    return graph.makespan(lengths.astype(np.int64))


def test_the_path_of_one_chain_is_all_of_it(recorder):
    chain = Chain(recorder)
    chain.spend(WORK, 10)
    chain.spend(COPY, 25)
    recorder.close(WAIT, 25, [chain.row])
    spans = recorder.table()
    assert path(spans["released_by"]).tolist() == [0, 1, 2]
    assert kinds_on(spans, path(spans["released_by"]), 3) == [10, 15, 0]
    assert faster(recorder, WORK, 1.0) == 25
    assert faster(recorder, COPY, 0.0) == 10


def two_that_meet(recorder):
    """One works for 100, the other copies for 60; the first waits for neither, then it goes on for 6."""
    slow, quick = Chain(recorder, 0), Chain(recorder, 1)
    slow.spend(WORK, 100)
    quick.spend(COPY, 60)
    slow.meet(WAIT, quick.row)
    slow.spend(COPY, 106)
    recorder.close(WAIT, 106, [slow.row])


def test_what_is_hidden_behind_the_path_limits_what_can_be_gained(recorder):
    """By shares alone, free work would leave 6; but then the copy of 60 is what is waited for."""
    two_that_meet(recorder)
    assert faster(recorder, WORK, 0.8) == 86
    assert faster(recorder, WORK, 0.5) == 66
    assert faster(recorder, WORK, 0.0) == 66


def test_what_is_off_the_path_gains_nothing_by_itself(recorder):
    two_that_meet(recorder)
    assert faster(recorder, COPY, 0.5) == 103  # the copy of 6 only


def test_who_waits_goes_on_with_who_releases_it(recorder):
    server, waiter = Chain(recorder, 0), Chain(recorder, 1)
    waiter.spend(WORK, 10)
    server.spend(COPY, 40)
    waiter.released(WAIT, server.snapshot(), 40)
    waiter.spend(WORK, 50)
    recorder.close(WAIT, 50, [waiter.row])
    assert faster(recorder, COPY, 0.5) == 30
    assert faster(recorder, WORK, 0.5) == 45


def test_the_longer_of_two_things_side_by_side_sets_the_pace(recorder):
    chain = Chain(recorder)
    chain.beside(COPY, 30, WORK, 20)
    recorder.close(WAIT, 30, [chain.row])
    assert chain.sums == [0, 30, 0]
    assert faster(recorder, COPY, 0.5) == 20
    assert faster(recorder, WORK, 0.5) == 30


def test_a_delay_runs_from_what_began_it_and_not_from_where_it_is_noticed(recorder):
    """A window of 100 that began at 10; the chain worked until 60 meanwhile."""
    chain = Chain(recorder)
    chain.spend(WORK, 10)
    began = chain.row
    chain.spend(WORK, 60)
    chain.spend(WAIT, 110, alone_ps=100, behind=began)
    recorder.close(COPY, 110, [chain.row])
    assert faster(recorder, WORK, 0.5) == 105
    assert faster(recorder, WAIT, 0.5) == 60
    assert faster(recorder, WAIT, 0.8) == 90


def test_the_end_waits_for_all_who_have_to_come_there(recorder):
    one, other = Chain(recorder, 0), Chain(recorder, 1)
    one.spend(WORK, 100)
    other.spend(COPY, 90)
    recorder.close(WAIT, 100, [one.row, other.row])
    assert faster(recorder, WORK, 0.5) == 90


def test_time_and_waiting_of_all_spans_add_up(recorder):
    for who in range(5):
        chain = Chain(recorder, who)
        chain.spend(WORK, 10)
        chain.spend(COPY, 30, alone_ps=5)
    assert time_by_kind(recorder.table(), 3) == ([50, 100, 0], [0, 75, 0])


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 50), st.integers(0, 3)), max_size=60
    )
)
def test_any_program_of_chains_that_wait_for_each_other_is_tiled_and_timed_as_it_was(steps):
    """Retiming with the lengths as they were gives the time as it was; the path tiles it."""
    recorder = Recorder(Mode.SPANS, 3)
    chains = [Chain(recorder, who) for who in range(4)]
    for who, kind, length, other in steps:
        chain, by = chains[who], chains[other]
        chain.spend(kind, chain.time_ps + length)
        if by.time_ps > chain.time_ps:
            chain.released(WAIT, by.snapshot(), by.time_ps)
        else:
            chain.meet(WAIT, by.row)
    last, *others = sorted(chains, key=lambda chain: -chain.time_ps)
    recorder.close(WAIT, last.time_ps, [last.row, *(chain.row for chain in others if chain.row)])
    spans = recorder.table()
    assert kinds_on(spans, path(spans["released_by"]), 3) == last.sums
    graph = Graph(spans)
    assert graph.makespan(graph.lengths) == last.time_ps
    assert graph.makespan(graph.lengths * 3) == 3 * last.time_ps


def test_two_sets_of_lengths_are_timed_at_once(recorder):
    two_that_meet(recorder)
    graph = Graph(recorder.table())
    assert graph.makespans(graph.lengths, graph.lengths * 2) == (106, 212)


def test_rows_that_only_follow_each_other_are_timed_as_one(recorder):
    """However long two chains are, what is left to time is where they meet; what nobody reads is not timed at all."""
    slow, quick, unread = Chain(recorder, 0), Chain(recorder, 1), Chain(recorder, 2)
    for step in range(1, 1001):
        slow.spend(WORK, 100 * step)
        quick.spend(COPY, 60 * step)
        unread.spend(COPY, step)
    slow.meet(WAIT, quick.row)
    slow.spend(COPY, 100_006)
    recorder.close(WAIT, 100_006, [slow.row])
    spans = recorder.table()
    graph = Graph(spans)
    assert len(spans) > 3000
    assert graph.nodes <= 4
    assert faster(recorder, WORK, 0.5) == 60_006
    assert faster(recorder, COPY, 0.5) == 100_003
