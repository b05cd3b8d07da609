"""When a GPU's memory was busy: what ran free counts for the time in which it ran, not while others share."""

from gpusim.engine.environment import Environment
from gpusim.hardware.memory import Memory

RATE = 100e9  # bytes a second: 0.1 a picosecond


def finished(memory, env, size, cap):
    """A job that is not a wavefront's, which makes all of them share."""
    memory.job_class(cap).enter(size, lambda: None)
    env.run_to()


def test_bytes_that_ran_free_are_not_spread_over_the_time_in_which_others_fill_the_memory():
    env = Environment()
    memory = Memory(env, "hbm", capacity_bytes_per_s=RATE)
    memory.moved += 1_000  # a wavefront's job has ended, in a bin that has not
    env.call_at(20_000, lambda: None)
    env.run_to()
    finished(memory, env, 1_000_000, RATE)
    use = memory.use
    assert use.amount == 1_001_000
    assert all(busy <= use.width_ps for _, busy, _ in use.rows())


def test_what_runs_free_after_a_full_stretch_is_not_spread_back_over_it():
    env = Environment()
    memory = Memory(env, "hbm", capacity_bytes_per_s=RATE)
    finished(memory, env, 1_000_000, RATE)
    assert not memory.share()  # nobody shares any more
    memory.moved += 1_000
    env.call_at(env.now + 20_000, lambda: None)
    env.run_to()
    use = memory.use
    assert use.amount == 1_001_000
    assert all(busy <= use.width_ps for _, busy, _ in use.rows())
