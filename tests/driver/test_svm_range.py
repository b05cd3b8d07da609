"""svm_range: sizes, pieces, granules and gaps (`kfd_svm.md` 2.1)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.driver.attributes import initial
from gpusim.driver.svm_range import SvmRange, SvmRangeList, largest_range_pages, pieces
from tests.programs import GIB, MIB, PAGE

LEAST, MOST = 2 * MIB // PAGE, GIB // PAGE


@pytest.mark.parametrize(
    ("vram", "expected"),
    [
        ([64 * GIB], GIB),  # 2 GiB, clamped
        ([192 * GIB], GIB),
        ([16 * GIB], 512 * MIB),
        ([68702699520], GIB),  # what HIP reports for an MI210: 1.9995 GiB
        ([32 * GIB - 1], 512 * MIB),  # not quite 1 GiB: the power of two below
        ([64 * GIB, 16 * GIB], 512 * MIB),  # the smallest GPU decides
        ([32 * MIB], 2 * MIB),  # never below a granule
    ],
)
def test_the_largest_range_is_a_32nd_of_vram(vram, expected):
    assert largest_range_pages(vram, 32, LEAST, MOST) * PAGE == expected


@given(st.integers(0, 1 << 20), st.integers(1, 5000), st.integers(0, 12))
def test_pieces_tile_a_buffer_and_are_cut_at_multiples(first, pages, log):
    most = 1 << log
    last = first + pages - 1
    found = list(pieces(first, last, most))
    assert found[0][0] == first
    assert found[-1][1] == last
    for (_, before), (after, _) in pairwise(found):
        assert after == before + 1
        assert after % most == 0
    assert all(end - start < most for start, end in found)
    assert len(found) == last // most - first // most + 1


def test_a_granule_is_clipped_to_its_range():
    svm = SvmRange(1000, 2100, attributes=initial(xnack=True, gpus=1, granule_pages=512), registered=True)
    assert svm.granule(1000) == (1000, 1023)
    assert svm.granule(1024) == (1024, 1535)
    assert svm.granule(2100) == (2048, 2100)


def ranges(*spans):
    listed = SvmRangeList()
    for first, last in spans:
        listed.add(
            SvmRange(first, last, attributes=initial(xnack=True, gpus=1, granule_pages=512), registered=False)
        )
    return listed


def test_a_page_is_found_in_its_range():
    listed = ranges((10, 19), (30, 39))
    assert listed.find(19).first == 10
    assert listed.find(20) is None
    assert listed.find(9) is None
    assert listed.find(39).first == 30


def test_ranges_that_share_a_page_with_a_part_are_found_in_order():
    listed = ranges((30, 39), (10, 19), (50, 59))
    assert [svm.first for svm in listed.within(19, 30)] == [10, 30]
    assert [svm.first for svm in listed.within(20, 29)] == []
    assert [svm.first for svm in listed.within(0, 100)] == [10, 30, 50]


def test_a_new_range_fits_between_its_neighbours():
    listed = ranges((10, 19), (30, 39))
    assert listed.gap_around(25, 0, 511) == (20, 29)
    assert listed.gap_around(5, 0, 511) == (0, 9)
    assert listed.gap_around(45, 0, 511) == (40, 511)


@given(st.lists(st.integers(0, 400), max_size=30))
def test_ranges_made_on_the_fly_never_overlap(pages):
    listed = SvmRangeList()
    for page in pages:
        if listed.find(page) is None:
            block = page - page % 64
            first, last = listed.gap_around(page, max(block, page - 7), min(block + 63, page + 7))
            assert first <= page <= last
            fresh = initial(xnack=True, gpus=1, granule_pages=64)
            listed.add(SvmRange(first, last, attributes=fresh, registered=False))
    ends = -1
    for svm in listed:
        assert svm.first > ends
        ends = svm.last
    assert all(listed.find(page) is not None for page in pages)


@given(
    st.lists(st.tuples(st.sampled_from(["find", "make", "drop", "shrink"]), st.integers(0, 60)), max_size=60)
)
def test_what_is_found_is_what_is_there_whatever_was_looked_up_before(steps):
    listed, here = SvmRangeList(), {}
    for what, page in steps:
        svm = listed.find(page)
        assert svm is here.get(page)
        if what == "make" and svm is None:
            first, last = listed.gap_around(page, max(0, page - 3), page + 3)
            assert not here.keys() & range(first, last + 1)
            assert first == max(0, page - 3) or first - 1 in here
            assert last == page + 3 or last + 1 in here
            fresh = initial(xnack=True, gpus=1, granule_pages=512)
            svm = SvmRange(first, last, attributes=fresh, registered=False)
            listed.add(svm)
            here |= dict.fromkeys(range(first, last + 1), svm)
        elif what == "drop" and svm is not None:
            listed.remove(svm)
            here = {key: value for key, value in here.items() if value is not svm}
        elif what == "shrink" and svm is not None:
            listed.shrink(svm, page, svm.last)
            here = {key: value for key, value in here.items() if value is not svm or key >= page}
    assert list(listed) == list(dict.fromkeys(here[page] for page in sorted(here)))
