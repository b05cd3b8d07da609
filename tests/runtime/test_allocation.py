"""Allocating, freeing, and running out."""

import pytest

from gpusim.kinds import Kind
from tests.machine.invariants import check
from tests.programs import (
    GIB,
    MIB,
    PAGE,
    US,
    S,
    alloc,
    costs,
    free,
    host_spec,
    launch,
    memcpy,
    prefetch,
    process,
    repeat,
    run,
    run_inside,
    scenario,
    sleep,
    touch,
    vram,
)

PAGES = host_spec().pages
DRIVER = costs()


def left(*args, **keys):
    """What a program leaves in VRAM and in host memory, in bytes."""
    ran = run_inside(scenario(*args, **keys))
    assert ran.outcome == "completed", ran.data.processes
    return vram(ran.machine).used * PAGE, ran.machine.hardware.node.host.used * PAGE


@pytest.mark.parametrize(
    ("allocator", "in_vram", "in_ram"),
    [
        ("hipMalloc", 64 * MIB, 0),
        ("hipHostMalloc", 0, 64 * MIB),
        ("hipMallocManaged", 0, 0),  # address space only, until somebody touches it
        ("malloc", 0, 0),
    ],
)
def test_what_an_allocation_takes(allocator, in_vram, in_ram):
    assert left([sleep("1us")], buffers={"x": f"64MiB {allocator}"}) == (in_vram, in_ram)


@pytest.mark.parametrize("allocator", ["malloc", "hipMallocManaged"])
def test_pages_move_from_ram_to_vram_and_back(allocator):
    buffers = {"x": f"64MiB {allocator}"}
    assert left([touch("x")], buffers=buffers) == (0, 64 * MIB)
    assert left([touch("x"), prefetch("x")], buffers=buffers) == (64 * MIB, 0)
    assert left([touch("x"), prefetch("x"), touch("x", name="back")], buffers=buffers) == (0, 64 * MIB)


def test_an_untouched_page_in_vram_needs_no_host_memory():
    assert left([launch(writes="x")], buffers={"x": "64MiB malloc"}) == (64 * MIB, 0)


def test_a_registered_range_takes_vram_as_a_whole():
    """First touch of one granule makes a buffer object of the whole range."""
    steps = [prefetch("x", size="4KiB")]
    assert left(steps, buffers={"x": "64MiB hipMallocManaged"}) == (64 * MIB, 0)


def test_the_range_gives_its_vram_back_with_its_last_page():
    steps = [prefetch("x", size="8MiB"), prefetch("x", to="cpu", size="4MiB", name="half")]
    assert left(steps, buffers={"x": "64MiB hipMallocManaged"})[0] == 64 * MIB
    steps.append(prefetch("x", to="cpu", size="8MiB", name="rest"))
    assert left(steps, buffers={"x": "64MiB hipMallocManaged"})[0] == 0


@pytest.mark.parametrize("allocator", ["malloc", "hipMallocManaged", "hipMalloc", "hipHostMalloc"])
def test_a_loop_of_alloc_use_and_free_gives_everything_back(allocator):
    use = [] if allocator == "hipMalloc" else [touch("x", name="write")]
    steps = [repeat(5, alloc("x"), *use, launch(writes="x"), free("x"))]
    assert left(steps, buffers={"x": f"16MiB {allocator}"}) == (0, 0)


def test_a_loop_needs_no_more_memory_than_one_round():
    """40 GiB in a VRAM of 64 GiB, four times."""
    steps = [repeat(4, alloc("x"), launch(writes="x"), free("x"))]
    assert run(steps, buffers={"x": "40GiB hipMalloc"}).outcome == "completed"


def test_free_of_a_buffer_that_is_half_in_vram_gives_both_halves_back():
    steps = [alloc("x"), touch("x"), prefetch("x", size="32MiB"), free("x")]
    assert left(steps, buffers={"x": "64MiB malloc"}) == (0, 0)


def test_hip_free_waits_for_the_kernel_that_uses_the_buffer():
    steps = [alloc("x"), launch(writes="x", wait=False), free("x")]
    ran = run(steps, buffers={"x": "1GiB hipMalloc"}, kernels={"scale": {"duration": "10ms"}})
    assert ran.outcome == "completed"
    assert ran.step("free").end_ps > ran.step("scale").end_ps


def test_free_under_a_running_kernel_is_a_memory_access_fault():
    steps = [alloc("x"), launch(writes="x", wait=False), sleep("1ms"), free("x")]
    assert run(steps, buffers={"x": "64MiB malloc"}).outcome == "vm_fault"


def test_a_buffer_that_was_freed_cannot_be_used():
    ran = run([alloc("x"), free("x"), touch("x")], buffers={"x": "4KiB malloc"})
    assert ran.outcome == "hip_error"
    assert "'x' of app is not allocated here" in ran.process("app").error


def test_a_buffer_cannot_be_allocated_twice():
    ran = run([alloc("x"), alloc("x", name="again")], buffers={"x": "4KiB malloc"})
    assert ran.outcome == "hip_error"
    assert "allocated already" in ran.process("app").error


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_hip_malloc_takes_a_fixed_time():
    for size in ("4KiB", "8GiB"):
        ran = run([alloc("x")], buffers={"x": f"{size} hipMalloc"})
        assert ran.makespan_ps == DRIVER.vram_alloc


def test_pinned_memory_costs_each_page():
    ran = run([alloc("x")], buffers={"x": "64MiB hipHostMalloc"})
    per_page = PAGES.alloc + PAGES.zero + PAGES.dma_map + DRIVER.pte_write
    assert ran.makespan_ps == DRIVER.ioctl + 64 * MIB // PAGE * per_page
    assert ran.attribution[Kind.PAGE_ZERO] == 64 * MIB // PAGE * PAGES.zero


def test_a_managed_buffer_is_registered_range_by_range():
    ran = run([alloc("x")], buffers={"x": "4GiB hipMallocManaged"})
    assert ran.makespan_ps == DRIVER.ioctl + 4 * DRIVER.range_create


def test_buffers_that_no_step_names_are_allocated_at_the_start_in_simulated_time():
    ran = run([sleep("1us")], buffers={"x": "4KiB hipMalloc", "y": "4KiB hipMalloc"})
    assert ran.step("sleep").start_ps == 2 * DRIVER.vram_alloc
    assert ran.makespan_ps == 2 * DRIVER.vram_alloc + US


def test_the_first_cpu_touch_faults_on_each_page_and_the_second_streams():
    ran = run([touch("x", name="first"), touch("x", name="second")], buffers={"x": "256MiB malloc"})
    stream = 256 * MIB / host_spec().thread_bandwidth
    faults = 256 * MIB // PAGE * (PAGES.fault + PAGES.alloc + PAGES.zero) / S
    assert ran.duration("second") == pytest.approx(stream, rel=1e-6)
    assert ran.duration("first") == pytest.approx(stream + faults, rel=1e-6)


# -- running out -------------------------------------------------------------------------------------------------------


def test_hip_malloc_beyond_vram_is_out_of_memory():
    ran = run([launch(writes="x")], buffers={"x": "65GiB hipMalloc"})
    assert ran.outcome == "out_of_memory"
    assert "hipErrorOutOfMemory: hipMalloc of 69793218560 bytes for 'x'" in ran.process("app").error
    assert ran.data.steps == []


def test_two_that_fit_alone_do_not_fit_together():
    assert (
        run([sleep("1us")], buffers={"x": "40GiB hipMalloc", "y": "40GiB hipMalloc"}).outcome
        == "out_of_memory"
    )


def test_vram_is_full_to_the_last_page():
    size = {"gpu.vram": "64MiB"}
    assert run([sleep("1us")], buffers={"x": "64MiB hipMalloc"}, overrides=size).outcome == "completed"
    full = {"x": "64MiB hipMalloc", "y": "1B hipMalloc"}
    assert run([sleep("1us")], buffers=full, overrides=size).outcome == "out_of_memory"


def test_touching_more_than_host_memory_is_host_out_of_memory():
    ran = run([touch("x")], buffers={"x": "2GiB malloc"}, overrides={"cpu.memory": "1GiB"})
    assert ran.outcome == "host_out_of_memory"
    assert "CPU touch of 'x'" in ran.process("app").error


def test_memory_that_is_only_allocated_does_not_run_out():
    ran = run([touch("x", size="1MiB")], buffers={"x": "2GiB malloc"}, overrides={"cpu.memory": "1GiB"})
    assert ran.outcome == "completed"


@pytest.mark.parametrize(
    ("memory", "most"),
    [("1GiB", 504 * MIB), ("16GiB", 14592 * MIB)],  # RAM less a 64th, half of it, or less 1.5 GiB
)
def test_pinned_memory_is_limited_by_kfd(memory, most):
    """`kfd_svm.md` 3.4: RAM - RAM/64 - 1.5 GiB; the driver takes half instead where RAM is below about 3 GiB."""
    overrides = {"cpu.memory": memory, "gpu.vram": "1GiB"}
    fits = run([sleep("1us")], buffers={"x": f"{most}B hipHostMalloc"}, overrides=overrides)
    ran = run([sleep("1us")], buffers={"x": f"{most + 4096}B hipHostMalloc"}, overrides=overrides)
    assert (fits.outcome, ran.outcome) == ("completed", "out_of_memory")


def test_pinned_memory_that_is_freed_can_be_pinned_again():
    steps = [repeat(3, alloc("x"), free("x"))]
    ran = run(steps, buffers={"x": "400MiB hipHostMalloc"}, overrides={"cpu.memory": "1GiB"})
    assert ran.outcome == "completed"


def test_vram_costs_host_memory():
    """Struct pages of ZONE_DEVICE: 64 bytes for each 4 KiB of VRAM, 1.6 % (`kfd_svm.md` 3.4)."""
    inside = run_inside(scenario([sleep("1us")], overrides={"cpu.memory": "64GiB", "gpu.vram": "64GiB"}))
    assert inside.machine.hardware.node.host.pages * PAGE == 63 * GIB


def test_managed_memory_without_xnack_is_populated_at_once():
    buffers = {"x": "400MiB hipMallocManaged", "y": "800MiB malloc"}
    steps = [touch("y"), alloc("x")]
    ran = run(steps, buffers=buffers, overrides={"cpu.memory": "1GiB", "gpu.vram": "1GiB"}, xnack=False)
    assert ran.outcome == "host_out_of_memory"


def test_what_comes_back_from_vram_must_fit_into_ram():
    ran = run(
        [launch(writes="x"), touch("x")],
        buffers={"x": "64MiB malloc"},
        overrides={"cpu.memory": "32MiB"},
    )
    assert ran.outcome == "host_out_of_memory"


def test_a_program_that_goes_on_after_an_error_completes_and_says_so():
    program = process(
        [alloc("x"), touch("y")], buffers={"x": "65GiB hipMalloc", "y": "4KiB malloc"}, on_error="continue"
    )
    ran = run(processes=[program])
    assert ran.outcome == "completed"
    assert "hipErrorOutOfMemory" in ran.process("app").error
    assert ran.step("host_touch").bytes == 4096
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_a_failed_allocation_takes_nothing():
    program = process(
        [alloc("x"), alloc("y")],
        buffers={"x": "65GiB hipMalloc", "y": "64GiB hipMalloc"},
        on_error="continue",
    )
    ran = run(processes=[program], overrides={"gpu.vram": "64GiB"})
    assert ran.process("app").error.count("hipErrorOutOfMemory") == 1


def test_a_process_that_goes_on_keeps_time_and_path_together():
    """The failure comes after the ioctl of hipMallocManaged: that time is spent, too."""
    program = process(
        [alloc("x"), sleep("1us")], buffers={"x": "2GiB hipMallocManaged"}, on_error="continue", xnack=False
    )
    ran = run(processes=[program], overrides={"cpu.memory": "1GiB"})
    assert ran.outcome == "completed"
    assert sum(ran.attribution.values()) == ran.makespan_ps > US


def test_what_a_dead_process_held_is_free_again():
    dies = process(
        [launch(writes="z")], name="dies", buffers={"x": "40GiB hipMalloc", "z": "4KiB malloc"}, xnack=False
    )
    later = process([sleep("1s"), alloc("y")], name="later", buffers={"y": "40GiB hipMalloc"})
    ran = run(processes=[dies, later])
    assert ran.process("dies").outcome == "vm_fault"
    assert ran.process("later").outcome == "completed"


def test_an_allocation_on_the_second_gpu_leaves_the_first_alone():
    ran = run_inside(scenario([sleep("1us")], buffers={"x": "1GiB hipMalloc gpu1"}, gpus=2))
    assert [vram(ran.machine, gpu).used * PAGE for gpu in range(2)] == [0, GIB]


def test_a_copy_does_not_fit_into_a_buffer_that_is_gone():
    ran = run(
        [alloc("x"), memcpy("x", "y"), free("x"), memcpy("x", "y", name="late")],
        buffers={"x": "4KiB hipMalloc", "y": "4KiB hipHostMalloc"},
    )
    assert ran.outcome == "hip_error"


# -- KFD's limit of system memory: `kfd_svm.md` 3.4 ----------------------------------------------------------------

SMALL = {"cpu.memory": "1GiB", "gpu.vram": "1GiB"}  # 504 MiB can be pinned


@pytest.mark.parametrize(
    ("buffers", "xnack", "outcome"),
    [
        ({"x": "500MiB hipMallocManaged"}, False, "completed"),
        ({"x": "508MiB hipMallocManaged"}, False, "out_of_memory"),
        ({"x": "508MiB hipMallocManaged"}, True, "completed"),
        ({"x": "300MiB hipMallocManaged", "y": "300MiB hipHostMalloc"}, False, "out_of_memory"),
        ({"x": "300MiB hipMallocManaged", "y": "300MiB hipHostMalloc"}, True, "completed"),
    ],
)
def test_svm_ranges_count_against_the_limit_while_xnack_is_off(buffers, xnack, outcome):
    assert run([sleep("1us")], buffers=buffers, xnack=xnack, overrides=SMALL).outcome == outcome


def test_registered_memory_counts_until_it_is_freed():
    register = {"host_register": {"buffer": "x"}}
    steps = [repeat(3, alloc("x"), touch("x"), register, free("x"))]
    assert run(steps, buffers={"x": "300MiB malloc"}, overrides=SMALL).outcome == "completed"
    both = [touch("x"), register, touch("y"), {"host_register": {"buffer": "y"}}]
    assert run(both, buffers=dict.fromkeys("xy", "300MiB malloc"), overrides=SMALL).outcome == "out_of_memory"


def test_what_kfd_does_not_admit_takes_nothing():
    """The program goes on after the error, and the limit and the addresses are as before."""
    steps = [alloc("x"), alloc("y")]
    buffers = {"x": "508MiB hipMallocManaged", "y": "500MiB hipMallocManaged"}
    app = process(steps, buffers=buffers, xnack=False, on_error="continue")
    ran = run_inside(scenario(processes=[app], overrides=SMALL))
    check(ran)
    assert ran.outcome == "completed"
    assert ran.machine.hardware.node.pinned.used * PAGE == 500 * MIB


def test_switching_xnack_counts_ranges_or_lets_them_go():
    def switched(first, then):
        steps = [{"set_xnack": {"enabled": then}}, sleep("1us")]
        ran = run_inside(scenario(steps, buffers={"x": "64MiB hipMallocManaged"}, xnack=first))
        return ran.machine.hardware.node.pinned.used * PAGE

    assert switched(first=True, then=False) == 64 * MIB
    assert switched(first=False, then=True) == 0
