"""GART windows: migrations and clears of one GPU come one after another (`kfd_svm.md` 3.1)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.driver.gart import GartWindows
from gpusim.engine.environment import Environment
from gpusim.engine.record import Mode
from gpusim.machine.build import Machine
from tests.programs import GIB, launch, prefetch, process, run, scenario, touch

JOBS = 10


class Call:
    """A migration's copy: jobs from `at` on, then its turn, then `length` of copying."""

    def __init__(self, env, windows, at, length):
        self.env, self.windows, self.at, self.length = env, windows, at, length
        self.start = self.end = -1
        env.call_at(at + JOBS, lambda: windows.take(self.granted))

    def granted(self):
        again = self.windows.again_ps(JOBS, self.at + JOBS)
        self.start = self.env.now + again - JOBS
        self.env.call_at(self.env.now + again + self.length, self.ended)

    def ended(self):
        self.end = self.env.now
        self.windows.release()


def work_off(calls):
    """(start with its jobs, end) of calls (at, length)."""
    env = Environment()
    windows = GartWindows(env, "gart")
    made = [Call(env, windows, at, length) for at, length in calls]
    env.run_to()
    return [(call.start, call.end) for call in made], windows


def test_a_call_alone_waits_for_nothing():
    (turn,), windows = work_off([(100, 50)])
    assert turn == (100, 160)
    assert windows.waited == 0


def test_the_second_call_begins_with_its_jobs_when_the_first_has_ended():
    turns, windows = work_off([(100, 50), (120, 30)])
    assert turns == [(100, 160), (160, 200)]
    assert windows.waited_ps == 160 - 130


def test_jobs_that_overlap_the_end_of_another_turn_are_spent_in_part_again():
    turns, windows = work_off([(100, 50), (155, 30)])
    assert turns == [(100, 160), (160, 200)]
    assert windows.waited == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 2000), st.integers(1, 300)),
        min_size=1,
        max_size=12,
        unique_by=lambda c: c[0],
    )
)
def test_turns_never_overlap_and_nobody_idles_while_a_call_waits(calls):
    turns, _ = work_off(calls)
    ordered = sorted(turns)
    for (_, end), (start, _) in itertools.pairwise(ordered):
        assert start >= end
    for (at, length), (start, end) in zip(calls, turns, strict=True):
        assert start >= at
        assert end - start == JOBS + length
        assert start == at or any(other == start for _, other in turns)  # as soon as somebody has ended


def two_prefetches(gpus):
    """Two processes that prefetch 1 GiB at once, to one GPU or to one each; steps, and all runs' data."""
    buffers = {"x": "1GiB hipMallocManaged"}
    programs = [
        process(
            [touch("x"), prefetch("x", to=f"gpu{gpu}", name=f"move{number}")],
            name=f"p{number}",
            buffers=buffers,
        )
        for number, gpu in enumerate(gpus)
    ]
    return run(processes=programs, gpus=2)


def test_two_processes_that_migrate_to_one_gpu_take_turns():
    """1 GiB is one range, one call: the later one copies when the other one has."""
    apart, together = two_prefetches([0, 1]), two_prefetches([0, 0])
    alone = apart.duration("move0")
    assert apart.duration("move1") == pytest.approx(alone, rel=0.01)
    first, second = sorted(together.duration(f"move{number}") for number in range(2))
    assert first == pytest.approx(alone, rel=0.01)
    copying = GIB / 28e9
    assert second - first > 0.7 * copying
    (lock,) = [use for use in together.data.uses if use.name == "gpu[0].gart"]
    assert lock.busy_ps <= together.makespan_ps
    assert not [use for use in apart.data.uses if use.name.endswith(".gart")]


class NoWindows:
    """No lock at all."""

    taken, free_ps, waited = False, 0, 0

    def take(self, granted):
        granted()

    def release(self):
        pass

    def book(self, start_ps, end_ps):
        pass

    def again_ps(self, jobs_ps, spent_ps):
        return 0


def test_who_does_not_compete_pays_no_event_and_no_time():
    def migrated(windows):
        machine = Machine(
            scenario([touch("x"), launch(writes="x")], buffers={"x": "64MiB malloc"}), Mode.SUMMARY
        )
        if windows is not None:
            machine.hardware.node.devices[0].migration.windows = windows
        machine.start()
        machine.env.run_to()
        return machine.env.events, machine.env.now

    assert migrated(None) == migrated(NoWindows())
