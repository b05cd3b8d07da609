"""random, zipf, gather, spmv, tiled and pointer chases: what they touch, what serves it, and what it costs."""

import numpy as np
import pytest

from gpusim.errors import InputError
from gpusim.hardware.gpuvm import INVALID, LOCAL, Region, Vm
from gpusim.hardware.popularity import Popularity
from gpusim.kinds import Kind
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns import PATTERNS
from tests.programs import GIB, MIB, PAGE, S, gpu_spec, launch, machine, run

MI210 = gpu_spec()
GPU = machine().hardware.node.devices[0].gpu
OVERHEAD = (MI210.compute.launch + MI210.compute.completion) / S
VM = Vm("app", 1, retry=True)


def stream(*sizes, state=LOCAL, **kernel):
    regions = [
        Region(VM, f"b{i}", 1 << 18 + i, -(-size // PAGE), state=state) for i, size in enumerate(sizes)
    ]
    bound = [Argument(region, size, True, False) for region, size in zip(regions, sizes, strict=True)]
    return PATTERNS[KernelSpec.model_validate(kernel).pattern](
        KernelSpec.model_validate(kernel), bound, GPU, 1
    )


def seconds(kernel, *, reads="x", buffers=None, xnack=False, **keys):
    buffers = buffers or {"x": "256MiB hipMalloc", "y": "256MiB hipMalloc"}
    return run(
        [launch(reads=reads)], buffers=buffers, kernels={"scale": kernel}, xnack=xnack, **keys
    ).duration("scale")


# -- popularity


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.4])
@pytest.mark.parametrize("scattered", [False, True])
def test_what_is_drawn_follows_the_law(exponent, scattered):
    law = Popularity(10_000, exponent, scattered=scattered)
    drawn = law.draw(np.random.default_rng(1), 200_000)
    assert drawn.min() >= 0
    assert drawn.max() < 10_000
    counts = np.sort(np.bincount(drawn, minlength=10_000))[::-1]
    top = 100
    expected = law.below(top) if exponent else counts[:top].sum() / 200_000
    assert counts[:top].sum() / 200_000 == pytest.approx(expected, abs=0.03)
    if not scattered and exponent:
        assert (drawn < top).mean() == pytest.approx(law.below(top), abs=0.01)


@pytest.mark.parametrize(
    ("exponent", "scattered", "entries", "group"),
    [
        (0.0, False, 100, 4),
        (0.5, False, 1000, 4),
        (1.0, False, 500, 8),
        (0.8, True, 1000, 8),
        (1.3, True, 300, 8),
    ],
)
def test_an_lru_cache_serves_what_the_closed_form_says(exponent, scattered, entries, group):
    law = Popularity(50_000, exponent, scattered=scattered)
    held, hits, warm = {}, 0, 60_000
    drawn = (law.draw(np.random.default_rng(2), 160_000) // group).tolist()
    for number, key in enumerate(drawn):
        if key in held:
            del held[key]
            hits += number >= warm
        elif len(held) >= entries:
            del held[next(iter(held))]
        held[key] = None
    assert law.lru_share(entries, group) == pytest.approx(hits / (len(drawn) - warm), abs=0.015)


# -- what steps touch


@pytest.mark.parametrize("pattern", ["random", "zipf", "gather", "spmv", "pointer_chase"])
def test_a_step_on_missing_pages_names_each_once_and_in_bounds(pattern):
    walked = stream(8 * MIB, 4 * MIB, pattern=pattern, state=INVALID)
    for index in range(min(walked.steps, 8)):
        seen = set()
        for operand, first, last in walked.touches(index):
            assert 0 <= first <= last < operand.region.pages
            for page in range(first, last + 1):
                assert (operand, page) not in seen
                seen.add((operand, page))
        assert seen
        assert walked.touches(index) == walked.touches(index)  # whoever asks, and when
    assert walked.mapped_run(0, walked.steps) == 0


@pytest.mark.parametrize("pattern", ["random", "zipf", "gather", "spmv", "tiled", "pointer_chase"])
def test_on_mapped_memory_nothing_has_to_wait(pattern):
    walked = stream(8 * MIB, 4 * MIB, pattern=pattern)
    assert walked.mapped_run(0, walked.steps) == walked.steps


def test_a_banded_matrix_reads_near_the_diagonal():
    walked = stream(64 * MIB, 8 * MIB, pattern="spmv", band="1MiB", state=INVALID)
    vector = walked.operands[1]
    for index in (0, walked.steps // 2, walked.steps - 1):
        pages = [first for operand, first, _ in walked.touches(index) if operand is vector]
        assert max(pages) - min(pages) <= 256
        assert abs(np.mean(pages) - (index + 0.5) / walked.steps * 2048) < 256


def test_gather_needs_something_that_says_where():
    with pytest.raises(InputError, match="two or more in `reads`"):
        run([launch(reads="x")], buffers={"x": "1MiB hipMalloc"}, kernels={"scale": {"pattern": "gather"}})


def test_a_tile_takes_a_page_for_each_of_its_rows():
    """4096 x 4096 doubles: a row is eight pages; a tile of 64 x 64 is 64 pages, as many bytes as eight."""
    walked = stream(4096 * 4096 * 8, pattern="tiled", tile=64)
    assert walked.steps == 64 * 64
    touches = walked.touches(0)
    assert [first for _, first, _ in touches] == [8 * row for row in range(64)]
    assert all(first == last for _, first, last in touches)


def test_tiles_grow_to_whole_pages():
    walked = stream(4096 * 4096 * 8, pattern="tiled", tile=512)
    assert walked.steps == 64
    assert len(walked.touches(0)) == 512


def test_a_run_of_tiles_ends_with_the_mapped_rows():
    region = Region(VM, "m", 1 << 18, 4096 * 8)
    region.map(0, 64 * 8 * 3 - 1, LOCAL, 0)  # three rows of tiles
    spec = KernelSpec.model_validate({"pattern": "tiled"})
    walked = PATTERNS[spec.pattern](spec, [Argument(region, 4096 * PAGE * 8, True, False)], GPU, 1)
    assert walked.mapped_run(0, 1000) == 3 * 64
    assert walked.mapped_run(70, 1000) == 3 * 64 - 70
    assert walked.mapped_run(3 * 64, 10) == 0


# -- what they cost


def test_popular_elements_come_from_caches():
    """Uniform accesses to 256 MiB find 3 % in L2; with a Zipf law most are there."""
    uniform, skewed, very = (
        seconds({"pattern": "zipf", "exponent": exponent}) - OVERHEAD for exponent in (0, 1, 1.5)
    )
    assert skewed < 0.5 * uniform
    assert very < skewed


def test_a_uniform_zipf_is_random():
    assert seconds({"pattern": "zipf", "exponent": 0}) == pytest.approx(
        seconds({"pattern": "random"}), rel=1e-3
    )


def test_a_gather_costs_more_than_a_walk_and_less_than_random_reads_of_both():
    walked = seconds({"pattern": "stream"}, reads="x y")
    gathered = seconds({"pattern": "gather"}, reads="x y")
    assert walked < gathered < seconds({"pattern": "random"}, reads="x y")


def test_a_narrow_band_makes_spmv_a_walk():
    near = seconds({"pattern": "spmv", "band": "1MiB"}, reads="x y")
    anywhere = seconds({"pattern": "spmv"}, reads="x y")
    walked = seconds({"pattern": "stream"}, reads="x y")
    assert near < 1.3 * walked
    assert anywhere > 3 * near


def test_tiles_move_each_byte_once():
    ran = seconds({"pattern": "tiled"}, buffers={"x": "1GiB hipMalloc"})
    assert ran == pytest.approx(OVERHEAD + GIB / MI210.hbm.bandwidth, rel=0.01)


@pytest.mark.parametrize("pattern", ["zipf", "gather", "spmv", "tiled", "pointer_chase"])
def test_both_modes_agree_on_first_touch(pattern):
    keys = {"accesses": 20_000} if pattern == "pointer_chase" else {}
    spec = {"scale": {"pattern": pattern, **keys}}
    grouped, stepwise = (
        run(
            [launch(reads="x y")],
            buffers={"x": "16MiB malloc", "y": "8MiB malloc"},
            kernels=spec,
            driver={"recent_skip": "off"},
            stepwise=stepwise,
        )
        for stepwise in (False, True)
    )
    assert grouped.faults["serviced"] == stepwise.faults["serviced"] == 12
    assert grouped.makespan_ps == pytest.approx(stepwise.makespan_ps, rel=0.1)


# -- pointer chases


def chase(size, **keys):
    spec = {"scale": {"pattern": "pointer_chase", "accesses": 100_000, **keys}}
    return run([launch(reads="x")], buffers={"x": f"{size} hipMalloc"}, kernels=spec, xnack=False)


def test_a_chase_takes_a_latency_a_load():
    ran = chase("32MiB")
    assert (ran.duration("scale") - OVERHEAD) / 1e5 == pytest.approx(345e-9, rel=0.01)
    assert ran.step("scale").bytes == 8 * 100_000


def test_many_chasers_take_the_time_of_one_until_memory_is_full():
    one = chase("32MiB").duration("scale")
    assert chase("32MiB", workgroups=100, workgroup=64).duration("scale") == pytest.approx(one, rel=0.01)
    assert chase("32MiB", workgroups=100, workgroup=64).step("scale").bytes == 100 * 8 * 100_000


def test_beyond_its_reach_a_chase_pays_for_utcl1_misses_and_says_so():
    ran = chase("1GiB")
    missed = (1 - 64 / 1024) * 68
    assert (ran.duration("scale") - OVERHEAD) * 1e4 == pytest.approx(345 + missed, rel=0.01)
    assert ran.share(Kind.TRANSLATION) == pytest.approx(missed / (345 + missed), rel=0.02)


def test_a_chase_through_untouched_memory_faults_page_after_page():
    ran = run(
        [launch(reads="x")],
        buffers={"x": "8MiB malloc"},
        kernels={"scale": {"pattern": "pointer_chase", "accesses": 10_000}},
        driver={"recent_skip": "off"},
    )
    assert ran.faults["serviced"] == 4
