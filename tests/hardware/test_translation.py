"""UTCL1 and UTCL2: an LRU is an LRU, and the closed forms count what it would count."""

from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.hardware.gpu_spec import TlbSpec
from gpusim.hardware.gpuvm import Vm
from gpusim.hardware.translation import Tlb, Translation

MISS1, WALK = 70_000, 345_000  # ps
VM = Vm("app", 1, retry=True)


def translation(*, units=104, xcds=1, utcl1=32, utcl2=4096):
    levels = [
        TlbSpec.model_construct(entries=utcl1, miss=MISS1),
        TlbSpec.model_construct(entries=utcl2, miss=WALK),
    ]
    return Translation(*levels, compute_units=units, xcds=xcds)


@given(st.integers(1, 6), st.lists(st.integers(0, 9)))
def test_the_least_recently_used_entry_goes_first(entries, accesses):
    tlb, held = Tlb(entries), OrderedDict()
    for key in accesses:
        expected = key in held
        held[key] = None
        held.move_to_end(key)
        if len(held) > entries:
            held.popitem(last=False)
        assert tlb.hit(key) == expected
    assert tlb.hits + tlb.misses == len(accesses)


def test_the_first_access_misses_both_levels_and_the_second_none():
    tlbs = translation()
    assert tlbs.added_ps(0, VM, 7) == MISS1 + WALK
    assert tlbs.added_ps(0, VM, 7) == 0


def test_another_compute_unit_finds_it_in_utcl2():
    tlbs = translation()
    tlbs.added_ps(0, VM, 7)
    assert tlbs.added_ps(1, VM, 7) == MISS1


def test_another_die_has_a_utcl2_of_its_own():
    tlbs = translation(units=16, xcds=8)
    seen = [tlbs.added_ps(unit, VM, 7) for unit in range(16)]
    assert seen.count(MISS1 + WALK) == 8
    assert seen.count(MISS1) == 8


def test_a_flush_forgets_everything():
    tlbs = translation()
    tlbs.added_ps(0, VM, 7)
    tlbs.flush()
    assert tlbs.added_ps(0, VM, 7) == MISS1 + WALK


@pytest.mark.parametrize("number", [2, 16, 17, 33])
def test_processes_do_not_share_entries(number):
    tlbs = translation()
    other = Vm("other", number, retry=True)
    for fragment in range(8):
        tlbs.added_ps(0, VM, fragment)
    assert tlbs.added_ps(0, other, 1) == MISS1 + WALK
    assert tlbs.added_ps(0, other, 3) == MISS1 + WALK


@pytest.mark.parametrize(("units", "xcds"), [(104, 1), (304, 8), (60, 1)])
@pytest.mark.parametrize("steps_per_fragment", [1, 2, 8, 32, 60])
def test_a_stream_pays_what_the_lru_says(units, xcds, steps_per_fragment):
    """Steps are handed out in order, one after another to all compute units, as `Dispatch` does."""
    tlbs = translation(units=units, xcds=xcds)
    steps = 64 * units
    added = sum(tlbs.added_ps(step % units, VM, step // steps_per_fragment) for step in range(steps))
    assert tlbs.stream_ps(steps_per_fragment) == pytest.approx(added / steps, rel=0.02)


@pytest.mark.parametrize("fragments", [8, 32, 64, 512])
def test_random_accesses_pay_what_the_lru_says_in_the_steady_state(fragments):
    tlbs = translation(units=1, utcl1=32, utcl2=128)
    draws = np.random.default_rng(1).integers(0, fragments, 60_000).tolist()
    for fragment in draws[:10_000]:
        tlbs.added_ps(0, VM, fragment)
    added = sum(tlbs.added_ps(0, VM, fragment) for fragment in draws[10_000:])
    assert tlbs.mean_random_ps(fragments) == pytest.approx(added / 50_000, rel=0.02, abs=1)


def test_hits_and_misses_are_counted_by_level():
    tlbs = translation()
    for unit, fragment in [(0, 1), (0, 1), (1, 1), (1, 2)]:
        tlbs.added_ps(unit, VM, fragment)
    expected = SimpleNamespace(utcl1_hits=1, utcl1_misses=3, utcl2_hits=1, utcl2_misses=2)
    assert tlbs.counts() == vars(expected)
