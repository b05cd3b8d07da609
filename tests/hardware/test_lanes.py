"""Lanes of one instruction over several pages: each is served exactly once, whatever happens to the pages."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.hardware.lanes import LaneAccess, lanes_in

PAGES = st.lists(st.integers(0, 9), min_size=1, max_size=64)
EVENTS = st.lists(st.tuples(st.sampled_from(["map", "evict", "resend"]), st.integers(0, 9)), max_size=60)


def test_lanes_whose_page_is_there_go_ahead():
    access = LaneAccess([7, 8, 7, 9])
    assert access.issue(lambda page: page != 7) == {8: 0b0010, 9: 0b1000}
    assert (access.served, access.pending) == (0b0101, 0b1010)


def test_a_replay_serves_the_lanes_of_its_page_only():
    access = LaneAccess([7, 8, 7, 9])
    access.issue(lambda page: True)
    assert access.replay(7) == 0b0101
    assert access.replay(7) == 0
    assert not access.done
    access.replay(8)
    access.replay(9)
    assert access.done


def test_numbers_of_lanes():
    assert list(lanes_in(0b101001)) == [0, 3, 5]


@settings(max_examples=500, deadline=None)
@given(pages=PAGES, mapped=st.sets(st.integers(0, 9)), events=EVENTS)
def test_atomics_and_stores_are_done_exactly_once(pages, mapped, events):
    """Pages come and go between the re-sends; a re-send that finds its page replays what still waits for it."""
    counters = [0] * len(pages)  # what an atomic add of each lane leaves

    def add(lane):
        assert pages[lane] in there, "a lane must not touch a page that is missing"
        counters[lane] += 1

    there = set(mapped)
    access = LaneAccess(pages, add)
    access.issue(lambda page: page not in there)
    assert counters == [int(page in mapped) for page in pages]
    for what, page in events:
        if what == "map":
            there.add(page)
        elif what == "evict":
            there.discard(page)
        elif page in access.waiting() and page in there:
            access.replay(page)
        assert max(counters) <= 1
        assert access.served & access.pending == 0
        assert access.served | access.pending == (1 << len(pages)) - 1
    for page in list(access.waiting()):
        there.add(page)
        access.replay(page)
    assert access.done
    assert counters == [1] * len(pages)
