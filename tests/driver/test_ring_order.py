"""The ring and the CAM before it: who comes first, and what is dropped and thrown away on the way."""

from types import SimpleNamespace

import pytest

from gpusim.driver.ring_order import RingOrder
from gpusim.driver.waiting import Granule

APP = SimpleNamespace(number=0)
COST = 10


def granule(pages=1, *, ready_ps=None):
    """One whose pages were sent long ago; `ready_ps` is the end of the window of its range."""
    made = Granule(0, None, APP)
    made.faults = {page: SimpleNamespace(sent_ps=-100) for page in range(pages)}
    if ready_ps is not None:
        made.group = SimpleNamespace(ready_ps=ready_ps)
    return made


def order(cam, *pages, draws=(0.0,)):
    ring = RingOrder(cam, cost_ps=COST, delivery_ps=4, thrown={}, draws=[*draws[-1:], *draws[:-1]])
    for page in pages:
        ring.sent(page)
    return ring


def test_vectors_come_in_the_order_in_which_they_were_sent():
    a, b = granule(2), granule()
    ring = order(8, a, a, b)
    assert ring.meet(0) == (0, a)
    ring.take()
    ring.served(a)
    assert ring.meet(50) == (50 + COST, b)
    assert ring.thrown == {0: 1}


def test_only_what_lies_ahead_of_the_next_granule_is_thrown_away_before_it():
    a, b = granule(3), granule()
    ring = order(8, a, b, a, a)
    ring.meet(0)
    ring.take()
    ring.served(a)
    assert ring.meet(0) == (0, b)
    ring.take()
    assert ring.meet(0) == (2 * COST, None)
    assert ring.thrown == {0: 2}


def test_a_vector_is_met_when_it_has_been_delivered():
    a = granule()
    a.faults[0].sent_ps = 7
    assert order(8, a).meet(0) == (11, a)


def test_a_page_without_a_slot_gets_one_when_the_worker_has_taken_a_vector():
    a, b, c = granule(), granule(), granule()
    ring = order(1, a, b, c, draws=(0.99, 0.0))
    ring.meet(0)
    ring.take()
    assert ring.meet(0)[1] is c
    ring.take()
    assert ring.meet(0)[1] is b


def test_a_page_without_a_slot_that_is_mapped_meanwhile_costs_nothing():
    a, b = granule(3), granule()
    ring = order(1, a, a, a, b)
    ring.meet(0)
    ring.take()
    ring.served(a)
    at, found = ring.meet(0)
    assert (at, found) == (COST, b)  # one of them had got the slot


def test_vectors_of_a_dead_process_cost_nothing():
    a, b = granule(2), granule()
    ring = order(4, a, a, b)
    a.gone = True
    assert ring.meet(0) == (0, b)
    assert ring.thrown == {}


def test_a_vector_inside_the_window_is_dropped_and_sent_again():
    a, b = granule(ready_ps=1000), granule()
    ring = order(4, a, b)
    assert ring.meet(0) == (COST, b)
    assert ring.skipped == {0: 1.0}
    ring.take()
    assert ring.meet(1000) == (1000, a)


def test_a_window_may_end_while_the_worker_drops():
    a = granule(ready_ps=3 * COST)
    ring = order(4, a)
    assert ring.meet(0) == (3 * COST, a)
    assert ring.skipped == {0: 3.0}


def test_those_that_all_have_a_slot_keep_their_order_as_they_go_round():
    pages = [granule(ready_ps=0) for _ in range(3)]
    ring = order(4, *pages)
    assert ring.go_round(7) == 0
    assert ring.meet(0)[1] is pages[7 % 3]


def test_what_was_served_is_thrown_away_in_the_first_turn():
    a, b = granule(2), granule(ready_ps=0)
    ring = order(4, a, a, b)
    ring.meet(0)
    ring.take()
    ring.served(a)
    assert ring.go_round(5) == 1
    assert ring.thrown == {0: 1}
    assert ring.meet(0) == (0, b)


@pytest.mark.parametrize("first", range(4))
def test_after_a_turn_of_a_full_cam_anybody_may_come_first(first):
    pages = [granule(ready_ps=0) for _ in range(4)]
    ring = order(2, *pages, draws=(first / 4, 0.0))
    ring.go_round(100)
    met = []
    for _ in pages:
        met.append(ring.meet(0)[1])
        ring.take()
    assert {id(page) for page in met} == {id(page) for page in pages}
    assert ring.meet(0)[1] is None


def test_half_of_what_is_served_after_a_turn_was_in_a_ring_that_holds_half():
    a, others = granule(9), [granule(ready_ps=0) for _ in range(9)]
    ring = order(9, *[a] * 9, *others, draws=(0.0,))
    ring.go_round(100)
    while ring.meet(0)[1] is not a:
        ring.take()
    ring.take()
    ring.served(a)
    assert 0 < ring.go_round(100) < 8
