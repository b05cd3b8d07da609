"""munmap, mprotect, fork, swap, collapse, compaction and registration, and what a GPU notices of them."""

import pytest

from gpusim.kinds import Kind
from tests.machine.invariants import check
from tests.programs import MIB, MS, PAGE, free, launch, prefetch, run, run_inside, scenario, sleep, touch

MALLOC = {"x": "8MiB malloc"}
PAGES = 8 * MIB // PAGE


def on(verb, **args):
    return {verb: {"buffer": "x", **args}}


def host_pages(ran):
    return ran.machine.hardware.node.host.used


def test_what_is_unmapped_gives_its_memory_back_and_is_fatal_for_gpu_and_cpu():
    ran = run_inside(scenario([touch("x"), on("munmap", size="6MiB")], buffers=MALLOC))
    assert host_pages(ran) == 2 * MIB // PAGE
    gpu = run([touch("x"), on("munmap", size="6MiB"), launch(reads="x")], buffers=MALLOC)
    assert gpu.outcome == "vm_fault"
    assert "freed too early" in gpu.process("app").error
    cpu = run([touch("x"), on("munmap", size="6MiB"), touch("x", "read")], buffers=MALLOC)
    assert cpu.outcome == "sigbus"


def test_unmapping_what_lies_in_vram_frees_the_vram():
    ran = run_inside(scenario([launch(writes="x"), on("munmap")], buffers=MALLOC))
    assert ran.machine.hardware.node.devices[0].vram.used == 0
    assert Kind.TLB_FLUSH in ran.attribution


def test_memory_may_be_unmapped_in_parts_and_then_freed():
    steps = [launch(writes="x"), on("munmap", offset="1MiB", size="3MiB"), {"free": {"buffer": "x"}}]
    ran = run_inside(scenario(steps, buffers=MALLOC))
    assert host_pages(ran) == 0
    assert ran.machine.hardware.node.devices[0].vram.used == 0


def test_a_read_only_vma_serves_reads_and_kills_writes():
    protect = on("mprotect", protection="read")
    assert run([touch("x"), protect, launch(reads="x")], buffers=MALLOC).outcome == "completed"
    write = run([touch("x"), protect, launch(writes="x")], buffers=MALLOC)
    assert write.outcome == "vm_fault"
    assert "EPERM" in write.process("app").error


def test_a_page_that_was_mapped_for_reading_is_not_written_through():
    steps = [touch("x"), on("mprotect", protection="read"), launch(reads="x"), launch(writes="x", name="w")]
    assert run(steps, buffers=MALLOC).outcome == "vm_fault"


def test_rights_that_come_back_let_the_gpu_write():
    steps = [
        touch("x"),
        on("mprotect", protection="read"),
        launch(reads="x"),
        on("mprotect", protection="read_write"),
        launch(writes="x", name="w"),
    ]
    assert run(steps, buffers=MALLOC).outcome == "completed"


def test_protection_from_the_cpu_is_a_segmentation_fault():
    ran = run([touch("x"), on("mprotect", protection="none"), touch("x", "read")], buffers=MALLOC)
    assert ran.outcome == "sigbus"
    assert "SIGSEGV" in ran.process("app").error


def test_a_fork_takes_the_gpus_mapping_away_and_writes_copy():
    heap = {"x": "8MiB heap"}
    plain = run([touch("x"), launch(writes="x"), launch(writes="x", name="again")], buffers=heap)
    forked = run(
        [touch("x"), launch(writes="x"), {"fork": {}}, launch(writes="x", name="again")], buffers=heap
    )
    assert plain.faults["serviced"] == 4
    assert forked.faults["serviced"] == 8
    child = {"fork": {"wait": False, "steps": [sleep("50ms")]}}
    shared = run([touch("x"), child, touch("x", name="w")], buffers=heap)
    assert shared.step("w").attribution[Kind.PAGE_COPY] > 0


def test_a_child_that_writes_gets_pages_of_its_own_and_gives_them_back():
    steps = [touch("x"), {"fork": {"steps": [touch("x", name="child")]}}]
    ran = run_inside(scenario(steps, buffers=MALLOC))
    assert ran.step("child").attribution[Kind.PAGE_COPY] > 0
    assert host_pages(ran) == PAGES
    assert ran.machine.hardware.node.host.peak == 2 * PAGES


def test_a_parent_that_writes_while_the_child_lives_leaves_nothing_behind():
    steps = [
        touch("x"),
        {"fork": {"wait": False, "steps": [sleep("10ms")]}},
        touch("x", size="4MiB"),
        sleep("20ms"),
    ]
    ran = run_inside(scenario(steps, buffers=MALLOC))
    assert host_pages(ran) == PAGES


def test_when_both_sides_have_written_the_original_goes_with_the_child():
    child = {"fork": {"wait": False, "steps": [touch("x", name="child"), sleep("5ms")]}}
    ran = run_inside(
        scenario([touch("x"), child, sleep("1us"), touch("x", name="own"), sleep("20ms")], buffers=MALLOC)
    )
    assert host_pages(ran) == PAGES


def test_pages_that_a_child_shares_stay_with_it_when_they_go_to_vram():
    child = {"fork": {"wait": False, "steps": [sleep("5ms")]}}
    ran = run_inside(scenario([touch("x"), child, launch(writes="x"), sleep("20ms")], buffers=MALLOC))
    assert host_pages(ran) == 0


def forks(*children):
    """Touch x, fork children that live for 20 ms after their steps, and outlive them."""
    steps = [touch("x")]
    for number, inner in enumerate(children):
        steps.append({"name": f"fork{number}", "fork": {"wait": False, "steps": [*inner, sleep("20ms")]}})
    return [*steps, sleep("1us")]


def test_two_children_share_one_copy_and_the_last_one_keeps_the_page():
    """The parent and the first child write: two copies; the second child goes on with the original."""
    last = [sleep("10ms"), touch("x", name="last")]
    steps = [*forks([touch("x", name="first")], last), touch("x", name="own"), sleep("50ms")]
    ran = run_inside(scenario(steps, buffers=MALLOC))
    check(ran)
    node = ran.machine.hardware.node
    assert ran.step("first").attribution[Kind.PAGE_COPY] > 0
    assert ran.step("own").attribution[Kind.PAGE_COPY] > 0
    assert Kind.PAGE_COPY not in ran.step("last").attribution
    assert ran.step("last").attribution[Kind.PAGE_ALLOC] == PAGES * node.host_spec.pages.fault
    assert node.host.peak == 3 * PAGES
    assert host_pages(ran) == PAGES


def test_each_fork_write_protects_what_the_gpu_has_mapped():
    """The parent's kernel faults again after each fork, and copies where a child of any age has the page."""

    def child(number):
        return {"name": f"child{number}", "fork": {"wait": False, "steps": [sleep("60ms")]}}

    kernels = [launch(writes="x", name=f"w{number}") for number in range(3)]
    steps = [touch("x"), kernels[0], child(0), kernels[1], child(1), kernels[2]]
    ran = run_inside(scenario(steps, buffers={"x": "8MiB heap"}))
    check(ran)
    assert ran.faults["serviced"] == 3 * 4
    assert ran.machine.hardware.node.host.peak == 3 * 8 * MIB // PAGE


def test_a_child_of_a_child_shares_with_both():
    inner = {"fork": {"steps": [touch("x", "read", name="read"), touch("x", name="grandchild")]}}
    ran = run_inside(scenario([touch("x"), {"fork": {"steps": [inner]}}], buffers=MALLOC))
    check(ran)
    assert ran.step("grandchild").attribution[Kind.PAGE_COPY] > 0
    assert ran.machine.hardware.node.host.peak == 2 * PAGES
    assert host_pages(ran) == PAGES


def test_children_that_see_pages_come_back_from_vram_share_them():
    one, two = [touch("x", "read", name="one")], [touch("x", "read", name="two")]
    steps = [touch("x"), launch(writes="x"), *forks(one, two)[1:], sleep("60ms")]
    ran = run_inside(scenario(steps, buffers=MALLOC))
    check(ran)
    assert ran.migrated("device_to_host") == PAGES * PAGE
    assert ran.machine.hardware.node.host.peak == PAGES
    assert host_pages(ran) == PAGES


def test_a_child_outlives_the_memory_of_its_parent():
    """free in the parent; the child keeps what it shares, and finds nothing of what lay in VRAM."""
    child = [sleep("5ms"), touch("x", "read", name="late")]
    for before in ([], [launch(writes="x")]):
        ran = run_inside(
            scenario([touch("x"), *before, *forks(child)[1:], free("x"), sleep("60ms")], buffers=MALLOC)
        )
        check(ran)
        assert ran.outcome == "completed"
        late = ran.step("late").attribution
        assert late[Kind.HOST_MEMORY] > 0
        assert (Kind.PAGE_ZERO in late) == bool(before)
        assert host_pages(ran) == 0


def test_a_parent_that_is_killed_takes_its_children_with_it_and_leaves_nothing():
    steps = [*forks([touch("x", name="own")]), {"kill": {}}]
    ran = run_inside(scenario(steps, buffers=MALLOC))
    assert ran.machine.hardware.node.host.used == 0


def test_a_child_cannot_use_hip():
    ran = run([touch("x"), {"fork": {"steps": [launch(reads="x")]}}], buffers=MALLOC)
    assert ran.outcome == "completed"
    assert "HIP cannot be used in a forked child" in ran.process("app").error


def test_what_is_swapped_out_is_read_back_on_the_fault_path():
    plain = run([touch("x"), launch(reads="x")], buffers=MALLOC)
    ran = run([touch("x"), on("swap_out"), launch(reads="x")], buffers=MALLOC)
    assert ran.outcome == "completed"
    swapped = ran.data.tables["faults"]["swap_io_ps"]
    assert (swapped > 0).all()
    assert ran.duration("scale") > plain.duration("scale") + swapped.sum() / 1e12 * 0.9
    assert ran.migrated("host_to_device") == 0, "what HMM reads back is mapped where it is"


def test_swapping_frees_memory_and_a_cpu_access_brings_it_back():
    out = run_inside(scenario([touch("x"), on("swap_out")], buffers=MALLOC))
    assert host_pages(out) == 0
    back = run_inside(scenario([touch("x"), on("swap_out"), touch("x", "read", name="r")], buffers=MALLOC))
    assert host_pages(back) == PAGES
    assert back.machine.hardware.node.paging.swapped == 0


def test_swap_out_of_mapped_pages_flushes_once_a_page():
    heap = {"x": "2MiB heap"}
    ran = run([touch("x"), launch(reads="x"), on("swap_out")], buffers=heap)
    assert ran.step("swap_out").attribution[Kind.TLB_FLUSH] == 512 * 20 * 10**6


def test_without_xnack_swap_stops_the_queues_and_the_restore_work_reads_back():
    managed = {"x": "8MiB hipMallocManaged"}
    steps = [touch("x"), on("swap_out"), sleep("50ms"), launch(reads="x")]
    ran = run_inside(scenario(steps, buffers=managed, xnack=False))
    assert ran.outcome == "completed"
    assert host_pages(ran) == PAGES, "restore_work has read all of it back"


def test_huge_pages_make_first_touch_and_registration_cheaper():
    base = run([touch("x"), on("host_register")], buffers={"x": "64MiB malloc"})
    keys = {"x": {"size": "64MiB", "allocator": "malloc", "huge_pages": "always"}}
    huge = run([touch("x"), on("host_register")], processes=[_process(keys)])
    pages = 64 * MIB // PAGE
    assert base.duration("host_register") / pages == pytest.approx(0.695e-6, abs=0.035e-6)  # UM34
    assert huge.duration("host_register") / pages == pytest.approx(0.27e-6, abs=0.01e-6)
    assert huge.duration("host_touch") < base.duration("host_touch")


def _process(buffers, steps=None):
    return {
        "name": "app",
        "env": {"HSA_XNACK": "1"},
        "buffers": buffers,
        "threads": {"main": steps or [touch("x"), on("host_register")]},
    }


def test_collapse_makes_huge_pages_of_what_is_in_ram():
    heap = {"x": "8MiB heap"}
    ran = run([touch("x"), launch(reads="x"), on("collapse"), launch(reads="x", name="again")], buffers=heap)
    assert ran.faults["serviced"] == 8, "each block was unmapped"
    later = run([touch("x"), on("collapse"), on("host_register")], buffers=MALLOC)
    assert later.duration("host_register") / PAGES == pytest.approx(0.27e-6, abs=0.02e-6)


def test_compaction_unmaps_everything_that_is_not_pinned():
    heap = {"x": "2MiB heap"}
    steps = [touch("x"), launch(reads="x"), {"compact": {}}, launch(reads="x", name="again")]
    assert run(steps, buffers=heap).faults["serviced"] == 2
    pinned = [touch("x"), on("host_register"), {"compact": {}}, launch(reads="x")]
    assert run(pinned, buffers=heap).raised == 0


def test_registered_memory_is_copied_like_pinned_memory():
    buffers = {"x": "64MiB malloc", "d": "64MiB hipMalloc"}
    copy = {"memcpy": {"dst": "d", "src": "x"}}
    plain = run([touch("x"), copy], buffers=buffers)
    registered = run([touch("x"), on("host_register"), copy], buffers=buffers)
    assert plain.duration("memcpy") > 2 * registered.duration("memcpy")


def test_an_invalidation_during_a_restore_wins_and_the_fault_is_served_again():
    """Compaction does not wait for the restore: it unmaps what is being mapped, and the access faults again."""
    heap = {"x": "2MiB heap"}
    threads = {
        "main": [touch("x"), {"barrier": {"name": "go"}}, launch(reads="x")],
        "kernel": [{"barrier": {"name": "go"}}, sleep("50us"), {"compact": {}}],
    }
    ran = run(threads=threads, buffers=heap)
    assert ran.outcome == "completed"


def test_a_munmap_makes_waiting_faults_stale_and_they_are_sent_again():
    buffers = {"x": "64MiB malloc", "y": "1MiB malloc"}
    threads = {
        "main": [touch("x"), touch("y"), {"barrier": {"name": "go"}}, launch(reads="x")],
        "other": [{"barrier": {"name": "go"}}, sleep("1ms"), {"munmap": {"buffer": "y"}}],
    }
    ran = run(threads=threads, buffers=buffers)
    assert ran.outcome == "completed"
    assert ran.faults["stale"] > 0
    assert ran.faults["serviced"] == 32


@pytest.mark.parametrize("flags", [{}, {"set_flags": ["gpu_always_mapped"]}])
def test_always_mapped_stops_the_queues_instead_of_unmapping(flags):
    heap = {"x": "2MiB hipMallocManaged"}
    steps = [
        touch("x"),
        {"svm_attributes": {"buffer": "x", "preferred_location": "cpu", **flags}},
        launch(reads="x"),
        {"compact": {}},
        sleep("10ms"),
        launch(reads="x", name="again"),
    ]
    ran = run(steps, buffers=heap)
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == (0 if flags else 2)


def test_prefetch_leaves_registered_memory_alone():
    ran = run([touch("x"), on("host_register"), prefetch("x")], buffers=MALLOC)
    assert ran.migrated("host_to_device") == 0
    assert ran.duration("prefetch") < MS / 1e12
