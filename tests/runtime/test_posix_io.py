"""A program that reads and writes files itself, and copies to and from the GPU."""

from __future__ import annotations

import pytest

from tests.file_programs import run

MIB = 1 << 20


def read(more: str = "", *, buffer: str = "x", verb: str = "file_read") -> str:
    return f"job: {{{verb}: {{file: f, buffer: {buffer}, io_size: 1MiB, api: posix{more}}}}}"


def test_requests_are_reported_beside_hipfiles_paths() -> None:
    ran = run(read())
    assert ran.io("posix", "read")["requests"] == 64
    assert ran.summary["links"]["gpu[0].pcie.h2d"]["bytes"] == 64 * MIB
    assert "posix" not in run("job: {file_read: {file: f, buffer: x, io_size: 1MiB}}").summary["io"]


@pytest.mark.parametrize("allocator", ["malloc", "hipHostMalloc"])
def test_a_host_buffer_needs_no_copy(allocator: str) -> None:
    ran = run(read(buffer="h"), buffers=f"h: {{size: 64MiB, allocator: {allocator}}}", facts="cached: 100%")
    assert ran.summary["links"]["gpu[0].pcie.h2d"]["bytes"] == 0
    assert ran.io("posix", "read")["time"].keys() == {"file_system", "page_cache"}


def test_pinned_beats_pageable() -> None:
    facts = "cached: 100%"
    assert run(read(", bounce: pinned"), facts=facts).step("job") < 0.8 * run(read(), facts=facts).step("job")


def test_a_copy_waits_for_what_the_core_still_holds() -> None:
    """Up to the private cache, and only where a core has written the buffer."""
    cached = run(read(", bounce: pinned"), facts="cached: 100%").io("posix", "read")
    drained = cached["time"]["cache_drain"] * cached["latency_ns"]["mean"]
    assert drained == pytest.approx(MIB / 52, rel=0.01)
    direct = run(read(", bounce: pinned, direct: true")).io("posix", "read")
    assert "cache_drain" not in direct["time"]


def test_blocking_copies_of_threads_take_turns_while_others_read() -> None:
    """Two threads need half the time of one: while one copies, the other reads (H200-107, H200-123)."""
    one, two = (
        run(read(f", bounce: pinned, threads: {threads}"), facts="cached: 100%").step("job")
        for threads in (1, 2)
    )
    assert two == pytest.approx(one / 2, rel=0.02)


def test_errors_end_the_program_and_signals_do_not() -> None:
    assert run(read(), faults="{where: pread, errno: EINTR, at: [1]}").outcome == "completed"
    failed = run(read(verb="file_write"), faults="{where: pwrite, errno: ENOSPC, at: [1]}")
    assert failed.error == "pwrite of file 'f': ENOSPC"


def test_a_job_goes_around_in_a_small_buffer_and_stops_at_the_end_of_the_file() -> None:
    ran = run(read(", size: 256MiB"), buffers="y: {size: 1MiB, allocator: hipMalloc}", size="100MiB")
    assert ran.io("posix", "read")["bytes"] == 256 * MIB


def test_a_random_job_visits_other_blocks_with_another_seed() -> None:
    job = "job: {file_read: {file: f, buffer: x, io_size: 4KiB, size: 1MiB, order: random, api: posix}}"
    one = run(job, facts="cached: 50%").summary["makespan_ns"]
    assert run(job, facts="cached: 50%").summary["makespan_ns"] == one
    assert run(job, facts="cached: 50%", top="seed: 5").summary["makespan_ns"] != one


def test_a_timed_job_asks_until_its_time_is_over() -> None:
    ran = run(read(", duration: 10ms"))
    assert ran.step("job") == pytest.approx(10e6, rel=0.1)
    assert ran.io("posix", "read")["bytes"] == ran.step("job", "bytes")


def test_a_pageable_copy_takes_memory_bandwidth_twice() -> None:
    """A thread copies 10.6 GB/s: with 10.6 GB/s of memory in all, reading and writing take twice as long."""
    write = read(verb="file_write", more=", direct: true")
    usual = run(write).io("posix", "write")
    narrow = run(write, top="overrides: {cpu.bandwidth: 10.6GB/s}").io("posix", "write")
    took = [io["time"]["bounce_copy"] * io["latency_ns"]["mean"] for io in (usual, narrow)]
    assert took[0] == pytest.approx(MIB / 10.6, rel=0.01)
    assert took[1] == pytest.approx(2 * took[0], rel=0.02)


def test_what_a_program_leaves_dirty_is_written_after_30_seconds_or_not_at_all() -> None:
    save = "save: {file_write: {file: f, buffer: h, io_size: 1MiB, api: posix, size: 8MiB}}"
    buffers = "h: {size: 8MiB, allocator: malloc}"
    for seconds, written in ((20, 0), (40, 8 * MIB)):
        ran = run(save, f"rest: {{sleep: {{duration: {seconds}s}}}}", buffers=buffers)
        assert ran.summary["links"]["nvme0.write"]["bytes"] == written
        assert ran.summary["makespan_ns"] == pytest.approx(seconds * 1e9, rel=0.01)
