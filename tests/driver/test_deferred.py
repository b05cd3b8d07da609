"""munmap leaves ranges to a worker: the deferred list (`kfd_svm.md` 1.7, 2 step 11, 3.5)."""

import pytest

from tests.machine.invariants import check
from tests.programs import (
    MIB,
    PAGE,
    barrier,
    free,
    launch,
    parallel,
    prefetch,
    process,
    run_inside,
    scenario,
    sleep,
    touch,
    vram,
)

MANAGED = {"x": "64MiB hipMallocManaged"}


def munmap(buffer="x", **args):
    return {"name": "munmap", "munmap": {"buffer": buffer, **args}}


def ranges(ran, process=0):
    return [(svm.pages, svm.deferred) for svm in ran.machine.processes[process].hip.kfd.ranges]


def drained(ran, process=0):
    return ran.machine.processes[process].hip.kfd.deferred.drained


def test_the_worker_splits_the_range_and_gives_its_vram_up_when_all_of_it_has_gone():
    """A range of 64 MiB: of its buffer object nothing is free before the last piece of it is removed."""
    steps = [prefetch("x"), munmap(size="16MiB", offset="16MiB"), prefetch("x", to="cpu", size="4KiB")]
    part = run_inside(scenario(steps[:2], buffers=MANAGED))
    check(part)
    assert ranges(part) == [(16 * MIB // PAGE, False), (32 * MIB // PAGE, False)]
    assert vram(part.machine).used == 64 * MIB // PAGE
    whole = run_inside(scenario([prefetch("x"), munmap()], buffers=MANAGED))
    check(whole)
    assert ranges(whole) == []
    assert vram(whole.machine).used == 0
    assert drained(whole) == drained(part) == 1


def test_munmap_waits_for_the_fault_in_hand_and_the_worker_for_those_that_came_before_it():
    """A kernel faults its way through another buffer while a thread unmaps half of x."""

    def unmapping(*beside):
        steps = [touch("x"), touch("tail"), parallel(*beside, [sleep("1ms"), munmap(size="32MiB")])]
        buffers = {"x": "64MiB hipMallocManaged", "tail": "16MiB malloc"}
        return run_inside(scenario(steps, buffers=buffers))

    alone, ran = unmapping(), unmapping([launch(writes="tail", name="walk")])
    check(ran)
    assert ran.outcome == "completed"
    assert ran.duration("munmap") > alone.duration("munmap")
    assert drained(ran) == drained(alone) == 1


def test_faults_on_what_is_left_of_a_deferred_range_are_dropped_and_sent_again():
    """gpu0's worker holds the mutex, then munmap, then gpu1's fault on the same range, and only then the worker.

    What the kernel reads beyond the part that is left is fatal once the range is no longer deferred.
    """
    walk = launch(writes="y", name="walk", gpu="gpu0", stream="a")
    late = launch(reads="z", name="late", gpu="gpu1", stream="b")
    buffers = {"y": "64MiB hipMallocManaged", "z": "64MiB hipMallocManaged"}
    steps = [
        touch("z"),
        parallel([walk], [sleep("400us"), munmap("z", size="62MiB", offset="2MiB")], [sleep("1ms"), late]),
    ]
    ran = run_inside(scenario(steps, buffers=buffers, gpus=2, driver={"recent_skip": "off"}))
    assert ran.machine.processes[0].hip.kfd.deferred.refused > 0
    assert ran.faults["stale"] > 0
    assert drained(ran) == 1
    assert ran.outcome == "vm_fault"


def test_a_prefetch_waits_until_the_list_is_empty():
    steps = [touch("x"), munmap(size="32MiB"), prefetch("x", offset="32MiB", name="rest")]
    ran = run_inside(scenario(steps, buffers=MANAGED))
    check(ran)
    assert drained(ran) == 1
    assert ran.migrated("host_to_device") == 32 * MIB


def test_free_finds_what_the_worker_has_left():
    ran = run_inside(scenario([prefetch("x"), munmap(size="16MiB"), free("x")], buffers=MANAGED))
    check(ran)
    assert ranges(ran) == []
    assert vram(ran.machine).used == 0
    assert ran.machine.hardware.node.host.used == 0


def test_munmap_waits_for_an_eviction_that_moves_the_same_range():
    """The evictor holds the migrate mutex of x: what it moves is there before it is unmapped, and freed once."""
    owner = process(
        [prefetch("x"), barrier("go"), sleep("1ms"), munmap()],
        name="owner",
        buffers={"x": "32MiB hipMallocManaged"},
    )
    owner["threads"]["other"] = [barrier("go")]
    other = process([sleep("3ms"), launch(writes="y")], name="other", buffers={"y": "64MiB hipMallocManaged"})
    for delay in ("1ms", "4ms", "9ms"):
        owner["threads"]["main"][2] = sleep(delay)
        ran = run_inside(scenario(processes=[owner, other], overrides={"gpu.vram": "64MiB"}))
        check(ran)
        assert ran.outcome == "completed"
        assert ran.machine.hardware.node.host.used == 0 or ran.migrated("device_to_host") > 32 * MIB


@pytest.mark.parametrize("stepwise", [False, True])
def test_a_process_that_dies_with_ranges_in_the_list_leaves_nothing(stepwise):
    steps = [prefetch("x"), munmap(size="16MiB"), {"kill": {}}]
    ran = run_inside(scenario(steps, buffers=MANAGED, stepwise=stepwise))
    assert vram(ran.machine).used == 0
    assert ran.machine.hardware.node.host.used == 0


@pytest.mark.parametrize(
    "call", [prefetch("x"), {"svm_attributes": {"buffer": "x", "preferred_location": "gpu0"}}]
)
def test_calls_on_memory_of_which_a_part_is_unmapped_are_refused(call):
    """No range comes back over addresses without memory, where faults would be dropped for ever."""
    ran = run_inside(scenario([touch("x"), munmap(size="2MiB"), call], buffers=MANAGED))
    assert ran.outcome == "hip_error"
    assert "part of it is unmapped" in ran.process("app").error
