"""VMAs, where pages lie, and host memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.errors import SimulatedFailure
from gpusim.linux.address_space import NOWHERE, RAM, VRAM, AddressSpace, HostMemory, Vma, VmaKind


def anonymous(pages=100, first=1000):
    return Vma("x", first, pages, VmaKind.ANONYMOUS)


def test_pages_are_nowhere_until_they_are_touched():
    vma = anonymous()
    assert vma.count(vma.first, vma.last, NOWHERE) == vma.pages == 100


def test_pages_move():
    vma = anonymous()
    vma.move(1010, 1019, RAM)
    vma.move(1015, 1016, VRAM + 1)
    assert vma.count(vma.first, vma.last, RAM) == 8
    assert vma.count(1015, 1016, VRAM + 1) == 2
    assert vma.count(1000, 1009, RAM) == 0


def test_device_memory_keeps_no_pages_in_linux():
    assert len(Vma("d", 0, 100, VmaKind.DEVICE).where) == 0


def test_addresses_are_aligned_and_neighbours_have_a_hole_between_them():
    space = AddressSpace()
    one = space.map("a", 3, VmaKind.ANONYMOUS, 512)
    other = space.map("b", 3, VmaKind.ANONYMOUS, 1)
    assert one.first % 512 == 0
    assert other.first == one.last + 2


def test_an_address_is_found_in_its_vma_and_nowhere_else():
    space = AddressSpace()
    one, other = (space.map(name, 10, VmaKind.ANONYMOUS, 512) for name in "ab")
    assert space.find(one.first) is space.find(one.last) is one
    assert space.find(other.last) is other
    assert space.find(one.first - 1) is None
    assert space.find(one.last + 1) is None
    space.unmap(one)
    assert space.find(one.first) is None


def test_an_address_is_never_used_again():
    space = AddressSpace()
    old = space.map("a", 10, VmaKind.ANONYMOUS, 1)
    space.unmap(old)
    assert space.map("a", 10, VmaKind.ANONYMOUS, 1).first > old.last


@given(st.lists(st.tuples(st.integers(1, 2000), st.sampled_from([1, 2, 512, 4096])), max_size=20))
def test_vmas_never_overlap(wanted):
    space = AddressSpace()
    for number, (pages, align) in enumerate(wanted):
        assert space.map(str(number), pages, VmaKind.DEVICE, align).first % align == 0
    ends = -1
    for vma in space:
        assert vma.first > ends
        ends = vma.last


def test_host_memory_runs_out():
    host = HostMemory(10 * 4096)
    host.take(7, "x")
    with pytest.raises(
        SimulatedFailure, match=r"y: needs 16384 more bytes of host memory, 12288 of 40960"
    ) as failure:
        host.take(4, "y")
    assert failure.value.outcome == "host_out_of_memory"
    host.give_back(7)
    host.take(10, "z")
    assert (host.used, host.peak) == (10, 10)
