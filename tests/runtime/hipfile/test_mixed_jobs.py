"""Jobs that read and write: every call goes one way, the shares come out, and bytes are told by direction."""

from __future__ import annotations

import pytest

from gpusim.errors import InputError
from tests.file_programs import Ran, run

JOB = "load: {{file_read: {{file: f, buffer: x, io_size: 64KiB, mix: 30%, {about}}}}}"
CALLS = 1024


def mixed(about: str) -> Ran:
    return run(JOB.format(about=about))


@pytest.mark.parametrize(
    ("about", "path"),
    [
        ("api: sync", "fastpath"),
        ("api: sync, threads: 4", "fastpath"),
        ("api: async, depth: 8", "fastpath"),
        ("api: posix", "posix"),
        ("api: posix, direct: true, threads: 2", "posix"),
    ],
)
def test_three_of_ten_calls_write(about: str, path: str) -> None:
    ran = mixed(about)
    read, written = ran.io(path, "read"), ran.io(path, "write")
    assert ran.outcome == "completed"
    assert read["requests"] + written["requests"] == CALLS
    assert written["requests"] == pytest.approx(0.3 * CALLS, rel=0.15)
    assert read["bytes"] + written["bytes"] == 64 << 20
    assert ran.step("load", "bytes") == 64 << 20


def test_a_batch_may_hold_reads_and_writes() -> None:
    ran = run("load: {file_batch: {operation: read, file: f, buffer: x, io_size: 64KiB, mix: 50%}}")
    read, written = ran.io("fastpath", "read"), ran.io("fastpath", "write")
    assert read["requests"] + written["requests"] == CALLS
    assert written["requests"] == pytest.approx(0.5 * CALLS, rel=0.15)


def test_what_calls_spend_is_told_by_direction_and_once() -> None:
    """The CPU time of both ways is that of the calls: about as much as if all of them read, not twice as much."""
    ran = mixed("api: sync")
    both = sum(ran.io("fastpath", way)["cpu_ns"] for way in ("read", "write"))
    alone = run("load: {file_read: {file: f, buffer: x, io_size: 64KiB}}").io("fastpath", "read")["cpu_ns"]
    assert both == pytest.approx(alone, rel=0.05)


def test_the_draw_is_the_same_in_every_run_and_another_for_each_thread() -> None:
    assert mixed("threads: 2").summary["io"] == mixed("threads: 2").summary["io"]


def test_statistics_of_the_library_know_both_ways() -> None:
    statistics = mixed("api: sync").statistics
    assert statistics["fastpath.read"]["ioCount"] + statistics["fastpath.write"]["ioCount"] == CALLS


def test_an_error_names_the_call_that_failed() -> None:
    ran = run(JOB.format(about="api: posix"), faults="{where: pwrite, errno: ENOSPC, at: [3]}")
    assert ran.error == "pwrite of file 'f': ENOSPC"


def test_a_batch_of_writes_has_no_mix() -> None:
    with pytest.raises(InputError, match="operation write would ignore this key"):
        run("load: {file_batch: {operation: write, file: f, buffer: x, io_size: 64KiB, mix: 50%}}")
