"""How many wait at a resource: what is not spent alone there is spent in wait for the others."""

import pytest

import gpusim as gs
from gpusim.kinds import Kind
from gpusim.study import limits, spans
from tests import file_programs, programs
from tests.programs import memcpy

ONE_UNIT = "overrides: {drive.nvme0.read.units: 1}"
SLOW_CACHE = "overrides: {cpu.io.cache_bandwidth: 12GB/s}"


def queueing(result):
    """By resource."""
    return {limit.name: limit.queueing for limit in limits.limits(result, spans.of(result))}


def drive_times(result):
    """The spans at drives, in nanoseconds: how long, and how long alone."""
    rows = result.tables["spans"]
    rows = rows[rows["kind"] == Kind.DRIVE.name.lower()]
    return rows["end_ns"] - rows["start_ns"], rows["alone_ns"]


def read(threads, **about):
    job = f"io_size: 1MiB, size: 256MiB, threads: {threads}"
    step = f"load: {{file_read: {{file: f, buffer: x, {job}}}}}"
    return file_programs.run(step, record="spans", **about).result


def test_one_reader_waits_for_nobody():
    assert queueing(read(1))["nvme0.read"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("threads", [8, 16])
def test_readers_of_a_full_drive_wait_for_what_it_cannot_do_at_once(threads):
    """Little: as many are there as there are threads; alone each would be there for `alone` of its time."""
    result = read(threads)
    took, alone = drive_times(result)
    (once,) = set(alone.round(3))
    assert once == pytest.approx(drive_times(read(1))[0].mean(), rel=1e-6)  # what one reader sees
    there = took.sum() / result.summary["makespan_ns"]
    assert there == pytest.approx(threads, rel=0.15)
    assert queueing(result)["nvme0.read"] == pytest.approx(there * (1 - once / took.mean()), rel=1e-6)


def test_small_requests_that_find_no_free_unit_wait_for_one():
    step = (
        "load: {{file_read: {{file: f, buffer: x, io_size: 4KiB, size: 4MiB, order: random, threads: {}}}}}"
    )
    alone, many = (
        file_programs.run(step.format(threads), record="spans", top=ONE_UNIT).result for threads in (1, 8)
    )
    assert queueing(alone)["nvme0.read"] == pytest.approx(0, abs=1e-6)
    took = drive_times(many)[0].sum() / many.summary["makespan_ns"]
    assert queueing(many)["nvme0.read"] == pytest.approx(took - 1, rel=0.02)  # one is served at a time


def test_two_copies_over_one_link_wait_for_each_other_half_of_the_time():
    buffers = dict.fromkeys("ab", "1GiB hipMalloc") | dict.fromkeys("xy", "1GiB hipHostMalloc")
    both = [
        memcpy("a", "x", is_async=True, stream="one"),
        memcpy("b", "y", is_async=True, stream="two"),
        {"synchronize": {}},
    ]
    result = gs.run(programs.scenario(both, buffers=buffers), record="spans")
    found = queueing(result)["gpu[0].pcie.h2d"]
    copies = result.tables["spans"]
    copies = copies[copies["kind"] == Kind.SDMA_COPY.name.lower()]
    length = copies["end_ns"].max() - copies["start_ns"].min()
    assert found == pytest.approx(length / result.summary["makespan_ns"], rel=0.01)  # two, each half of it


def test_threads_that_copy_out_of_the_page_cache_wait_where_they_ask_for_more_than_it_gives():
    cached = {"facts": "cached: 100%", "env": 'HIPFILE_FORCE_COMPAT_MODE: "true"'}
    alone = queueing(read(1, **cached))["host.page_cache"]
    assert alone == pytest.approx(0, abs=1e-6)
    crowded = read(16, **cached, top=SLOW_CACHE)
    rows = crowded.tables["spans"]
    copies = rows[rows["kind"] == Kind.PAGE_CACHE.name.lower()]
    waited = (copies["end_ns"] - copies["start_ns"] - copies["alone_ns"]).sum() / crowded.summary[
        "makespan_ns"
    ]
    assert queueing(crowded)["host.page_cache"] == pytest.approx(waited, rel=1e-6)
    assert waited > 0.5
