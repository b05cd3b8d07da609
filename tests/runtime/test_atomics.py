"""Atomics of CPU threads, alone and beside kernels (OTH007)."""

import pytest

from gpusim.kinds import Kind
from tests.machine.invariants import check
from tests.programs import launch, parallel, run, run_inside, scenario, sleep, touch

KERNELS = {"count": {"pattern": "stream", "workgroups": 13, "passes": 2000, "bytes_per_lane": "8B"}}
ONE = 1024 * 5e-9  # seconds of a thread's pass over 1,024 elements that it owns


def atomic(times=1, **common):
    return {**common, "host_touch": {"buffer": "x", "access": "atomic", "times": times}}


def count(**common):
    gpu = common.pop("gpu", "gpu0")
    return {
        "name": "count",
        **common,
        "launch": {"kernel": "count", "atomics": ["x"], "gpu": gpu, "wait": True},
    }


def ran(steps, allocator="malloc", node="mi300a", **keys):
    warm = [touch("x"), count(name="warm")]
    return run_inside(
        scenario([*warm, *steps], buffers={"x": f"8KiB {allocator}"}, kernels=KERNELS, node=node, **keys)
    )


def test_alone_a_thread_works_in_its_cache():
    alone = ran([atomic(1000, name="cpu")])
    check(alone)
    assert alone.duration("cpu") == pytest.approx(1000 * ONE, rel=1e-6)
    assert alone.step("cpu").bytes == 1000 * 8192


def test_beside_a_kernel_a_ninth_is_left():
    shared = ran([parallel([count()], [sleep("1ms"), atomic(50, name="cpu")])])
    assert shared.duration("cpu") == pytest.approx(50 * ONE / 0.11, rel=0.01)
    assert shared.step("cpu").attribution[Kind.CONTENTION] > 0.8 * 1e12 * shared.duration("cpu")


def test_the_kernel_is_slower_while_threads_work_and_only_then():
    def kernel(times):
        return ran([parallel([count()], *[[atomic(times)]] * 20)]).duration("count")

    alone, little, much = ran([count()]).duration("count"), kernel(10), kernel(4000)
    assert 1.1 * alone < much < 1.3 * alone
    assert alone < little < 1.05 * alone


def test_the_step_by_step_mode_slows_kernels_that_begin_meanwhile():
    program = [parallel([sleep("1us"), count()], *[[atomic(4000)]] * 20)]
    grouped, stepwise = ran(program).duration("count"), ran(program, stepwise=True).duration("count")
    assert stepwise == pytest.approx(grouped, rel=0.02)


def test_two_gpus_on_one_buffer_take_turns_on_its_lines():
    other = launch("count", gpu="gpu1", stream="other", name="two")
    other["launch"] |= {"atomics": ["x"], "writes": []}
    alone = ran([count()], gpus=2).duration("count")
    both = ran([parallel([count(stream="one", name="one")], [other])], gpus=2)
    assert both.duration("one") == pytest.approx(2 * alone, rel=0.03)


def test_plain_kernels_and_hipmalloc_on_a_card_share_no_lines():
    steps = [parallel([count()], [sleep("10us"), {"host_touch": {"buffer": "y", "access": "atomic"}}])]
    buffers = {"x": "8KiB hipMalloc", "y": "8KiB malloc"}
    done = run(steps, buffers=buffers, kernels=KERNELS, node="mi210-pcie4")
    assert done.duration("count") == pytest.approx(
        run([count()], buffers=buffers, kernels=KERNELS, node="mi210-pcie4").duration("count"), rel=1e-6
    )


def test_pages_wander_between_passes_where_vram_is_behind_a_link():
    """CPU atomics bring the pages back, the kernel takes them again."""
    done = ran([parallel([count()], [sleep("100us"), atomic(3, name="cpu")])], node="mi210-pcie4")
    check(done)
    assert done.outcome == "completed"
    assert done.migrated("device_to_host") > 0


def test_a_cpu_does_no_atomics_on_vram_across_a_link():
    done = run([atomic()], buffers={"x": "8KiB hipMalloc"})
    assert done.outcome == "hip_error"
    assert "do not reach VRAM" in done.process("app").error


def test_a_child_updates_pages_of_its_own():
    done = run([touch("x"), {"fork": {"steps": [atomic(2, name="child")]}}], buffers={"x": "64KiB malloc"})
    assert done.step("child").attribution[Kind.PAGE_COPY] > 0


def test_times_belongs_to_atomics():
    step = {"host_touch": {"buffer": "x", "access": "read", "times": 2}}
    with pytest.raises(Exception, match="access: atomic"):
        scenario([step], buffers={"x": "8KiB malloc"})
