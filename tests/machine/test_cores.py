"""Programs with more threads than the node has cores."""

import pytest

from gpusim.kinds import Kind
from gpusim.machine.runnable import most_runnable
from tests.machine.invariants import check
from tests.programs import launch, memcpy, parallel, process, run, run_inside, scenario, sleep, touch


def touching(threads, cores, size="64MiB", allocator="malloc"):
    """Each thread first touches a buffer of its own."""
    names = [f"x{number}" for number in range(threads)]
    return run_inside(
        scenario(
            threads={name: [touch(name, name=name)] for name in names},
            buffers=dict.fromkeys(names, f"{size} {allocator}"),
            overrides={"cpu.cores": cores},
        )
    )


def test_two_threads_on_one_core_take_twice_as_long():
    alone, both = touching(1, 1), touching(2, 1)
    check(both)
    assert both.duration("x0") == pytest.approx(2 * alone.duration("x0"), rel=1e-6)
    assert both.duration("x1") == both.duration("x0")
    assert both.attribution[Kind.CORE_WAIT] > 0.3 * both.makespan_ps


@pytest.mark.parametrize(("threads", "cores"), [(6, 2), (5, 4), (3, 2)])
def test_n_threads_on_k_cores_take_n_over_k(threads, cores):
    alone = touching(1, 64).duration("x0")
    assert touching(threads, cores).duration("x0") == pytest.approx(alone * threads / cores, rel=1e-6)


def test_with_enough_cores_nothing_is_simulated_of_them():
    plenty, more = touching(2, 8), touching(2, 32)
    assert plenty.machine.hardware.cores is None
    assert plenty.machine.env.events == more.machine.env.events
    assert not [use for use in plenty.data.uses if use.name == "host.cores"]


def test_cores_that_could_be_too_few_and_are_not_change_nothing():
    """Six threads that are awake one after another, on four cores."""

    def turns(cores):
        names = [f"x{number}" for number in range(6)]
        program = {
            name: [sleep(f"{100 * number}ms"), touch(name, name=name)] for number, name in enumerate(names, 1)
        }
        buffers = dict.fromkeys(names, "64MiB malloc")
        return run_inside(scenario(threads=program, buffers=buffers, overrides={"cpu.cores": cores}))

    few, many = turns(4), turns(32)
    assert few.machine.hardware.cores is not None
    assert many.machine.hardware.cores is None
    assert [step.end_ps for step in few.data.steps] == [step.end_ps for step in many.data.steps]
    assert few.attribution == many.attribution


def test_the_utilisation_is_in_the_table_of_links():
    """Three threads on two cores keep both busy; a copy engine keeps none."""
    busy = touching(3, 2)
    (use,) = [use for use in busy.data.uses if use.name == "host.cores"]
    assert use.busy_ps == pytest.approx(busy.makespan_ps, rel=0.01)
    steps = [touch("h"), memcpy("x", "h", name="copy"), parallel(*[[sleep("1ms")]] * 3)]
    ran = run(steps, buffers={"h": "1MiB hipHostMalloc", "x": "1MiB hipMalloc"}, overrides={"cpu.cores": 2})
    (use,) = [use for use in ran.data.uses if use.name == "host.cores"]
    assert use.busy_ps < 0.5 * ran.makespan_ps


def test_a_fault_worker_competes_with_the_threads_of_the_program():
    """One core: the worker gets half of it, and each served fault takes longer by what the thread gets."""

    def faulting(busy, cores):
        branches = [[launch(writes="x")]] + [[touch("y", name="noise")]] * busy
        buffers = {"x": "64MiB malloc", "y": "2GiB malloc"}
        return run_inside(scenario([parallel(*branches)], buffers=buffers, overrides={"cpu.cores": cores}))

    alone, crowded, roomy = faulting(0, 1), faulting(1, 1), faulting(1, 16)
    check(crowded)
    assert roomy.duration("scale") == pytest.approx(alone.duration("scale"), rel=0.02)
    assert 1.5 * alone.duration("scale") < crowded.duration("scale") < 2.1 * alone.duration("scale")


def test_copies_by_threads_share_the_cores_too():
    """Pageable copies of four threads on one core: the CPU's part takes four times as long."""

    def copies(threads):
        names = range(threads)
        buffers = {f"h{n}": "64MiB malloc" for n in names} | {f"x{n}": "64MiB malloc" for n in names}
        filled = [touch(f"h{n}") for n in names] + [touch(f"x{n}") for n in names]
        copying = [[memcpy(f"x{n}", f"h{n}", name=f"copy{n}", stream=f"s{n}")] for n in names]
        return run([*filled, parallel(*copying)], buffers=buffers, overrides={"cpu.cores": 1})

    assert copies(4).duration("copy0") == pytest.approx(4 * copies(1).duration("copy0"), rel=0.01)


def test_a_process_that_dies_leaves_its_cores():
    doomed = process(
        name="doomed",
        threads={"a": [touch("x", name="long")], "b": [sleep("1ms"), {"kill": {}}]},
        buffers={"x": "4GiB malloc"},
    )
    other = process([sleep("5ms"), touch("y", name="after")], name="other", buffers={"y": "64MiB malloc"})
    ran = run_inside(scenario(processes=[doomed, other], overrides={"cpu.cores": 1}))
    alone = touching(1, 1)
    assert ran.duration("after") < 2.1 * alone.duration("x0")
    assert ran.machine.hardware.cores.runnable == 0


def test_the_bound_counts_who_can_run_at_once():
    def bound(**program):
        return most_runnable(scenario(**program), gpus=1, cores=8)

    still = {"x": "1MiB hipMalloc"}
    assert bound(steps=[sleep("1ms")], buffers=still) == 1
    assert bound(steps=[parallel([sleep("1ms")], [sleep("1ms")])], buffers=still) == 2
    assert bound(steps=[sleep("1ms")], buffers={"x": "1MiB malloc"}) == 1 + 2 + 1
    child = {"fork": {"wait": False, "steps": [sleep("1ms")]}}
    assert bound(steps=[child, sleep("1ms")], buffers=still) == 2
    assert bound(steps=[launch(writes="x", wait=False, stream="s")], buffers=still) == 2
