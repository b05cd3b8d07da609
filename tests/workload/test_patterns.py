"""Access patterns: which pages a step touches, how far a run of mapped steps goes, and what a kernel moves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.errors import InputError
from gpusim.hardware.gpuvm import HOST, INVALID, LOCAL, Region, Vm
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns import PATTERNS
from tests.programs import GIB, KIB, MIB, PAGE, S, gpu_spec, launch, machine, run

MI210 = gpu_spec()
GPU = machine().hardware.node.devices[0].gpu
OVERHEAD = (MI210.compute.launch + MI210.compute.completion) / S
VM = Vm("app", 1, retry=True)

kernels = st.builds(
    dict,
    pattern=st.sampled_from(["stream", "stencil", "tiled"]),
    step=st.sampled_from(["1KiB", "4KiB", "16KiB", "5000B", "64KiB"]),
    passes=st.integers(1, 3),
)
sizes = st.one_of(st.integers(1, 300_000), st.sampled_from([4096, 65536, 65537, 262144]))


def walk(sizes, *, regions=None, **kernel):
    """An access stream over buffers of these sizes, all read and written."""
    if kernel.get("pattern") == "stencil":
        kernel["points"] = 5
    spec = KernelSpec.model_validate(kernel)
    regions = regions or [
        Region(VM, f"b{i}", 512 * i, -(-size // PAGE), state=LOCAL) for i, size in enumerate(sizes)
    ]
    bound = [Argument(region, size, True, True) for region, size in zip(regions, sizes, strict=True)]
    return PATTERNS[spec.pattern](spec, bound, GPU, 1)


@given(st.lists(sizes, min_size=1, max_size=3), kernels)
def test_a_pass_touches_every_page_of_every_buffer(sizes, kernel):
    stream = walk(sizes, **kernel)
    for operand in stream.operands:
        seen = set()
        for index in range(stream.steps):
            for touched, first, last in stream.touches(index):
                if touched is operand:
                    assert 0 <= first <= last < operand.region.pages
                    seen.update(range(first, last + 1))
        assert seen == set(range(operand.region.pages))


@given(st.lists(sizes, min_size=1, max_size=3), kernels)
def test_the_steps_of_a_pass_move_each_byte_once(sizes, kernel):
    stream = walk(sizes, **kernel)
    for size, operand in zip(sizes, stream.operands, strict=True):
        assert operand.read_bytes * stream.steps == pytest.approx(size)
        assert operand.write_bytes * stream.steps == pytest.approx(size)


@given(st.lists(sizes, min_size=1, max_size=3), kernels)
def test_every_pass_is_like_the_first(sizes, kernel):
    stream = walk(sizes, **kernel)
    for index in range(0, stream.steps, max(1, stream.steps // 7)):
        assert list(stream.touches(index)) == list(stream.touches(index + (stream.passes - 1) * stream.steps))


def like_first(stream, start, index):
    """Do all pages of step `index` lie where the first page of step `start` lies, operand by operand?"""
    for (operand, first, _), (_, begin, end) in zip(
        stream.touches(start), stream.touches(index), strict=True
    ):
        valid = operand.region.valid
        state = valid[first]
        if state == INVALID or any(page != state for page in valid[begin : end + 1]):
            return False
    return True


holes = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 8), st.sampled_from([INVALID, HOST])), max_size=5
)


@settings(max_examples=300)
@given(
    st.lists(sizes, min_size=1, max_size=2),
    kernels,
    st.lists(holes, min_size=2, max_size=2),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_run_of_mapped_steps_goes_as_far_as_looking_at_each_step_says(sizes, kernel, holes, at, until):
    """Never further; and to the very step, except that a run of several passes may end at the end of a pass."""
    stream = walk(sizes, **kernel)
    for operand, pages in zip(stream.operands, holes, strict=False):
        for page, length, state in pages:
            for hole in range(page, min(page + length, operand.region.pages)):
                operand.region.valid[hole] = state
    total = stream.steps * stream.passes
    start = int(at * (total - 1))
    stop = start + max(1, int(until * (total - start)))
    run = 0
    while start + run < stop and like_first(stream, start, start + run):
        run += 1
    found = stream.mapped_run(start, stop)
    assert found <= run
    if found < run:
        assert stream.passes > 1
        assert (start + found) % stream.steps == 0


@pytest.mark.parametrize("mapping", ["linear", "grid_stride", "blocked"])
def test_over_mapped_memory_the_mapping_makes_no_difference(mapping):
    ran = run([launch(writes="x")], buffers={"x": "1GiB hipMalloc"}, kernels={"scale": {"mapping": mapping}})
    assert ran.outcome == "completed"
    assert ran.duration("scale") == pytest.approx(OVERHEAD + GIB / MI210.hbm.bandwidth, rel=0.01)


@pytest.mark.parametrize("mapping", ["linear", "grid_stride", "blocked"])
def test_whatever_the_mapping_each_granule_is_served_once(mapping):
    spec = {"scale": {"mapping": mapping, "step": "16KiB"}}
    ran = run([launch(writes="x")], buffers={"x": "32MiB malloc"}, kernels=spec)
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 16
    assert ran.data.engine["wave_steps"] == 32 * MIB // (16 * KIB)


# -- strided -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stride", "share"), [("8B", 1), ("64B", 1), ("128B", 1 / 2), ("4KiB", 1 / 64)])
def test_memory_moves_whole_lines_of_a_strided_buffer(stride, share):
    spec = {"scale": {"pattern": "strided", "stride": stride}}
    ran = run([launch(reads="x")], buffers={"x": "4GiB hipMalloc"}, kernels=spec)
    expected = max(4 * GIB * share / MI210.hbm.bandwidth, 0)
    assert ran.duration("scale") - OVERHEAD == pytest.approx(expected, rel=0.02)


def test_a_strided_kernel_touches_all_pages():
    spec = {"scale": {"pattern": "strided", "stride": "4KiB"}}
    assert run([launch(reads="x")], buffers={"x": "16MiB malloc"}, kernels=spec).faults["serviced"] == 8


def test_a_stride_that_skips_pages_is_refused():
    with pytest.raises(InputError, match="would skip pages"):
        run(
            [launch(reads="x")],
            buffers={"x": "16MiB malloc"},
            kernels={"scale": {"pattern": "strided", "stride": "8KiB"}},
        )


# -- stencil -----------------------------------------------------------------------------------------------------------


def test_a_stencil_moves_each_point_once():
    buffers = {"x": "1GiB hipMalloc", "y": "1GiB hipMalloc"}
    spec = {"scale": {"pattern": "stencil", "points": 5}}
    ran = run([launch(reads="x", writes="y")], buffers=buffers, kernels=spec)
    assert ran.duration("scale") == pytest.approx(OVERHEAD + 2 * GIB / MI210.hbm.bandwidth, rel=5e-3)


def test_a_step_of_a_stencil_reads_one_row_of_its_neighbours():
    """1,024 x 1,024 doubles: a row is 8 KiB, two pages."""
    stream = walk([8 * MIB], pattern="stencil", step="32KiB")
    assert [touch[1:] for touch in stream.touches(0)] == [(0, 9)]
    assert [touch[1:] for touch in stream.touches(1)] == [(6, 17)]
    assert [touch[1:] for touch in stream.touches(stream.steps - 1)] == [(2048 - 10, 2047)]


def test_three_points_lie_in_one_row():
    spec = KernelSpec.model_validate({"pattern": "stencil", "points": 3, "step": "32KiB"})
    region = Region(VM, "x", 0, 2048, state=LOCAL)
    stream = PATTERNS[spec.pattern](spec, [Argument(region, 8 * MIB, True, False)], GPU, 1)
    assert [touch[1:] for touch in stream.touches(1)] == [(8, 15)]


def test_a_stencil_over_malloc_memory_serves_each_granule_once():
    spec = {"scale": {"pattern": "stencil", "points": 5}}
    ran = run(
        [launch(reads="x", writes="y")], buffers={"x": "16MiB malloc", "y": "16MiB malloc"}, kernels=spec
    )
    assert ran.faults["serviced"] == 16


# -- random ------------------------------------------------------------------------------------------------------------

RANDOM = {"scale": {"pattern": "random", "bytes_per_lane": "64B"}}


def test_random_accesses_to_resident_memory_move_whole_lines():
    small = {"scale": {"pattern": "random", "bytes_per_lane": "8B"}}
    ran = run([launch(reads="x")], buffers={"x": "1GiB hipMalloc"}, kernels=small)
    assert ran.duration("scale") == pytest.approx(OVERHEAD + 8 * GIB / MI210.hbm.bandwidth, rel=0.15)


def test_random_accesses_of_whole_lines_are_a_stream_with_misses():
    stream = run([launch(reads="x")], buffers={"x": "1GiB hipMalloc"}).duration("scale")
    random = run([launch(reads="x")], buffers={"x": "1GiB hipMalloc"}, kernels=RANDOM).duration("scale")
    assert 0.98 * stream <= random < 1.2 * stream  # L2 holds 8 MiB of it


def test_random_accesses_to_host_memory_cross_the_link():
    ran = run([launch(reads="x")], buffers={"x": "16MiB hipHostMalloc"}, kernels=RANDOM)
    assert ran.raised == 0
    assert ran.link_bytes("h2d") == 16 * MIB


def test_random_accesses_to_untouched_memory_serve_each_granule_once():
    ran = run([launch(reads="x")], buffers={"x": "16MiB malloc"}, kernels=RANDOM)
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 8


def test_random_accesses_to_two_places_use_both():
    ran = run(
        [launch(reads="x y")], buffers={"x": "16MiB hipHostMalloc", "y": "16MiB hipMalloc"}, kernels=RANDOM
    )
    assert ran.link_bytes("h2d") == 16 * MIB


def test_what_is_drawn_depends_on_the_seed_only():
    def pages(seed):
        ran = run([launch(reads="x")], buffers={"x": "8MiB malloc"}, kernels=RANDOM, seed=seed)
        return ran.data.tables["faults"]["page"].tolist()

    assert pages(1) == pages(1)
    assert pages(1) != pages(2)


def test_two_launches_draw_differently():
    spec = KernelSpec.model_validate(RANDOM["scale"])
    region = Region(VM, "x", 0, 4096)
    one, two = (
        PATTERNS[spec.pattern](spec, [Argument(region, 16 * MIB, True, False)], GPU, number)
        for number in (1, 2)
    )
    assert list(one.touches(0)) != list(two.touches(0))
    assert [touch[1:] for touch in one.touches(3)] == [touch[1:] for touch in one.touches(3)]
