"""CPU cores: equal parts for all who can run, and never more than one core for each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.engine.cores import Cores
from gpusim.engine.environment import Environment
from gpusim.engine.flows import Network
from gpusim.engine.record import Chain, Mode, Recorder
from gpusim.engine.stages import Transfer, Until, run_stages

WORK, ENGINE, CACHE, WAIT = range(4)


def cores(count, env=None):
    env = env or Environment()
    return env, Cores(env, "cores", count, on_core={WORK, CACHE}, by_clock={CACHE}, waiting=WAIT)


def ends(count, jobs):
    """When jobs (arrival, work) end."""
    env, made = cores(count)
    found = [0] * len(jobs)

    def begin(number, work):
        made.burst(work, lambda: found.__setitem__(number, env.now))

    for number, (at, work) in enumerate(jobs):
        env.call_at(at, lambda number=number, work=work: begin(number, work))
    env.run_to()
    return found, made


def oracle(count, jobs):
    """The same by small steps of the fluid: everybody runs at min(1, cores / runnable)."""
    left = {number: float(work) for number, (_, work) in enumerate(jobs)}
    came, found, now = set(), {}, 0.0
    while left:
        came |= {number for number in left if jobs[number][0] <= now}
        share = min(1.0, count / len(came)) if came else 0.0
        next_arrival = min((jobs[n][0] for n in left if n not in came), default=float("inf"))
        next_end = min((now + left[n] / share for n in came), default=float("inf"))
        then = min(next_arrival, next_end)
        for number in list(came):
            left[number] -= share * (then - now)
            if left[number] < 1e-6:
                found[number] = then
                came.discard(number)
                del left[number]
        now = then
    return [found[number] for number in range(len(jobs))]


def test_two_threads_on_one_core_take_twice_as_long():
    assert ends(1, [(0, 1000), (0, 1000)])[0] == [2000, 2000]


def test_as_many_threads_as_cores_do_not_notice_each_other():
    assert ends(3, [(0, 1000), (7, 500), (9, 2000)])[0] == [1000, 507, 2009]


def test_five_threads_on_two_cores():
    assert ends(2, [(0, 1000)] * 5)[0] == [2500] * 5


def test_utilisation_is_the_work_over_what_the_cores_could():
    _, made = ends(2, [(0, 1000)] * 5)
    assert made.use.busy_fraction(2500) == pytest.approx(1.0)
    _, made = ends(4, [(0, 1000)])
    assert made.use.busy_fraction(1000) == pytest.approx(0.25)


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 4000)), min_size=1, max_size=9),
)
def test_any_bursts_end_as_the_fluid_does(count, jobs):
    found, made = ends(count, jobs)
    for mine, theirs in zip(found, oracle(count, jobs), strict=True):
        assert mine == pytest.approx(theirs, abs=len(jobs) + 1)
    assert made.runnable == 0


def test_a_thread_that_moves_memory_holds_a_core_and_slows_down_with_its_part():
    env, made = cores(1)
    network = Network(env)
    network.add_link("memory", capacity_bytes_per_s=100e12)
    found = []

    def start(ended):
        return network.transfer((("memory", 1.0),), 1000, cap_bytes_per_s=1e12, done=ended)

    made.move(start, lambda flow: found.append(("moved", env.now)))
    made.burst(300, lambda: found.append(("worked", env.now)))
    env.run_to()
    assert found == [("worked", 600), ("moved", 1300)]
    assert made.runnable == 0


def test_a_move_that_is_cut_leaves_its_core():
    env, made = cores(1)
    network = Network(env)
    network.add_link("memory", capacity_bytes_per_s=100e12)
    flow = made.move(
        lambda ended: network.transfer((("memory", 1.0),), 10**9, cap_bytes_per_s=1e12, done=ended),
        lambda _: None,
    )
    flow.cut()
    found = []
    made.burst(100, lambda: found.append(env.now))
    env.run_to()
    assert found == [100]


def test_moves_that_would_end_together_can_all_be_slowed_down():
    """Two equal flows end at one virtual time; both are weighed anew when a third thread comes."""
    env, made = cores(2)
    network = Network(env)
    network.add_link("memory", capacity_bytes_per_s=100e12)
    found = []

    def start(ended):
        return network.transfer((("memory", 1.0),), 1000, cap_bytes_per_s=1e12, done=ended)

    for _ in range(2):
        made.move(start, lambda flow: found.append(env.now))
    env.call_at(100, lambda: made.burst(200, lambda: found.append(env.now)))
    env.run_to()
    assert found == [400, 1100, 1100]


# -- stages ------------------------------------------------------------------------------------------------------------


def worked(count, *threads):
    """(end, sums by kind) of threads whose stages are given."""
    env, made = cores(count)
    recorder = Recorder(Mode.SUMMARY, 4)
    found = []

    for stages in threads:
        chain = Chain(recorder)
        run_stages(
            env,
            chain,
            made.shared(stage for stage in stages),
            lambda chain=chain: found.append((env.now, chain.sums)),
            lambda failure: pytest.fail(str(failure)),
        )
    env.run_to()
    return found


def test_the_wait_is_told_apart_from_the_work():
    assert worked(1, [(WORK, 100)], [(WORK, 100)]) == [(200, [100, 0, 0, 100])] * 2


def test_what_needs_no_core_goes_on_beside():
    """An engine works for the first while the second has the core."""
    first, second = worked(1, [(ENGINE, 101, WORK, 50)], [(WORK, 100)])
    assert first == (100, [100, 0, 0, 0])
    assert second == (151, [50, 101, 0, 0])


def test_alone_nothing_changes():
    assert worked(1, [(WORK, 100, ENGINE, 7, WORK, 5), (WORK, 3)]) == [(115, [108, 7, 0, 0])]


def test_work_with_an_end_by_the_clock_is_stretched():
    assert worked(1, [Until(CACHE, 100)], [Until(CACHE, 100)]) == [(200, [0, 0, 100, 100])] * 2


def test_work_beside_a_transfer():
    """80 of work beside an engine's 100: alone it hides, behind another thread's 100 it shows."""
    env, made = cores(1)
    recorder = Recorder(Mode.SUMMARY, 4)

    def copy():
        yield Transfer(ENGINE, lambda done: env.call_at(env.now + 100, done), (WORK, 80))

    alone = Chain(recorder)
    run_stages(env, alone, made.shared(copy()), lambda: None, lambda failure: None)
    env.run_to()
    assert alone.sums == [0, 100, 0, 0]
    env, made = cores(1)
    crowded = Chain(recorder)
    run_stages(env, crowded, made.shared(copy()), lambda: None, lambda failure: None)
    made.burst(100, lambda: None)
    env.run_to()
    assert sum(crowded.sums) == 160
    assert crowded.sums[WORK] == 160
