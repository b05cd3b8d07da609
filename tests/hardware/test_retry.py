"""Re-sends are arithmetic: the same times and counts as sending one by one."""

from hypothesis import given
from hypothesis import strategies as st

from gpusim.hardware.retry import first_send_after, sends_until

periods = st.integers(1, 50)
times = st.integers(0, 1000)


def sends(first, tick, period, until):
    """All sends, one by one: the first, then at each tick."""
    yield first
    while tick <= until:
        yield tick
        tick += period


@given(times, times, periods)
def test_a_wait_ends_at_the_first_send_after_the_page_is_valid(valid, phase, period):
    tick = 1 + phase % period  # the first re-send comes within a period
    found = first_send_after(valid, tick, period)
    later = [time for time in sends(0, tick, period, valid + 2 * period) if time > valid]
    assert found == later[0]
    assert 0 < found - valid <= max(period, tick)


@given(times, times, periods)
def test_sends_are_counted_as_if_one_by_one(now, phase, period):
    tick = 1 + phase % period
    assert sends_until(now, tick, period) == len(
        [time for time in sends(0, tick, period, now) if time <= now]
    )
