"""XNACK off: pages that move stop the queues of their process, and the restore worker lets them go on."""

import pytest

from gpusim.kinds import Kind
from tests.programs import launch, prefetch, run, sleep, synchronize, touch

MANAGED = {"x": "64MiB hipMallocManaged"}


def test_a_prefetch_stops_the_kernel_that_runs_in_the_same_memory():
    steps = [launch(reads="x", wait=False, stream="work"), prefetch("x", stream="moves"), synchronize()]
    ran = run(steps, buffers=MANAGED, xnack=False)
    assert ran.outcome == "completed"
    assert ran.raised == 0
    assert ran.step("scale").end_ps >= ran.step("prefetch").end_ps


def test_the_path_through_stopped_queues_tiles_the_run():
    steps = [launch(reads="x", wait=False, stream="work"), prefetch("x", stream="moves"), synchronize()]
    ran = run(steps, buffers=MANAGED, xnack=False)
    assert sum(ran.attribution.values()) == ran.makespan_ps
    assert ran.attribution[Kind.QUEUES_STOPPED] > 0


def test_a_cpu_access_stops_them_too():
    steps = [prefetch("x"), launch(reads="x", wait=False), touch("x"), synchronize()]
    spec = {"scale": {"duration": "20ms"}}
    ran = run(steps, buffers=MANAGED, xnack=False, kernels=spec)
    assert ran.outcome == "completed"
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_an_access_to_unmapped_memory_is_fatal_when_the_queues_go_on():
    """The wave finds no PTE while the queues are stopped; nobody ever maps the page."""
    steps = [prefetch("x", wait=False, stream="moves"), sleep("1us"), launch(writes="y")]
    ran = run(steps, buffers=MANAGED | {"y": "1MiB malloc"}, xnack=False)
    assert ran.outcome == "vm_fault"


@pytest.mark.parametrize("access", ["read", "write"])
def test_memory_that_came_back_is_reached_across_the_link(access):
    steps = [prefetch("x"), touch("x", access), launch(reads="x")]
    ran = run(steps, buffers=MANAGED, xnack=False)
    assert ran.outcome == "completed"
    assert Kind.ZERO_COPY_LINK in ran.attribution


def test_a_prefetch_back_of_memory_that_no_gpu_has_mapped_stops_nothing():
    """malloc memory without XNACK: the prefetch moves it, no GPU may use it, and so no queue is stopped."""
    steps = [
        prefetch("y"),
        launch(reads="x", wait=False),
        prefetch("y", to="cpu", name="back"),
        synchronize(),
    ]
    ran = run(steps, buffers=MANAGED | {"y": "1MiB malloc"}, xnack=False)
    assert ran.outcome == "completed"
    assert Kind.QUEUES_STOPPED not in ran.attribution


def test_without_xnack_a_prefetch_leaves_memory_that_two_gpus_may_access_on_the_cpu():
    ran = run([touch("x"), prefetch("x")], buffers=MANAGED, xnack=False, gpus=2)
    assert ran.migrated("host_to_device") == 0


def test_a_kernel_after_a_prefetch_waits_for_the_restore_work():
    """The ioctl does not wait: queues go on 1 ms after the first page moved, when all is mapped again."""
    ran = run([prefetch("x"), launch(reads="x")], buffers=MANAGED, xnack=False)
    resident = run([prefetch("x"), sleep("10ms"), launch(reads="x")], buffers=MANAGED, xnack=False)
    mapping = (64 << 20 >> 12) * 0.165e-6
    assert ran.duration("scale") - resident.duration("scale") < 1e-3 + mapping
    assert ran.step("scale").end_ps > ran.step("prefetch").end_ps + mapping * 1e12
