"""A bounded buffer and its three ways to overflow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine.ring import Ring


def fill(overflow):
    ring = Ring(2, overflow)
    return ring, [ring.push(entry) for entry in "abc"]


def test_the_newest_is_dropped():
    ring, pushed = fill("drop_newest")
    assert pushed == [True, True, False]
    assert [ring.pop(), ring.pop()] == ["a", "b"]
    assert (ring.pushed, ring.dropped, ring.popped, ring.peak) == (3, 1, 2, 2)


def test_the_oldest_is_dropped():
    ring, pushed = fill("drop_oldest")
    assert pushed == [True, True, True]
    assert ring.peek() == "b"
    assert [ring.pop(), ring.pop()] == ["b", "c"]


def test_the_producer_waits():
    ring = Ring(1, "block")
    told = []
    assert ring.push("a", lambda: told.append("a"))
    assert not ring.push("b", lambda: told.append("b"))
    assert not ring.push("c")
    assert (told, ring.blocked, ring.full) == ([], 2, True)
    assert ring.pop() == "a"
    assert told == ["b"]
    assert [ring.pop(), ring.pop()] == ["b", "c"]
    assert not ring.full


@given(st.sampled_from(["drop_newest", "drop_oldest", "block"]), st.integers(1, 4), st.lists(st.booleans()))
def test_every_entry_is_accounted_for(overflow, capacity, pushes):
    ring = Ring(capacity, overflow)
    for number, push in enumerate(pushes):
        if push:
            ring.push(number)
        elif len(ring):
            ring.pop()
        assert ring.pushed == ring.popped + ring.dropped + len(ring) + ring.blocked
        assert len(ring) <= ring.peak <= capacity


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        Ring(0)
    with pytest.raises(ValueError, match="overflow"):
        Ring(1, "explode")
    with pytest.raises(IndexError):
        Ring(1).pop()
