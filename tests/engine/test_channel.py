"""A shared memory channel, told in small stories. 1 TB/s is a byte per picosecond."""

import pytest

from gpusim.engine.channel import Channel
from gpusim.engine.environment import Environment

TB_S = 1e12


@pytest.fixture
def env():
    return Environment()


@pytest.fixture
def hbm(env):
    return Channel(env, "hbm", capacity_bytes_per_s=TB_S)


class Told(list):
    """Who was called, and when."""

    def __init__(self, env):
        self.env = env

    def by(self, name):
        return lambda: self.append((name, self.env.now))


@pytest.fixture
def told(env):
    return Told(env)


def test_two_equal_jobs_take_twice_as_long(env, hbm, told):
    waves = hbm.job_class(None)
    waves.enter(1000, told.by("a"))
    waves.enter(1000, told.by("b"))
    env.run_to()
    assert told == [("a", 2000), ("b", 2000)]


def test_who_comes_later_slows_down_who_is_there(env, hbm, told):
    waves = hbm.job_class(None)
    waves.enter(1000, told.by("first"))
    env.call_at(500, lambda: waves.enter(1000, told.by("second")))
    env.run_to()
    assert told == [("first", 1500), ("second", 2000)]


def test_capped_jobs_do_not_notice_each_other_until_the_memory_is_full(env, hbm, told):
    waves = hbm.job_class(0.25 * TB_S)
    for name in "abcd":
        waves.enter(1000, told.by(name))
    env.run_to()
    assert {when for _, when in told} == {4000}
    for name in "abcde":
        waves.enter(1000, told.by(name))
    env.run_to()
    assert {when for _, when in told[4:]} == {9000}


def test_a_class_leaves_to_others_what_its_cap_does_not_use(env, hbm, told):
    hbm.job_class(0.1 * TB_S).enter(100, told.by("slow"))
    hbm.job_class(None).enter(900, told.by("fast"))
    env.run_to()
    assert told == [("slow", 1000), ("fast", 1000)]


def test_a_group_of_64_is_as_slow_as_64_jobs(env, hbm, told):
    waves = hbm.job_class(None)
    waves.enter_group(64 * 1000, 64, told.by("group"))
    waves.enter(1000, told.by("single"))
    env.run_to()
    assert told == [("group", 65_000), ("single", 65_000)]


def test_a_group_that_is_cut_tells_what_it_has_moved_and_nobody_is_called(env, hbm, told):
    waves = hbm.job_class(None)
    group = waves.enter_group(3000, 3, told.by("group"))
    waves.enter(1000, told.by("single"))
    env.call_at(2000, lambda: told.append(("cut", group.cut())))
    env.run_to()
    assert told == [("cut", 1500), ("single", 2500)]
    assert (group.moved_bytes, group.end_ps) == (1500, 2000)
    assert hbm.use.amount == hbm.entered_bytes == 2500


def test_a_group_may_be_shortened_but_not_below_what_it_has_moved(env, hbm, told):
    group = hbm.job_class(None).enter_group(10_000, 10, told.by("group"))
    env.call_at(1000, lambda: group.resize(4000))
    env.call_at(3000, lambda: group.resize(1000))
    env.run_to()
    assert told == [("group", 3001)]
    assert group.moved_bytes == group.size_bytes == 3000


def test_a_lighter_group_leaves_more_to_others(env, hbm, told):
    waves = hbm.job_class(None)
    group = waves.enter_group(3000, 3, told.by("group"))
    waves.enter(1000, told.by("single"))
    env.call_at(2000, lambda: group.reweight(1))
    env.run_to()
    assert told == [("single", 3000), ("group", 4000)]


def test_time_at_the_cap_is_compute_and_the_rest_is_waiting_for_memory(env, hbm, told):
    waves = hbm.job_class(0.5 * TB_S)
    group = waves.enter_group(2000, 1, told.by("group"))
    env.call_at(1000, lambda: waves.enter_group(3000, 3, told.by("others")))
    env.run_to()
    assert told[0] == ("others", 5000)
    assert told[1] == ("group", 6000)
    assert group.alone_ps == 4000
    assert group.capped_ps == 1000 + 1000
    assert waves.capped_ps == 2000


def test_what_enters_when_another_ends_takes_its_place(env, hbm, told):
    waves = hbm.job_class(None)
    left = 3

    def again():
        nonlocal left
        told.append(("again", env.now))
        left -= 1
        if left:
            waves.enter(100, again)

    waves.enter(100, again)
    waves.enter(1000, told.by("long"))
    env.run_to()
    assert told == [("again", 200), ("again", 400), ("again", 600), ("long", 1300)]


def test_jobs_that_end_together_are_told_by_class_and_then_in_the_order_in_which_they_came(env, hbm, told):
    hbm.job_class(None).enter(400, told.by("first"))
    hbm.job_class(0.2 * TB_S).enter(200, told.by("second"))
    hbm.job_class(None).enter(400, told.by("third"))
    env.run_to()
    assert told == [("second", 1000), ("first", 1000), ("third", 1000)]


def test_a_job_that_ends_may_cut_another_that_ends_at_the_same_time(env, hbm, told):
    waves = hbm.job_class(None)
    waves.enter(1000, lambda: told.append(("cut", other.cut())))
    other = waves.enter_group(1000, 1, told.by("other"))
    env.run_to()
    assert told == [("cut", 1000)]


def test_nothing_ends_before_a_picosecond_has_passed(env, hbm, told):
    waves = hbm.job_class(None)
    waves.enter(0, told.by("empty"))
    waves.enter_group(0, 5, told.by("empty group"))
    env.run_to()
    assert told == [("empty", 1), ("empty group", 1)]
    waves.enter(1, told.by("byte"))
    env.run_to()
    assert told[2:] == [("byte", 2)]


def test_an_end_between_two_picoseconds_is_the_later_one(env, told):
    channel = Channel(env, "hbm", capacity_bytes_per_s=3 * TB_S)
    channel.job_class(None).enter(1000, told.by("a"))
    env.run_to()
    assert told == [("a", 334)]


def test_half_a_load_is_half_busy(env, hbm):
    hbm.job_class(0.5 * TB_S).enter(10_000, lambda: None)
    env.run_to()
    assert env.now == 20_000
    assert hbm.use.amount == 10_000
    assert hbm.use.busy_fraction(20_000) == 0.5
    assert [amount for _, _, amount in hbm.use.rows()] == [500] * 20


def test_use_can_be_read_on_the_way(env, hbm):
    hbm.job_class(None).enter(10_000, lambda: None)
    env.run_to(2500)
    assert hbm.use.amount == hbm.use.busy_ps == 2500
    env.run_to()
    assert hbm.use.amount == 10_000


def test_petabytes_lose_no_picosecond(env, hbm, told):
    """Virtual time is taken back to zero on the way, with single jobs and groups in flight."""
    waves = hbm.job_class(None)
    waves.enter_group(3 * 10**13, 2, told.by("group"))
    left = 40

    def again():
        nonlocal left
        left -= 1
        if left:
            waves.enter(10**12, again)
        else:
            told.append(("single", env.now))

    waves.enter(10**12, again)
    env.run_to()
    # two thirds of the rate until 1.5 x 10**13 each, then the single ones have it all
    assert told == [("group", 45 * 10**12), ("single", 70 * 10**12)]


def test_jobs_that_were_cut_leave_nothing_behind(env, hbm):
    waves = hbm.job_class(None)
    for _ in range(1000):
        for _ in range(10):
            waves.enter_group(10**9, 1, None).cut()
    assert len(waves.ends) <= 2
    assert hbm.jobs == 0
    env.run_to()
    assert hbm.use.amount == hbm.entered_bytes == 0


def test_a_closed_loop_of_jobs_takes_one_wakeup_each(env, hbm):
    waves = hbm.job_class(0.01 * TB_S)
    left = 5000

    def again(size):
        def resume():
            nonlocal left
            left -= 1
            if left >= 0:
                waves.enter(size, resume)

        return resume

    for wave in range(200):
        waves.enter(65_536 + wave, again(65_536 + wave))
    env.run_to()
    assert hbm.wakeups <= 1.1 * 5200


@pytest.mark.parametrize("size", [-1, -(2**40)])
def test_a_negative_size_is_refused(hbm, size):
    with pytest.raises(ValueError, match="0 bytes or more"):
        hbm.job_class(None).enter(size, lambda: None)
    with pytest.raises(ValueError, match="0 bytes or more"):
        hbm.job_class(None).enter_group(size, 1, None)


@pytest.mark.parametrize("rate", [0, -1.0, float("nan"), float("inf"), 1e15])
def test_a_rate_that_makes_no_sense_is_refused(env, hbm, rate):
    with pytest.raises(ValueError, match="hbm: cap"):
        hbm.job_class(rate)
    with pytest.raises(ValueError, match="other: capacity"):
        Channel(env, "other", capacity_bytes_per_s=rate)


@pytest.mark.parametrize("weight", [0, -1, 1.5])
def test_a_weight_that_makes_no_sense_is_refused(hbm, weight):
    with pytest.raises(ValueError, match=r"weight|whole number"):
        hbm.job_class(None).enter_group(1, weight, None)
