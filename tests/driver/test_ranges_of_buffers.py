"""Which ranges a program ends up with: registered ones, on-the-fly ones, and those between neighbours."""

import pytest

from tests.programs import GIB, MIB, PAGE, alloc, launch, prefetch, run_inside, scenario, touch


def ranges(*args, **keys):
    """(size, registered) of all ranges in bytes, by address; and the granules that each starts at."""
    ran = run_inside(scenario(*args, **keys))
    assert ran.outcome == "completed"
    (process,) = ran.machine.processes
    return [(svm.pages * PAGE, svm.registered) for svm in process.hip.kfd.ranges]


def test_a_managed_buffer_is_split_at_a_32nd_of_vram():
    found = ranges([touch("x", size="4KiB")], buffers={"x": "3GiB hipMallocManaged"})
    assert found == [(GIB, True)] * 3


def test_on_a_gpu_with_16_gib_ranges_are_512_mib():
    found = ranges(
        [touch("x", size="4KiB")], buffers={"x": "1GiB hipMallocManaged"}, overrides={"gpu.vram": "16GiB"}
    )
    assert found == [(512 * MIB, True)] * 2


def test_the_end_of_a_managed_buffer_is_a_smaller_range():
    found = ranges([touch("x", size="4KiB")], buffers={"x": "1025MiB hipMallocManaged"})
    assert found == [(GIB, True), (MIB, True)]


def test_a_small_managed_buffer_is_one_range():
    assert ranges([touch("x")], buffers={"x": "8MiB hipMallocManaged"}) == [(8 * MIB, True)]


def test_malloc_makes_no_range():
    assert ranges([touch("x")], buffers={"x": "8MiB malloc"}) == []


def test_a_gpu_that_touches_malloc_memory_makes_one_range_a_granule():
    found = ranges([launch(writes="x")], buffers={"x": "8MiB malloc"})
    assert found == [(2 * MIB, False)] * 4


def test_the_last_range_ends_with_its_buffer():
    found = ranges([launch(writes="x")], buffers={"x": "5MiB malloc"})
    assert found == [(2 * MIB, False), (2 * MIB, False), (MIB, False)]


def test_a_range_on_the_fly_keeps_to_the_gap_between_registered_neighbours():
    """3 MiB in the middle are prefetched: the granule on either side is what is left of it."""
    found = ranges(
        [prefetch("x", offset="3MiB", size="3MiB"), launch(writes="x")], buffers={"x": "8MiB malloc"}
    )
    assert found == [(2 * MIB, False), (MIB, False), (3 * MIB, True), (2 * MIB, False)]


def test_the_granule_can_be_chosen():
    found = ranges(
        [launch(writes="x")],
        buffers={"x": "1MiB malloc"},
        overrides={"driver.svm.default_granularity": "64KiB"},
        kernels={"scale": {"step": "16KiB"}},
    )
    assert found == [(64 * 1024, False)] * 16


def test_several_gpus_agree_on_the_smallest_vram():
    found = ranges(
        [touch("x", size="4KiB")],
        buffers={"x": "1GiB hipMallocManaged"},
        gpus=2,
        overrides={"gpu[1].hbm.size": "16GiB"},
    )
    assert found == [(512 * MIB, True)] * 2


@pytest.mark.parametrize("allocator", ["hipMalloc", "hipHostMalloc"])
def test_what_is_not_svm_has_no_ranges(allocator):
    assert ranges([launch(writes="x")], buffers={"x": f"8MiB {allocator}"}) == []


def test_a_buffer_that_an_alloc_step_names_is_not_there_before():
    assert ranges([touch("y")], buffers={"x": "8MiB hipMallocManaged", "y": "4KiB malloc"}) == [
        (8 * MIB, True)
    ]
    later = [touch("y"), alloc("x")]
    assert ranges(later, buffers={"x": "8MiB hipMallocManaged", "y": "4KiB malloc"}) == [(8 * MIB, True)]
