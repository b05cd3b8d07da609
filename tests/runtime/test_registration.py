"""hipHostRegister: pinned pages on a user pointer, and what becomes of them."""

import pytest

from gpusim.linux.address_space import RAM, VRAM
from tests.machine.invariants import check
from tests.programs import MIB, PAGE, launch, prefetch, run_inside, scenario, sleep, touch

KIB = 1 << 10


def on(verb, **keys):
    return {verb: {"buffer": "x", **keys}}


def register(offset=None, size=None):
    return on(
        "host_register", **{key: f"{value}B" for key, value in (("offset", offset), ("size", size)) if value}
    )


def inside(steps, buffers=None, **keys):
    ran = run_inside(scenario(steps, buffers=buffers or {"x": "8MiB malloc"}, **keys))
    check(ran)
    return ran


def lies(ran, first, size):
    """Where bytes of x lie: (in RAM, in VRAM)."""
    vma = ran.machine.processes[0].hip.allocation("x").vma
    pages = vma.first + first // PAGE, vma.first + (first + size) // PAGE - 1
    return vma.count(*pages, RAM) * PAGE, vma.count(*pages, VRAM) * PAGE


@pytest.mark.parametrize("xnack", [True, False])
def test_a_kernel_reads_registered_memory_across_the_link_without_a_fault(xnack):
    ran = inside([touch("x"), register(), launch(reads="x")], xnack=xnack)
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 0
    assert lies(ran, 0, 8 * MIB) == (8 * MIB, 0)


@pytest.mark.parametrize("xnack", [True, False])
@pytest.mark.parametrize("change", ["munmap", "mprotect"])
def test_what_the_program_takes_back_is_fatal_for_the_next_kernel(change, xnack):
    """The mapping goes with the pages: a use after it is a memory access fault, not a read of somebody's memory."""
    gone = on("munmap") if change == "munmap" else on("mprotect", protection="none")
    ran = inside([touch("x"), register(), gone, launch(reads="x")], xnack=xnack)
    assert ran.outcome == "vm_fault"
    assert "HSA_XNACK" not in ran.data.processes[0].error, "no mode would help"


@pytest.mark.parametrize("xnack", [True, False])
def test_a_kernel_under_way_dies_too(xnack):
    """Its queues stop for the 1 ms until the restore work finds nothing to map."""
    steps = [touch("x"), register(), launch(reads="x", wait=False), on("munmap"), {"synchronize": {}}]
    ran = inside(steps, xnack=xnack, kernels={"scale": {"passes": 100}})
    assert ran.outcome == "vm_fault"


def test_what_may_still_be_read_is_mapped_again():
    protect = on("mprotect", protection="read")
    reads = inside([touch("x"), register(), protect, launch(reads="x")])
    assert reads.outcome == "completed"
    assert reads.duration("scale") > 1e-3  # it waits until the queues go on
    writes = inside([touch("x"), register(), protect, sleep("5ms"), launch(writes="x")])
    assert writes.outcome == "vm_fault"


def test_a_user_pointer_has_its_own_trigger():
    ran = run_inside(
        scenario([touch("x"), register(), on("munmap"), sleep("3ms")], buffers={"x": "2MiB malloc"})
    )
    lines = list(ran.machine.hardware.events.lines(["app"]))
    assert [line.split()[0] for line in lines] == ["9", "a"]
    assert lines[0].split()[-1] == "1"  # KFD_QUEUE_EVICTION_TRIGGER_USERPTR


def test_a_fork_stops_the_queues_once_and_takes_nothing_away():
    fork = {"fork": {"steps": [on("host_touch")]}}
    ran = inside([touch("x"), register(), fork, launch(writes="x")])
    assert ran.outcome == "completed"
    assert ran.duration("scale") < 0.01


def test_pages_in_vram_come_back_to_be_pinned():
    ran = inside([touch("x"), launch(writes="x"), register(), launch(reads="x", name="again")])
    assert ran.outcome == "completed"
    assert lies(ran, 0, 8 * MIB) == (8 * MIB, 0)
    assert ran.faults["serviced"] == 4


def test_each_registered_part_is_copied_at_the_speed_of_pinned_memory():
    def copied(*registered):
        copies = [
            {"memcpy": {"dst": "d", "src": "x", "size": "2MiB", "src_offset": f"{at}MiB"}, "name": f"c{at}"}
            for at in (0, 4)
        ]
        ran = inside(
            [touch("x"), *registered, *copies], {"x": "8MiB malloc", "d": "2MiB hipMalloc"}, xnack=False
        )
        return ran.duration("c0"), ran.duration("c4")

    staged, pinned = copied(), copied(register(size=2 * MIB), register(4 * MIB, 2 * MIB))
    assert staged[0] > 2 * pinned[0]
    assert staged[1] > 2 * pinned[1]


def test_only_the_part_is_pinned():
    """The rest migrates, swaps and moves as before."""
    steps = [touch("x"), register(size=4 * MIB), launch(writes="x")]
    ran = inside(steps)
    assert lies(ran, 0, 4 * MIB) == (4 * MIB, 0)
    assert lies(ran, 4 * MIB, 4 * MIB) == (0, 4 * MIB)
    swapped = inside([touch("x"), register(size=4 * MIB), on("swap_out")])
    assert lies(swapped, 0, 8 * MIB) == (4 * MIB, 0)
    moved = inside([touch("x"), register(size=4 * MIB), prefetch("x")])
    assert lies(moved, 0, 8 * MIB) == (4 * MIB, 4 * MIB)


def test_a_fault_beside_registered_pages_makes_ranges_of_one_page():
    """Where a buffer object of KFD shares the block, the driver makes no range of 2 MiB (`kfd_svm.md` 2.1)."""
    ran = inside([touch("x"), register(size=MIB), launch(writes="x")], {"x": "2MiB malloc"})
    sizes = [svm.pages for svm in ran.machine.processes[0].hip.kfd.ranges]
    assert sizes == [1] * (MIB // PAGE)
    assert ran.faults["serviced"] == MIB // PAGE


def test_registering_twice_is_an_error():
    ran = inside([touch("x"), register(size=4 * MIB), register(2 * MIB, 4 * MIB)])
    assert ran.outcome == "hip_error"
    assert "hipErrorHostMemoryAlreadyRegistered" in ran.data.processes[0].error


def test_what_was_unmapped_cannot_be_registered():
    ran = inside([touch("x"), on("munmap", size="2MiB"), register()])
    assert ran.outcome == "sigbus"


# -- hipHostUnregister -------------------------------------------------------------------------------------------------


def unregister(**part):
    return on("host_unregister", **part)


def test_register_and_unregister_in_a_loop_counts_once():
    steps = [touch("x"), {"repeat": {"times": 3, "steps": [register(), launch(reads="x"), unregister()]}}]
    ran = inside(steps)
    assert ran.outcome == "completed"
    assert ran.machine.hardware.node.pinned.used == 0


@pytest.mark.parametrize(("xnack", "outcome"), [(True, "completed"), (False, "vm_fault")])
def test_what_was_unregistered_is_ordinary_memory_again(xnack, outcome):
    ran = inside([touch("x"), register(), unregister(), launch(reads="x")], xnack=xnack)
    assert ran.outcome == outcome
    assert ran.faults["serviced"] == (4 if xnack else 0)


def test_it_waits_for_the_kernel_that_reads_the_memory():
    steps = [touch("x"), register(), launch(reads="x", wait=False), unregister()]
    ran = inside(steps, xnack=False, kernels={"scale": {"passes": 20}})
    assert ran.outcome == "completed"
    assert ran.step("host_unregister").end_ps > ran.step("scale").end_ps


@pytest.mark.parametrize("registered", [[], [{"size": 4 * MIB}]])
def test_only_whole_registered_parts_can_be_unregistered(registered):
    steps = [touch("x"), *(register(**part) for part in registered), unregister(size="2MiB")]
    ran = inside(steps)
    assert ran.outcome == "hip_error"
    assert "hipErrorHostMemoryNotRegistered" in ran.data.processes[0].error
