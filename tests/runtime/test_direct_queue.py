"""A thread with many direct requests in flight: what the drive gives, what the thread pays, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.file_programs import Ran, run

MIB = 1 << 20
HOST = "h: {size: 64MiB, allocator: hipHostMalloc}"


def job(
    verb: str = "file_read", buffer: str = "h", size: str = "4KiB", depth: int = 1, more: str = ""
) -> str:
    return (
        f"job: {{{verb}: {{file: f, buffer: {buffer}, io_size: {size}, api: posix, direct: true, "
        f"depth: {depth}{more}}}}}"
    )


def ran(step: str, **about: str) -> Ran:
    return run(step, buffers=HOST, **about)


def rate(depth: int, **about: str) -> float:
    return ran(job(depth=depth, more=", order: random, duration: 5ms"), **about).step(
        "job", "bandwidth_gb_per_s"
    )


def test_a_queue_multiplies_small_reads_until_the_thread_or_the_drive_is_full() -> None:
    one = rate(1)
    assert rate(4) == pytest.approx(4 * one, rel=0.05)
    table = ran(job()).result.tables["parameters"]
    cost = {
        row.path: float(row.value.removesuffix("us"))
        for row in table.itertuples()
        if "cpu.io." in row.path and row.path.rpartition(".")[2] in ("syscall", "direct")
    }
    thread = 4096 / (sum(cost.values()) * 1000)  # GB/s that a thread can submit
    assert 4 * one < thread < 64 * one
    assert rate(64) == pytest.approx(thread, rel=0.03)
    assert (
        ran(job(depth=64, more=", order: random, duration: 5ms")).io("posix", "read")["limited_by"]
        == "submitter"
    )


def test_one_in_flight_is_a_loop_of_pread() -> None:
    queue = ran(job(depth=2, more=", size: 4KiB"))
    loop = ran(job(depth=1, more=", size: 4KiB"))
    assert queue.step("job") == pytest.approx(loop.step("job"), rel=0.01)


@pytest.mark.parametrize("verb", ["file_read", "file_write"])
@pytest.mark.parametrize("buffer", ["h", "x"])
@pytest.mark.parametrize("depth", [2, 7, 300])
def test_every_byte_moves_once(verb: str, buffer: str, depth: int) -> None:
    way = verb.removeprefix("file_")
    done = ran(job(verb, buffer, "1MiB", depth))
    assert done.io("posix", way)["requests"] == 64
    assert done.step("job", "bytes") == 64 * MIB
    assert done.summary["links"][f"nvme0.{way}"]["bytes"] == 64 * MIB
    link = f"gpu[0].pcie.{'h2d' if way == 'read' else 'd2h'}"
    assert done.summary["links"][link]["bytes"] == (64 * MIB if buffer == "x" else 0)


@pytest.mark.parametrize("depth", [3, 32])
def test_littles_law_and_the_time_of_requests_add_up(depth: int) -> None:
    done = ran(job(size="64KiB", depth=depth, buffer="x", more=", bounce: pinned"))
    io = done.io("posix", "read")
    assert sum(io["time"].values()) == pytest.approx(1)
    rows = done.result.tables["io"]
    grid = np.linspace(rows["start_ns"].min(), rows["end_ns"].max(), 20_001)
    inside = [
        np.searchsorted(np.sort(rows["start_ns"]), grid, "right")
        - np.searchsorted(np.sort(rows["end_ns"]), grid, "right")
    ]
    assert np.mean(inside) == pytest.approx(io["in_flight"], rel=0.01)
    assert np.max(inside) <= depth


def test_the_end_of_the_file_ends_the_job() -> None:
    done = ran(job(size="1MiB", depth=8, more=", size: 64MiB"), faults="{where: pread, short: 0%, at: [20]}")
    assert done.outcome == "completed"
    assert 20 * MIB <= done.step("job", "bytes") < 30 * MIB


def test_a_short_count_is_asked_for_again_where_it_ended() -> None:
    done = ran(job(size="1MiB", depth=8), faults="{where: pread, short: 1%, at: [0, 5]}")
    assert done.io("posix", "read")["requests"] == 66
    assert done.step("job", "bytes") == 64 * MIB


@pytest.mark.parametrize("where", ["pread, errno: EIO", "hipMemcpy, errno: hipError"])
def test_an_error_ends_the_program_when_the_others_are_done(where: str) -> None:
    done = ran(job(size="1MiB", depth=8, buffer="x"), faults=f"{{where: {where}, at: [3]}}")
    assert done.outcome == "io_error"
    assert list(done.io("posix", "read")["errors"].values()) == [1]
    assert done.step("job", "bytes") <= 3 * MIB
    assert done.step("job") > MIB / 7.1  # ns: those in flight were waited for


def test_reads_and_writes_mix_in_one_queue() -> None:
    done = ran(job(size="64KiB", depth=16, more=", mix: 30%"))
    reads, writes = (done.io("posix", way)["requests"] for way in ("read", "write"))
    assert reads + writes == 1024
    assert 0.25 < writes / 1024 < 0.35
