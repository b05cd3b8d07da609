"""Drives: latency by size and by queue depth, bandwidth, the write cache, flush; against closed forms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.hardware.fabric import HOST
from gpusim.hardware.write_cache import WriteCache
from tests.occupancy import Occupancy
from tests.storage import KIB, MIB, MS, US, Rig


class Watched:
    """A device with somebody who counts who comes and goes."""

    def __init__(self, rig, device, queue):
        self.rig, self.device, self.queue = rig, device, queue

    def submit(self, offset, size, target, done, *, write):
        since = self.rig.env.now
        self.queue.enter(since)

        def ended():
            self.queue.leave(self.rig.env.now, since)
            done()

        self.device.submit(offset, size, target, ended, write=write)


def submit(rig, size, *, write=False, target=HOST, drive=0):
    """Submit one request now; the list gets its end."""
    ends = []
    rig.disks[drive].submit(0, size, target, lambda: ends.append(rig.env.now), write=write)
    return ends


def closed_loop(rig, *, depth, size, count, write=False, target=HOST):
    """Keep `depth` requests in flight until `count` have been submitted; returns the time."""
    left = count

    def next_one():
        nonlocal left
        if left:
            left -= 1
            rig.disks[0].submit(0, size, target, next_one, write=write)

    for _ in range(depth):
        next_one()
    return rig.run()


def test_a_small_read_takes_the_latency_and_its_transfer():
    rig = Rig()
    ends = submit(rig, 4 * KIB)
    rig.run()
    assert ends[0] == pytest.approx(80 * US + 4 * KIB / 8e9 * 1e12, rel=1e-4)


@pytest.mark.parametrize("size", [64 * KIB, MIB, 16 * MIB])
def test_one_large_read_runs_at_the_rate_of_one_request(size):
    rig = Rig()
    ends = submit(rig, size)
    rig.run()
    assert ends[0] == pytest.approx(80 * US + size / 4e9 * 1e12, rel=1e-6)


@pytest.mark.parametrize(("depth", "reads_per_s"), [(1, 12_420), (4, 49_680), (8, 100_000), (64, 100_000)])
def test_reads_a_second_grow_with_depth_up_to_the_units(depth, reads_per_s):
    """8 units of 80 us: 100,000 reads a second at the most."""
    rig = Rig()
    took = closed_loop(rig, depth=depth, size=4 * KIB, count=4000)
    assert 4000 / took * 1e12 == pytest.approx(reads_per_s, rel=0.01)


def test_large_reads_share_the_bandwidth():
    rig = Rig()
    took = closed_loop(rig, depth=8, size=MIB, count=800)
    assert 800 * MIB / took * 1e12 == pytest.approx(8e9, rel=0.02)


def test_a_request_to_a_gpu_takes_the_gpus_link_and_not_host_memory():
    rig = Rig()
    submit(rig, MIB, target=0)
    rig.run()
    assert rig.network.use("gpu[0].pcie.h2d").amount == MIB
    assert rig.network.use("host.memory").amount == 0
    assert rig.network.use("nvme0.read").amount == MIB


def test_small_and_large_transfers_are_all_credited_to_the_links():
    rig = Rig()
    closed_loop(rig, depth=3, size=4 * KIB, count=50)
    closed_loop(rig, depth=3, size=MIB, count=50)
    assert rig.network.use("nvme0.read").amount == 50 * 4 * KIB + 50 * MIB
    assert rig.express.transfers == 50


def test_a_small_transfer_beside_a_flow_is_a_flow_itself():
    rig = Rig()
    submit(rig, 64 * MIB)
    rig.env.call_at(100 * US, lambda: submit(rig, 4 * KIB))
    rig.run()
    assert rig.express.transfers == 0


def test_writes_fill_the_cache_and_then_go_at_the_rate_of_the_media():
    """64 MiB of cache, filled at 4 GB/s and emptied at 1 GB/s: full after 67.1 MB / 3 GB/s of writing."""
    rig = Rig()
    burst = closed_loop(rig, depth=4, size=MIB, count=64, write=True)
    assert 64 * MIB / burst * 1e12 == pytest.approx(4e9, rel=0.02)
    rest = closed_loop(rig, depth=4, size=MIB, count=512, write=True)
    assert 576 * MIB / rest * 1e12 == pytest.approx(1e9 * 576 / (576 - 64), rel=0.03)


def test_an_idle_cache_empties():
    cache = WriteCache(1000, 1e12)  # a byte a picosecond
    assert cache.take(1000, 0) == 0
    assert cache.take(1000, 400) == 1000 + 1
    assert cache.level_bytes(5000) == 0


def test_a_flush_is_short_with_capacitors_and_empties_the_cache_without():
    for volatile, expected in ((False, 5 * US), (True, 5 * US + MIB / 1e9 * 1e12)):
        rig = Rig(volatile_cache=volatile)
        ends = submit(rig, MIB, write=True)
        rig.run()
        flushed = []
        rig.disks[0].flush(lambda rig=rig, flushed=flushed: flushed.append(rig.env.now))
        rig.run()
        assert flushed[0] - ends[0] == pytest.approx(expected, rel=0.35)


@settings(max_examples=25, deadline=None)
@given(
    depth=st.integers(1, 32),
    size=st.sampled_from([512, 4 * KIB, 32 * KIB, 33 * KIB, 256 * KIB, MIB]),
    write=st.booleans(),
)
def test_littles_law(depth, size, write):
    """What is in the drive on average is the rate of requests times their mean stay, measured each by itself."""
    rig = Rig()
    queue = Occupancy()
    rig.disks[0] = Watched(rig, rig.disks[0], queue)
    took = closed_loop(rig, depth=depth, size=size, count=200, write=write)
    assert queue.arrived == queue.left == 200
    rate, stay = queue.left / took, queue.sojourn_ps / queue.left
    assert queue.mean(took) == pytest.approx(rate * stay, rel=0.01)
    assert queue.most <= depth


def test_two_drives_to_one_gpu_share_its_link():
    rig = Rig(2, read={"latency": "80us", "units": 8, "bandwidth": "40GB/s", "stream": "40GB/s"})
    submit(rig, 512 * MIB, target=0, drive=0)
    submit(rig, 512 * MIB, target=0, drive=1)
    took = rig.run()
    assert 1024 * MIB / took * 1e12 == pytest.approx(50e9, rel=0.01)
    assert took < 40 * MS
