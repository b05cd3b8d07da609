"""repeat, parallel, barrier, sleep, ranks: the order of a program."""

import pytest

from gpusim.kinds import Kind
from tests.programs import MS, US, barrier, launch, parallel, process, repeat, run, sleep, touch


def test_steps_follow_each_other():
    ran = run([sleep("1ms", name="a"), sleep("2ms", name="b")])
    assert (ran.step("a").start_ps, ran.step("a").end_ps) == (0, MS)
    assert (ran.step("b").start_ps, ran.step("b").end_ps) == (MS, 3 * MS)
    assert ran.attribution == {Kind.SLEEP: 3 * MS}


def test_a_process_without_steps_ends_at_once():
    ran = run([])
    assert ran.outcome == "completed"
    assert ran.makespan_ps == 0


def test_a_step_that_when_leaves_out_is_not_there():
    ran = run([sleep("1ms", when=False), sleep("2ms", name="other")])
    assert [step.name for step in ran.data.steps] == ["other"]


def test_a_repeat_numbers_its_rounds():
    ran = run([repeat(2, repeat(3, sleep("1us"), name="inner"), name="outer")])
    paths = {step.path for step in ran.data.steps if step.kind == "sleep"}
    assert paths == {f"steps.sleep[{i}][{j}]" for i in range(2) for j in range(3)}
    assert ran.makespan_ps == 6 * US
    assert ran.step("outer").end_ps == 6 * US


def test_branches_run_side_by_side_and_meet():
    ran = run(
        [parallel([sleep("1ms", name="a")], [sleep("3ms", name="b")], name="both"), sleep("1ms", name="c")]
    )
    assert ran.step("a").start_ps == ran.step("b").start_ps == 0
    assert ran.step("c").start_ps == ran.step("both").end_ps == 3 * MS
    assert ran.attribution == {Kind.SLEEP: 4 * MS}


def test_an_empty_branch_does_not_hold_the_others_up():
    ran = run([parallel([], [sleep("1ms")])])
    assert ran.makespan_ps == MS


def test_parallel_in_repeat_in_parallel():
    inner = parallel([sleep("1us", name="p")], [sleep("2us", name="q")], name="inner")
    ran = run([parallel([repeat(3, inner)], [sleep("1us")], name="outer")])
    assert ran.makespan_ps == 6 * US
    assert ran.step("q[2]").end_ps == 6 * US


def test_threads_run_side_by_side():
    ran = run(threads={"a": [sleep("1ms")], "b": [sleep("5ms", name="long")]})
    assert ran.makespan_ps == 5 * MS
    assert ran.attribution == {Kind.SLEEP: 5 * MS}


def test_threads_meet_at_a_barrier():
    ran = run(
        threads={
            "a": [sleep("1ms", name="s1"), barrier(label="b1"), sleep("1ms", name="s2")],
            "b": [sleep("5ms", name="s3"), barrier(label="b2"), sleep("2ms", name="s4")],
        }
    )
    assert ran.step("s2").start_ps == ran.step("s4").start_ps == 5 * MS
    assert ran.makespan_ps == 7 * MS
    assert ran.step("b1").end_ps - ran.step("b1").start_ps == 4 * MS


def test_a_barrier_is_used_again_and_again():
    def rounds(length, label):
        return [repeat(3, sleep(length, name=label), barrier(label=f"m{label}"))]

    ran = run(threads={"a": rounds("1ms", "x"), "b": rounds("2ms", "y")})
    assert ran.outcome == "completed"
    assert ran.makespan_ps == 6 * MS
    assert ran.step("x[2]").start_ps == 4 * MS


def test_only_threads_that_name_a_barrier_are_waited_for():
    ran = run(threads={"a": [barrier()], "b": [barrier(label="other")], "c": [sleep("9ms")]})
    assert ran.step("barrier").end_ps == 0


def test_a_barrier_that_when_leaves_out_is_not_waited_for():
    ran = run(threads={"a": [barrier()], "b": [barrier(when=False, label="other")]})
    assert ran.outcome == "completed"


def test_branches_meet_at_a_barrier_too():
    """Each branch is a host thread of its own."""
    ran = run(
        [
            parallel(
                [sleep("1ms", name="s1"), barrier(label="b1"), sleep("1ms", name="s2")],
                [sleep("4ms", name="s3"), barrier(label="b2"), sleep("1ms", name="s4")],
            )
        ]
    )
    assert ran.step("s2").start_ps == ran.step("s4").start_ps == 4 * MS


def test_ranks_meet_at_a_barrier_and_have_their_own_paths():
    steps = [barrier(scope="ranks")]
    ran = run(steps, count=3)
    assert {step.path for step in ran.data.steps} == {f"steps.barrier[{rank}]" for rank in range(3)}
    assert {p.name for p in ran.data.processes} == {f"app[{rank}]" for rank in range(3)}


def test_the_slowest_rank_holds_the_others_up():
    """Four ranks on one GPU touch malloc memory: the worker serves one after another, and all leave together."""
    ran = run(
        [launch(writes="x"), barrier(scope="ranks"), sleep("1us")], buffers={"x": "8MiB malloc"}, count=4
    )
    starts = {ran.step(f"sleep[{rank}]").start_ps for rank in range(4)}
    slowest = max(ran.step(f"scale[{rank}]").end_ps for rank in range(4))
    assert starts == {slowest}
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_rounds_and_ranks_both_are_in_the_path():
    ran = run([repeat(2, sleep("1us"), barrier(scope="ranks"))], count=2)
    assert {step.path for step in ran.data.steps if step.kind == "sleep"} == {
        f"steps.sleep[{i}][{rank}]" for i in range(2) for rank in range(2)
    }


def test_processes_know_nothing_of_each_others_barriers():
    a = process([barrier()], name="a")
    b = process([sleep("1ms"), barrier()], name="b")
    ran = run(processes=[a, b])
    assert ran.process("a").end_ps == 0
    assert ran.process("b").end_ps == MS


def test_a_barrier_that_nobody_else_reaches_is_a_livelock_with_its_reason():
    ran = run(threads={"a": [barrier()], "b": [sleep("1ms"), repeat(2, barrier(label="twice"))]})
    assert ran.outcome == "livelock"
    assert "its threads wait for a barrier or an event that nobody reaches" in ran.process("app").error


def test_a_step_knows_what_it_spent_its_time_on():
    ran = run(
        [touch("x"), parallel([sleep("1ms")], [touch("y", name="slow")], name="both")],
        buffers={"x": "64MiB malloc", "y": "64MiB malloc"},
    )
    for step in ran.data.steps:
        assert step.attribution is not None, step.path
        assert sum(step.attribution.values()) == step.end_ps - step.start_ps
    assert ran.step("both").attribution == ran.step("slow").attribution


@pytest.mark.parametrize("count", [2, 5])
def test_sleeping_ranks_do_not_wait_for_each_other(count):
    assert run([sleep("3ms")], count=count).makespan_ps == 3 * MS
