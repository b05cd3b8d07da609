"""The ring and the CAM before it: who comes first, and what is thrown away on the way."""

from types import SimpleNamespace

from gpusim.driver.ring_order import RingOrder


def granule(name):
    return SimpleNamespace(name=name, served=False, gone=False)


def order(cam, *pages, draw=0.0):
    ring = RingOrder(cam, lambda: draw)
    for page in pages:
        ring.sent(page)
    return ring


def test_vectors_come_in_the_order_in_which_they_were_sent():
    a, b = granule("a"), granule("b")
    ring = order(8, a, a, b)
    assert ring.first() is a
    ring.take()
    a.served = True
    assert ring.throw_away() == [a]
    assert ring.first() is b


def test_only_what_lies_ahead_of_the_next_granule_is_thrown_away_before_it():
    a, b = granule("a"), granule("b")
    ring = order(8, a, b, a, a)
    ring.take()
    a.served = True
    assert ring.throw_away() == []
    assert ring.first() is b
    ring.take()
    assert ring.throw_away() == [a, a]


def test_a_page_without_a_slot_gets_one_when_the_worker_has_taken_a_vector():
    a, b, c = granule("a"), granule("b"), granule("c")
    ring = order(1, a, b, c, draw=0.99)
    ring.take()
    assert ring.first() is c
    ring.take()
    assert ring.first() is b


def test_a_page_without_a_slot_that_is_mapped_meanwhile_costs_nothing():
    a, b = granule("a"), granule("b")
    ring = order(1, a, a, a, b)
    a.served = True
    assert ring.throw_away() == [a]
    assert ring.first() is b


def test_vectors_that_were_paid_for_are_forgotten():
    a, b = granule("a"), granule("b")
    ring = order(4, a, a, b)
    a.gone = True
    assert ring.throw_away() == []
    assert ring.first() is b
