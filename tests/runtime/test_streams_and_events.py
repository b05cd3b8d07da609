"""Order: streams, events, synchronize."""

import pytest

from gpusim.kinds import Kind
from tests.programs import (
    MS,
    gpu_spec,
    launch,
    record,
    repeat,
    run,
    sleep,
    synchronize,
    wait,
)

COMPUTE = gpu_spec().compute
KERNELS = {
    "short": {"duration": "1ms", "workgroups": 104},
    "long": {"duration": "5ms", "workgroups": 104},
}
BUFFERS = dict.fromkeys("xyz", "64MiB hipMalloc")


def program(*steps, threads=None):
    ran = run(
        list(steps) if threads is None else None,
        threads=threads,
        buffers=BUFFERS,
        kernels=KERNELS,
        xnack=False,
    )
    assert ran.outcome == "completed"
    assert sum(ran.attribution.values()) == ran.makespan_ps
    return ran


def kernel(name, stream, buffer="x", *, label=None, wait=False):
    return launch(name, writes=buffer, wait=wait, stream=stream, name=label or name)


def test_one_stream_is_in_order_and_two_are_not():
    same = program(kernel("long", "a"), kernel("short", "a", "y"), synchronize())
    assert same.step("short").end_ps > same.step("long").end_ps
    apart = program(kernel("long", "a"), kernel("short", "b", "y"), synchronize())
    assert apart.step("short").end_ps < apart.step("long").end_ps


def test_a_launch_without_a_stream_goes_to_the_null_stream():
    ran = program(
        launch("long", writes="x", wait=False), launch("short", writes="y", wait=False), synchronize()
    )
    assert ran.step("short").end_ps - ran.step("long").end_ps == pytest.approx(MS + COMPUTE.launch, rel=1e-3)


def test_a_stream_waits_for_an_event_of_another():
    ran = program(
        kernel("long", "a"),
        record("done", "a"),
        wait("done", "b"),
        kernel("short", "b", "y"),
        synchronize(),
    )
    gap = ran.step("short").end_ps - ran.step("long").end_ps
    assert gap == pytest.approx(MS + COMPUTE.launch, rel=1e-3)


def test_the_thread_that_puts_a_wait_into_a_stream_goes_on():
    ran = program(kernel("long", "a"), record("done", "a"), wait("done", "b"), sleep("1us"), synchronize())
    assert ran.step("sleep").start_ps < ran.step("long").end_ps


def test_a_thread_waits_for_an_event():
    ran = program(
        kernel("short", "a"),
        record("done", "a"),
        kernel("long", "a", "y"),
        wait("done"),
        sleep("1us"),
        synchronize(),
    )
    assert ran.step("sleep").start_ps == ran.step("short").end_ps


def test_an_event_of_an_idle_stream_is_complete_at_once():
    ran = program(kernel("short", "a", wait=True), record("done", "a"), wait("done"), sleep("1us"))
    assert ran.step("wait").start_ps == ran.step("wait").end_ps


def test_an_event_that_was_not_recorded_yet_is_complete_as_in_hip():
    ran = program(
        kernel("short", "a"), wait("done", "b"), kernel("short", "b", "y", label="other"), record("done", "a")
    )
    assert ran.step("other").end_ps == pytest.approx(ran.step("short").end_ps, rel=0.01)


def test_an_event_recorded_again_stands_for_the_later_work():
    ran = program(
        kernel("short", "a"),
        record("done", "a"),
        kernel("long", "a", "y"),
        {"name": "again", **record("done", "a")},
        wait("done"),
        sleep("1us"),
    )
    assert ran.step("sleep").start_ps == ran.step("long").end_ps


def test_a_record_takes_no_time():
    ran = program(kernel("short", "a"), record("done", "a"), synchronize())
    assert ran.step("record").start_ps == ran.step("record").end_ps


def test_synchronize_waits_for_one_stream_or_for_all():
    one = program(kernel("short", "a"), kernel("long", "b", "y"), synchronize("a"), sleep("1us"))
    assert one.step("sleep").start_ps < one.step("long").end_ps
    every = program(kernel("short", "a"), kernel("long", "b", "y"), synchronize(), sleep("1us"))
    assert every.step("sleep").start_ps >= every.step("long").end_ps


def test_the_return_from_a_wait_for_a_kernel_is_paid_once():
    ran = program(kernel("short", "a"), synchronize("a"), synchronize("a", name="again"))
    assert ran.attribution[Kind.SYNC] == COMPUTE.completion
    assert ran.step("again").start_ps == ran.step("again").end_ps


def test_wait_true_is_launch_and_synchronize():
    whole = program(kernel("short", "a", wait=True), sleep("1us"))
    apart = program(kernel("short", "a"), synchronize("a"), sleep("1us"))
    assert whole.makespan_ps == apart.makespan_ps


def test_a_chain_of_kernels_over_three_streams_is_the_critical_path():
    ran = program(
        kernel("short", "a"),
        record("one", "a"),
        wait("one", "b"),
        kernel("long", "b", "y"),
        record("two", "b"),
        wait("two", "c", name="second"),
        kernel("short", "c", "z", label="last"),
        synchronize(),
    )
    assert ran.attribution[Kind.COMPUTE] == pytest.approx(7 * MS, rel=1e-3)
    assert ran.attribution[Kind.LAUNCH] == 3 * COMPUTE.launch


def test_only_the_slower_of_two_streams_is_on_the_critical_path():
    ran = program(kernel("short", "a"), kernel("long", "b", "y"), synchronize())
    assert ran.attribution[Kind.COMPUTE] == pytest.approx(5 * MS, rel=1e-3)


def test_two_threads_may_share_a_stream():
    ran = program(
        threads={
            "one": [kernel("short", "a", label="first"), synchronize("a")],
            "two": [sleep("10us"), kernel("short", "a", "y", label="second"), synchronize("a", name="sync")],
        }
    )
    assert ran.step("second").end_ps - ran.step("first").end_ps == pytest.approx(
        MS + COMPUTE.launch, rel=1e-3
    )


def test_a_repeat_launches_in_order():
    ran = program(repeat(4, kernel("short", "a")), synchronize())
    ends = [ran.step(f"short[{i}]").end_ps for i in range(4)]
    assert ends == sorted(ends)
    assert len(set(ends)) == 4
