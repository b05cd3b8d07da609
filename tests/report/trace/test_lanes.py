"""Slices of one track follow each other or nest; others go to further lanes."""

from hypothesis import given
from hypothesis import strategies as st

from gpusim.report.trace.lanes import assign


def test_what_follows_and_what_nests_share_a_lane():
    assert assign([(0, 10), (10, 20), (12, 15), (12, 20)], 9) == [0, 0, 0, 0]


def test_what_overlaps_does_not():
    assert assign([(0, 10), (5, 15), (10, 20)], 9) == [0, 1, 0]


def test_more_than_the_lanes_hold_has_none():
    assert assign([(0, 10), (1, 11), (2, 12), (12, 13)], 2) == [0, 1, None, 0]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=40), st.integers(1, 6))
def test_in_each_lane_any_two_follow_each_other_or_one_holds_the_other(pairs, most):
    times = [(start, start + length) for start, length in pairs]
    lanes = assign(times, most)
    for one, (start, end) in zip(lanes, times, strict=True):
        for other, (first, last) in zip(lanes, times, strict=True):
            if one is None or one != other:
                continue
            apart = end <= first or last <= start
            nested = (start <= first and last <= end) or (first <= start and end <= last)
            assert apart or nested
