"""RAID, LVM, dm-crypt, multipath and loop: where data go, and how fast."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.hardware.fabric import HOST
from gpusim.linux.stack_spec import StackKind
from tests.storage import KIB, MIB, US, Rig


def moved(rig, way="read"):
    """Bytes of each drive."""
    rig.run()
    return [rig.network.use(f"{drive.name}.{way}").amount for drive in rig.drives]


def submit(rig, stack, offset, size, *, write=False):
    ends = []
    stack.submit(offset, size, HOST, lambda: ends.append(rig.env.now), write=write)
    return ends


def test_raid_0_reads_from_all_members_at_once():
    rig = Rig(4)
    ends = submit(rig, rig.stack(StackKind.MD_RAID0), 0, 16 * MIB)
    assert moved(rig) == [4 * MIB] * 4
    assert ends[0] == pytest.approx(80 * US + 4 * MIB / 4e9 * 1e12, rel=1e-3)


def test_raid_0_keeps_a_small_request_on_one_member():
    rig = Rig(4)
    submit(rig, rig.stack(StackKind.MD_RAID0, chunk=512 * KIB), 3 * 512 * KIB, 4 * KIB)
    assert moved(rig) == [0, 0, 0, 4 * KIB]


@settings(max_examples=40, deadline=None)
@given(
    offset=st.integers(0, 1 << 24),
    size=st.integers(1, 1 << 23),
    chunk=st.sampled_from([4096, 65536, 1 << 20]),
)
def test_raid_0_moves_every_byte_once(offset, size, chunk):
    """Held against counting chunk by chunk."""
    rig = Rig(3)
    submit(rig, rig.stack(StackKind.MD_RAID0, chunk=chunk), offset, size)
    expected = [0, 0, 0]
    at = offset
    while at < offset + size:
        end = min(offset + size, (at // chunk + 1) * chunk)
        expected[at // chunk % 3] += end - at
        at = end
    assert moved(rig) == expected


def test_raid_1_writes_to_all_and_reads_from_one():
    rig = Rig(2)
    stack = rig.stack(StackKind.MD_RAID1)
    submit(rig, stack, 0, MIB, write=True)
    assert moved(rig, "write") == [MIB, MIB]
    submit(rig, stack, 0, MIB)
    submit(rig, stack, 0, MIB)
    assert moved(rig) == [MIB, MIB]


def test_lvm_goes_from_one_member_to_the_next():
    rig = Rig(2, capacity="1MiB")
    stack = rig.stack(StackKind.LVM)
    assert stack.capacity == 2 * MIB
    submit(rig, stack, 512 * KIB, MIB)
    assert moved(rig) == [512 * KIB, 512 * KIB]


def test_the_kernel_finds_no_pci_device_behind_a_stack():
    rig = Rig(2)
    assert rig.file().pci == "nvme0"
    for kind in StackKind:
        file = rig.file(device=rig.stack(kind))
        assert file.pci is None
        assert file.lvm == (kind is StackKind.LVM)


def test_a_flush_reaches_all_members():
    rig = Rig(3)
    rig.stack(StackKind.MD_RAID0).flush(lambda: None)
    rig.run()
    assert [drive.flushes for drive in rig.drives] == [1, 1, 1]


def test_a_sync_of_a_file_on_raid_0_is_as_fast_as_all_members():
    rig = Rig(4)
    file = rig.file(64 * MIB, device=rig.stack(StackKind.MD_RAID0), cached=64 * MIB)
    rig.time(rig.io.pwrite(file, 0, 64 * MIB))
    took, _ = rig.time(rig.io.fdatasync(file))
    assert took == pytest.approx(16 * MIB / 4e9 * 1e12, rel=0.02)
