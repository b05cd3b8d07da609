"""pread, pwrite, fdatasync and direct I/O, in four-line stories with closed forms."""

import pytest

from gpusim.errors import CallError
from gpusim.kinds import Kind
from tests.storage import GIB, KIB, MIB, US, Rig


def several(call, count, size):
    """`count` calls one after the other, each of `size` bytes behind the last."""
    for number in range(count):
        yield from call(number * size)


def moved(generator, into):
    """Note what a call returns."""
    into.append((yield from generator))


def test_cached_data_cost_the_call_and_the_copy():
    rig = Rig()
    file = rig.file(cached=GIB)
    took, chain = rig.time(rig.io.pread(file, 0, MIB))
    assert took == pytest.approx(1 * US + MIB / 8e9 * 1e12, rel=1e-3)
    assert chain.sums[Kind.DRIVE] == 0


def test_threads_that_copy_from_the_cache_share_what_memory_gives():
    """8 threads of 8 GB/s where all together get 32."""
    rig = Rig()
    file = rig.file(cached=GIB)
    for thread in range(8):
        rig.thread(rig.io.pread(file, thread * 16 * MIB, 16 * MIB))
    assert rig.run() == pytest.approx(128 * MIB / 32e9 * 1e12, rel=0.01)


def test_a_read_stops_at_the_end_of_the_file():
    rig, got = Rig(), []
    file = rig.file(10_000, cached=12_288)
    rig.time(moved(rig.io.pread(file, 8192, 4096), got))
    rig.time(moved(rig.io.pread(file, 10_000, 4096), got))
    rig.time(moved(rig.io.pread(file, 20_000, 4096), got))
    assert got == [1808, 0, 0]


def test_what_was_read_is_in_the_cache_until_it_is_dropped():
    rig = Rig()
    file = rig.file()
    cold, _ = rig.time(rig.io.pread(file, 0, 64 * KIB))
    warm, _ = rig.time(rig.io.pread(file, 0, 64 * KIB))
    rig.time(rig.io.drop_caches(None))
    again, _ = rig.time(rig.io.pread(file, 0, 64 * KIB))
    assert cold == again > 90 * US
    assert warm < 15 * US


def test_a_sequential_reader_finds_its_next_window_on_its_way():
    """Each call waits for the rest of what the one before has asked for; random ones pay the whole latency."""
    rig = Rig()
    file = rig.file()
    sequential, _ = rig.time(several(lambda at: rig.io.pread(file, at, 64 * KIB), 100, 64 * KIB))
    rig = Rig()
    other = rig.file()
    scattered, _ = rig.time(
        several(lambda at: rig.io.pread(other, (at * 37) % (512 * MIB), 64 * KIB), 100, 64 * KIB)
    )
    assert sequential < 0.7 * scattered


def test_readahead_reads_nothing_twice_and_nothing_beyond_the_end():
    rig = Rig()
    file = rig.file(10 * MIB)
    rig.time(several(lambda at: rig.io.pread(file, at, 256 * KIB), 40, 256 * KIB))
    assert rig.network.use("nvme0.read").amount == 10 * MIB
    assert file.inode.cached * 4096 == 10 * MIB


def test_direct_reads_leave_the_cache_alone():
    rig = Rig()
    file = rig.file()
    took, chain = rig.time(rig.io.pread(file, 0, MIB, direct=True))
    assert took == pytest.approx(4 * US + 80 * US + MIB / 4e9 * 1e12, rel=1e-3)
    assert file.inode.cached == 0
    assert chain.sums[Kind.PAGE_CACHE] == 0


@pytest.mark.parametrize(("offset", "size"), [(1, 4096), (0, 100), (2048, 4096)])
def test_direct_calls_have_to_be_aligned(offset, size):
    rig = Rig()
    with pytest.raises(CallError, match="EINVAL"):
        rig.time(rig.io.pread(rig.file(), offset, size, direct=True))


def test_a_file_without_o_direct_takes_no_direct_calls():
    rig = Rig()
    with pytest.raises(CallError, match="EINVAL"):
        rig.time(rig.io.pwrite(rig.file(supports_o_direct=False), 0, 4096, direct=True))


def test_a_write_is_in_the_cache_and_a_sync_brings_it_to_the_drive():
    rig = Rig()
    file = rig.file(cached=GIB)
    write, _ = rig.time(rig.io.pwrite(file, 0, 16 * MIB))
    assert write == pytest.approx(1 * US + 16 * MIB / 8e9 * 1e12, rel=1e-3)
    assert rig.network.use("nvme0.write").amount == 0
    sync, chain = rig.time(rig.io.fdatasync(file))
    assert rig.network.use("nvme0.write").amount == 16 * MIB
    assert sync == pytest.approx(1 * US + 10 * US + 16 * MIB / 4e9 * 1e12 + 5 * US, rel=1e-3)
    assert chain.sums[Kind.WRITEBACK] > 0.9 * sync


def test_a_sync_of_a_clean_file_is_a_flush():
    rig = Rig()
    took, _ = rig.time(rig.io.fdatasync(rig.file()))
    assert took == 6 * US


def test_a_file_that_grew_commits_its_journal_and_data_journals_write_twice():
    written = {}
    for options in ("data=ordered", "data=journal"):
        rig = Rig()
        file = rig.file(0, filesystem="ext4", mount_options=options)
        rig.time(rig.io.pwrite(file, 0, MIB))
        rig.time(rig.io.fdatasync(file))
        assert file.size == MIB
        written[options] = rig.network.use("nvme0.write").amount
    assert written == {"data=ordered": MIB + 16 * KIB, "data=journal": 2 * MIB + 16 * KIB}


def test_writers_wait_when_too_much_is_dirty():
    """1 GiB of memory: writeback begins at 0.1, writers wait at 0.2; in the long run they get the drive's rate."""
    rig = Rig(memory=GIB)
    file = rig.file(0, filesystem="xfs")
    took, chain = rig.time(several(lambda at: rig.io.pwrite(file, at, MIB), 1024, MIB))
    assert chain.sums[Kind.WRITEBACK] > 0.3 * took
    assert rig.cache.dirty * 4096 <= 0.2 * GIB + 2 * MIB
    assert 1024 * MIB / took * 1e12 < 2e9


def test_a_page_that_is_written_in_part_is_read_first():
    rig = Rig()
    file = rig.file()
    rig.time(rig.io.pwrite(file, 100, 200))
    assert rig.network.use("nvme0.read").amount == 4096
    rig.time(rig.io.pwrite(file, 4096, 4096))
    assert rig.network.use("nvme0.read").amount == 4096


def test_direct_io_sees_what_the_cache_holds():
    rig = Rig()
    file = rig.file()
    rig.time(rig.io.pwrite(file, 0, MIB))
    rig.time(rig.io.dma(file, 0, MIB, gpu=0, write=False))
    assert rig.network.use("nvme0.write").amount == MIB
    rig.time(rig.io.dma(file, 0, MIB, gpu=0, write=True))
    assert file.inode.cached == 0


def test_direct_io_waits_for_its_own_pages_only():
    rig = Rig()
    file = rig.file()
    rig.time(rig.io.pwrite(file, 0, MIB))
    rig.time(rig.io.dma(file, 64 * MIB, MIB, gpu=0, write=True))
    assert file.inode.dirty * 4096 == MIB
    rig.time(rig.io.dma(file, MIB // 2, MIB, gpu=0, write=True))
    assert file.inode.dirty == 0


def test_files_in_tmpfs_never_reach_a_drive():
    rig = Rig()
    file = rig.file(MIB, cached=MIB, memory_only=True)
    rig.time(rig.io.pwrite(file, 0, MIB))
    rig.time(rig.io.fdatasync(file))
    rig.time(rig.io.drop_caches(file))
    took, _ = rig.time(rig.io.pread(file, 0, MIB))
    assert took < 140 * US
    assert rig.network.use("nvme0.write").amount == rig.network.use("nvme0.read").amount == 0


def test_a_direct_read_over_the_end_of_an_odd_file_stops_there():
    """What is asked for has to be aligned, not what is left of the file."""
    rig, got = Rig(), []
    file = rig.file(10_000)
    rig.time(moved(rig.io.pread(file, 8192, 4096, direct=True), got))
    assert got == [10_000 - 8192]
    with pytest.raises(CallError, match="EINVAL"):
        rig.time(rig.io.pread(file, 8192, 10_000 - 8192, direct=True))


def test_a_file_that_is_dirty_for_too_long_is_written_when_the_flusher_looks():
    """64 MiB stay in memory for 30 s, and leave at the first look from then on; a later file has its own 30 s."""
    rig = Rig(dirty_age={"expire": "30s", "wakeup": "5s"})
    old, young = rig.file(0), rig.file(0)
    rig.thread(several(lambda at: rig.io.pwrite(old, at, MIB), 64, MIB))
    rig.env.call_at(7 * 10**12, lambda: rig.thread(rig.io.pwrite(young, 0, MIB)) and None)
    for second, amount in ((29, 0), (31, 64 * MIB), (39, 64 * MIB), (41, 65 * MIB)):
        rig.env.run_to(second * 10**12)
        rig.express.settle()
        assert rig.network.use("nvme0.write").amount == amount
    assert rig.cache.dirty == 0
    assert rig.run() < 50 * 10**12  # and nobody looks any more


def test_no_page_is_written_for_its_age_when_the_programs_have_ended():
    rig = Rig(dirty_age={"expire": "30s", "wakeup": "5s"})
    rig.io.writeback.wanted = lambda: False
    rig.time(rig.io.pwrite(rig.file(0), 0, MIB))
    assert rig.network.use("nvme0.write").amount == 0
    assert rig.cache.dirty == 256


def test_a_file_that_was_synced_begins_a_new_age():
    rig = Rig(dirty_age={"expire": "30s", "wakeup": "5s"})
    file = rig.file(0)
    rig.thread(rig.io.pwrite(file, 0, MIB))
    rig.env.call_at(20 * 10**12, lambda: rig.thread(rig.io.fdatasync(file)) and None)
    rig.env.call_at(21 * 10**12, lambda: rig.thread(rig.io.pwrite(file, 0, MIB)) and None)
    for second, dirty in ((22, 256), (49, 256), (56, 0)):
        rig.env.run_to(second * 10**12)
        assert rig.cache.dirty == dirty
