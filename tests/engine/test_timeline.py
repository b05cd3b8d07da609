"""Bins that double: nothing is lost, nothing is counted twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine.timeline import Timeline

intervals = st.lists(
    st.tuples(
        st.integers(0, 10**8), st.one_of(st.integers(0, 100), st.integers(0, 10**8)), st.integers(0, 10**12)
    ),
    max_size=20,
)


@given(intervals, st.sampled_from([2, 4, 512]))
def test_the_bins_add_up_to_what_was_put_in(intervals, bins):
    line = Timeline("link", bins=bins)
    for start, length, amount in intervals:
        line.add(start, start + length, amount)
    rows = line.rows()
    assert sum(busy for _, busy, _ in rows) == line.busy_ps == sum(length for _, length, _ in intervals)
    assert sum(amount for _, _, amount in rows) == line.amount == sum(amount for *_, amount in intervals)
    assert len(rows) <= bins


@given(intervals)
def test_a_bin_holds_its_part_of_each_interval(intervals):
    line = Timeline("link", bins=8)
    for start, length, amount in intervals:
        line.add(start, start + length, amount)
    for bin_start, busy, _ in line.rows():
        bin_end = bin_start + line.width_ps
        inside = [
            max(0, min(start + length, bin_end) - max(start, bin_start)) for start, length, _ in intervals
        ]
        assert busy == sum(inside)


def test_bins_double_when_time_runs_past_them():
    line = Timeline("link", bins=4)
    line.add(0, 1000, 10)
    line.add(3000, 4000, 20)
    assert line.rows() == [(0, 1000, 10), (1000, 0, 0), (2000, 0, 0), (3000, 1000, 20)]
    line.add(7000, 7001, 30)
    assert line.rows() == [(0, 1000, 10), (2000, 1000, 20), (4000, 0, 0), (6000, 1, 30)]


def test_half_busy_is_half_of_each_bin():
    line = Timeline("link", bins=4)
    line.add(0, 4000, 8, busy_ps=2000)
    assert line.rows() == [(0, 500, 2), (1000, 500, 2), (2000, 500, 2), (3000, 500, 2)]
    assert line.busy_fraction(4000) == 0.5
    assert line.busy_fraction(8000, lanes=2) == 0.125
    assert line.busy_fraction(0) == 0.0


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (2, 1)])
def test_an_interval_out_of_order_is_refused(start, end):
    with pytest.raises(ValueError, match="not an interval"):
        Timeline("link").add(start, end)


@pytest.mark.parametrize("bins", [0, 1, 7])
def test_bins_come_in_pairs(bins):
    with pytest.raises(ValueError, match="even"):
        Timeline("link", bins=bins)
