"""Twice the footprint costs twice the events and twice the time: nothing grows faster than what is touched."""

from itertools import pairwise

import pytest

from tests.benchmarks.first_touch import cost, counts

EVENTS = 2.05


@pytest.mark.parametrize("allocator", ["malloc", "hipMallocManaged"])
def test_twice_the_footprint_takes_twice_the_events(allocator):
    (half, _), (whole, _) = counts(2, allocator), counts(4, allocator)
    assert whole <= EVENTS * half


@pytest.mark.timing
def test_from_4_to_128_gib(figure):
    """In bare timeouts, so that a machine that has become slower meanwhile does not count."""
    sizes = [4, 8, 16, 32, 64, 128]
    costs = [cost(gib, "malloc") for gib in sizes]
    steps = list(pairwise(costs))
    events = [whole.events / half.events for half, whole in steps]
    times = [2.0 * whole.ratio / half.ratio for half, whole in steps]
    each = ", ".join(f"{time:.2f}" for time in times)
    figure(
        "twice the footprint, 4 to 128 GiB by malloc: events", max(events), most=EVENTS, note="the largest"
    )
    figure("twice the footprint: time", max(times), most=2.3, note=f"the largest of {each}")
    assert max(events) <= EVENTS
