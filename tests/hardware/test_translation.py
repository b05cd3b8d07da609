"""UTCL1 and UTCL2: reach follows the fragment, and the closed forms count what the LRUs would count."""

from itertools import count

import numpy as np
import pytest

from gpusim.hardware.access import Operand
from gpusim.hardware.gpu_spec import Utcl1Spec, Utcl2Spec, WalkerSpec
from gpusim.hardware.gpuvm import HOST, LOCAL, Region, Vm
from gpusim.hardware.translation import Translation
from tests.programs import gpu_spec

MISS1, READ = 70_000, 345_000  # ps
BLOCK = 512  # pages of 2 MiB
VM = Vm("app", 1, retry=True)


def translation(
    *, units=104, xcds=1, utcl1=32, utcl2=4096, small=4096, walkers=4096, pde=(4096, 64, 16), shared=1
):
    pde0, pde1, pde2 = pde
    return Translation(
        Utcl1Spec.model_construct(entries=utcl1, largest=2 << 20, shared_by=shared, miss=MISS1),
        Utcl2Spec.model_construct(entries=utcl2, small_entries=small, large=2 << 20),
        WalkerSpec.model_construct(walkers=walkers, read=READ, pde0=pde0, pde1=pde1, pde2=pde2),
        compute_units=units,
        xcds=xcds,
    )


def region(blocks=512, *, fragment=9, vm=VM, state=LOCAL):
    made = Region(vm, "x", 1 << 18, blocks * BLOCK)
    made.map(0, blocks * BLOCK - 1, state, 0, fragment)
    return made


CLOCK = count(0, 10**9)  # accesses a millisecond apart: no walker is busy with another one


def page(tlbs, unit, mapped, number):
    return tlbs.added_ps(unit, mapped, number, next(CLOCK))


def added(tlbs, unit, mapped, block, now=None):
    return tlbs.added_ps(unit, mapped, block * BLOCK, next(CLOCK) if now is None else now)


def test_the_first_access_misses_both_levels_and_the_second_none():
    tlbs, x = translation(), region()
    assert (
        added(tlbs, 0, x, 7) == MISS1 + 3 * READ
    )  # nothing is cached: PDB2, PDB1, and the PDE0 that is the leaf
    assert added(tlbs, 0, x, 7) == 0


def test_directory_entries_make_the_next_walk_one_read():
    tlbs, x = translation(), region()
    added(tlbs, 0, x, 7)
    assert added(tlbs, 0, x, 8) == MISS1 + READ


def test_a_4_kib_page_is_one_table_deeper():
    tlbs, x = translation(), region(fragment=0)
    assert added(tlbs, 0, x, 7) == MISS1 + 4 * READ
    assert page(tlbs, 0, x, 7 * BLOCK + 1) == MISS1 + READ  # its PDE0 is at hand
    assert added(tlbs, 0, x, 8) == MISS1 + 2 * READ  # another table


def test_another_compute_unit_finds_it_in_utcl2():
    tlbs, x = translation(), region()
    added(tlbs, 0, x, 7)
    assert added(tlbs, 1, x, 7) == MISS1


def test_compute_units_that_share_a_utcl1_find_it_there():
    tlbs, x = translation(shared=2), region()
    added(tlbs, 0, x, 7)
    assert added(tlbs, 1, x, 7) == 0
    assert added(tlbs, 2, x, 7) == MISS1


def test_another_die_has_a_utcl2_of_its_own():
    tlbs, x = translation(units=16, xcds=8), region()
    seen = [added(tlbs, unit, x, 7) for unit in range(16)]
    assert seen.count(MISS1 + 3 * READ) == 8
    assert seen.count(MISS1) == 8


@pytest.mark.parametrize("shift", [0, 4, 9])
def test_utcl1_reach_follows_the_fragment(shift):
    """Round and round through what 32 entries cover: all hit; one fragment more, and LRU misses all."""
    for fragments, misses in ((32, 32), (33, 5 * 33)):
        tlbs, x = translation(), region(64, fragment=shift)
        for _ in range(5):
            for fragment in range(fragments):
                page(tlbs, 0, x, fragment << shift)
        assert tlbs.counts()["utcl1_misses"] == misses


def test_small_and_large_pages_do_not_push_each_other_out_of_utcl2():
    tlbs = translation(units=200, utcl2=4, small=8)
    large, small = region(8), region(8, fragment=0, vm=Vm("other", 2, retry=True))
    for block in range(4):
        added(tlbs, 0, large, block)
    for number in range(100):
        page(tlbs, 1, small, number)
    assert [added(tlbs, 2, large, block) for block in range(4)] == [MISS1] * 4


def test_a_walk_waits_for_a_free_walker():
    tlbs, x = translation(walkers=2, pde=(16, 16, 16)), region()
    added(tlbs, 0, x, 0)  # directory entries are at hand from here on
    start = next(CLOCK)
    waits = [added(tlbs, 1, x, block, start) for block in range(1, 6)]
    assert [wait - MISS1 for wait in waits] == [READ, READ, 2 * READ, 2 * READ, 3 * READ]
    assert tlbs.counts()["walk_wait_ps"] == 4 * READ


def test_a_flush_forgets_everything():
    tlbs, x = translation(), region()
    first = added(tlbs, 0, x, 7)
    tlbs.flush()
    assert added(tlbs, 0, x, 7) == first


@pytest.mark.parametrize("number", [2, 16, 17, 33])
def test_processes_do_not_share_entries(number):
    tlbs, x = translation(), region()
    other = region(vm=Vm("other", number, retry=True))
    for block in range(8):
        added(tlbs, 0, x, block)
    assert added(tlbs, 0, other, 1) == MISS1 + 3 * READ
    assert added(tlbs, 0, other, 3) == MISS1 + READ


def test_a_step_looks_up_each_fragment_that_it_comes_to():
    tlbs, x = translation(), region(4, fragment=0)
    tlbs.step_ps(0, [(Operand(x, read_bytes=1, write_bytes=0), 3, 18)], 0)
    assert tlbs.counts()["utcl1_misses"] == 16
    tlbs, x = translation(), region(4)
    tlbs.step_ps(0, [(Operand(x, read_bytes=1, write_bytes=0), 500, 530)], 0)
    assert tlbs.counts()["utcl1_misses"] == 2


@pytest.mark.parametrize(("units", "xcds"), [(104, 1), (304, 8), (60, 1)])
@pytest.mark.parametrize(
    ("step_pages", "shift"),
    [(512, 9), (256, 9), (64, 9), (16, 9), (9, 9), (16, 0), (1, 0), (16, 4), (64, 4), (4, 4)],
)
def test_a_stream_pays_what_the_lru_says(units, xcds, step_pages, shift):
    """Steps are handed out in order, one after another to all compute units, as `Dispatch` does."""
    tlbs = translation(units=units, xcds=xcds)
    steps = min(24 * units, 60_000 // max(1, step_pages >> shift))
    x = region(steps * step_pages // BLOCK + 1, fragment=shift)
    operand = Operand(x, read_bytes=1, write_bytes=0)
    closed = tlbs.stream(step_pages, shift)
    assert closed is not None
    paid = sum(
        tlbs.step_ps(step % units, [(operand, step * step_pages, (step + 1) * step_pages - 1)], next(CLOCK))
        for step in range(steps)
    )
    # a step that is not aligned to fragments comes to one more
    extra = 1 / step_pages if step_pages == 9 else 0
    assert closed.latency_ps == pytest.approx(paid / steps, rel=0.03 + extra)
    assert closed.reads == pytest.approx(tlbs.counts()["table_reads"] / steps, rel=0.06 + extra)


def test_a_stream_whose_units_come_back_to_a_fragment_has_no_closed_form():
    assert translation(units=104).stream(4, 9) is None
    assert translation(units=104).stream(5, 9) is not None


@pytest.mark.parametrize("fragments", [8, 32, 64, 512])
def test_random_accesses_pay_what_the_lru_says_in_the_steady_state(fragments):
    tlbs, x = translation(units=1, utcl1=32, utcl2=128), region(512)
    draws = np.random.default_rng(1).integers(0, fragments, 60_000).tolist()
    for block in draws[:10_000]:
        added(tlbs, 0, x, block)
    before = tlbs.counts()["table_reads"]
    paid = sum(added(tlbs, 0, x, block) for block in draws[10_000:])
    latency, reads = tlbs.independent({9: fragments})
    assert latency == pytest.approx(paid / 50_000, rel=0.02, abs=1)
    assert reads == pytest.approx((tlbs.counts()["table_reads"] - before) / 50_000, rel=0.03, abs=1e-3)


@pytest.mark.parametrize("small_blocks", [0, 1, 4, 16])
def test_random_accesses_to_small_and_large_pages_pay_what_the_lru_says(small_blocks):
    """One buffer of 16 blocks, of which some are translated in 4 KiB pages."""
    tlbs = translation(units=1, utcl1=32, utcl2=8, small=1024, pde=(4, 64, 16))
    x = Region(VM, "x", 1 << 18, 16 * BLOCK)
    x.map(0, 16 * BLOCK - 1, LOCAL, 0)
    if small_blocks:
        x.map(0, small_blocks * BLOCK - 1, HOST, 0)
    draws = np.random.default_rng(2).integers(0, 16 * BLOCK, 60_000).tolist()
    for number in draws[:20_000]:
        page(tlbs, 0, x, number)
    paid = sum(page(tlbs, 0, x, number) for number in draws[20_000:])
    latency, _ = tlbs.independent(x.fragment_counts(16 * BLOCK))
    assert latency == pytest.approx(paid / 40_000, rel=0.1)


def test_hits_and_misses_are_counted_by_level():
    tlbs, x = translation(), region()
    for unit, block in [(0, 1), (0, 1), (1, 1), (1, 2)]:
        added(tlbs, unit, x, block)
    counts = tlbs.counts()
    assert (counts["utcl1_hits"], counts["utcl1_misses"]) == (1, 3)
    assert (counts["utcl2_hits"], counts["utcl2_misses"]) == (1, 2)
    assert (counts["walks"], counts["table_reads"]) == (2, 4)


def test_walks_of_a_step_do_not_keep_walkers_from_those_who_come_at_the_same_time():
    """Two wavefronts with four pages each and two walkers: eight walks take four times one walk, none waits idle."""
    tlbs, x = translation(walkers=2), region(4, fragment=0)
    page(tlbs, 3, x, 100)  # directory entries are at hand
    now = next(CLOCK)
    operand = Operand(x, read_bytes=1, write_bytes=0)
    first, second = (tlbs.step_ps(unit, [(operand, 8 * unit, 8 * unit + 3)], now) for unit in (0, 1))
    assert first == 4 * (MISS1 + READ)  # its own four, one after another
    assert second == MISS1 + 4 * READ or second == 4 * (MISS1 + READ)
    assert tlbs.step_ps(2, [(operand, 32, 32)], now) == MISS1 + 5 * READ


@pytest.mark.parametrize("node", ["mi210-pcie4", "mi300x-pcie5", "mi300a", "mi100-pcie4", "radeonvii-pcie3"])
def test_a_miss_costs_tens_to_hundreds_of_nanoseconds_a_fault_a_thousand_times_that(node):
    """The orders of magnitude of the white paper, section 5."""
    spec = gpu_spec(node)
    assert 10_000 <= spec.utcl1.miss <= 100_000
    assert 100_000 <= spec.utcl1.miss + spec.walker.read <= 1_000_000
    assert spec.retry.delivery >= 5 * spec.walker.read
