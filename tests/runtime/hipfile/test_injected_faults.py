"""Errors and short counts injected below hipFile, each into a run on a whole machine."""

from __future__ import annotations

import pytest

from tests.file_programs import Ran, run

MIB = 1 << 20
READ = "load: {file_read: {file: f, buffer: x, io_size: 1MiB}}"
WRITE = "save: {file_write: {file: f, buffer: x, io_size: 1MiB}}"
COMPAT = 'HIPFILE_FORCE_COMPAT_MODE: "true"'


def compat(step: str, faults: str) -> Ran:
    return run(step, faults=faults, env=COMPAT)


@pytest.mark.parametrize("errno", ["ENODEV", "EREMOTEIO"])
def test_two_errors_of_the_fast_path_are_retried_once(errno: str) -> None:
    ran = run(READ, faults=f"{{where: fastpath, errno: {errno}, at: [3, 9]}}")
    assert ran.outcome == "completed"
    assert ran.io("fastpath", "read")["requests"] == 62
    assert ran.io("fastpath", "read")["errors"] == {errno: 2}
    assert ran.io("fallback", "read")["reasons"] == {f"retried after {errno}": 2}


@pytest.mark.parametrize("errno", ["EIO", "EINVAL", "EBADF", "EBADFD", "ENOMEM", "EINTR", "EAGAIN"])
def test_all_other_errors_of_the_fast_path_are_final(errno: str) -> None:
    ran = run(READ, faults=f"{{where: fastpath, errno: {errno}, at: [3]}}")
    assert (ran.outcome, ran.error) == ("io_error", f"hipFileRead of file 'f': {errno}")
    assert ran.io("fallback", "read")["requests"] == 0


def test_an_error_of_hip_on_the_fast_path_is_final() -> None:
    ran = run(READ, faults="{where: fastpath, errno: hipError}")
    assert ran.error == "hipFileRead of file 'f': hipErrorUnknown"


def test_a_fallback_that_fails_after_a_retry_gives_its_own_error() -> None:
    ran = run(READ, faults="{where: fastpath, errno: ENODEV}, {where: pread, errno: EIO, at: [5]}")
    assert ran.error == "hipFileRead of file 'f': EIO"
    assert ran.io("fallback", "read")["errors"] == {"EIO": 1}


def test_a_program_that_goes_on_lists_the_error() -> None:
    ran = run(READ, WRITE, faults="{where: fastpath, errno: EIO, at: [0]}", on_error="continue")
    assert ran.outcome == "completed"
    assert "EIO" in str(ran.error)
    assert ran.io("fastpath", "write")["requests"] == 64


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (READ, "{where: pread, errno: EINTR, at: [2, 3, 7]}"),
        (WRITE, "{where: pwrite, errno: EINTR, at: [0]}"),
    ],
)
def test_a_signal_only_costs_time(step: str, fault: str) -> None:
    calm, disturbed = compat(step, ""), compat(step, fault)
    way = "read" if step is READ else "write"
    assert disturbed.io("fallback", way)["bytes"] == calm.io("fallback", way)["bytes"] == 64 * MIB
    assert disturbed.io("fallback", way)["errors"] == {}
    if step is WRITE:  # the copy from the GPU is made again
        assert disturbed.summary["links"]["gpu[0].pcie.d2h"]["bytes"] == 65 * MIB


@pytest.mark.parametrize(
    ("step", "place", "error"),
    [
        (READ, "bounce_mmap, errno: ENOMEM", "ENOMEM"),
        (READ, "pread, errno: EIO", "EIO"),
        (READ, "hipMemcpy, errno: hipError", "hipErrorUnknown"),
        (WRITE, "pwrite, errno: ENOSPC", "ENOSPC"),
        (WRITE, "fdatasync, errno: EIO", "EIO"),
        (WRITE, "hipMemcpy, errno: hipError", "hipErrorUnknown"),
    ],
)
def test_an_error_of_the_fallback_ends_the_call(step: str, place: str, error: str) -> None:
    ran = compat(step, f"{{where: {place}, at: [1]}}")
    assert ran.outcome == "io_error"
    assert str(ran.error).endswith(error)


def test_short_preads_are_continued_where_they_ended() -> None:
    ran = compat(READ, "{where: pread, short: 50%, at: [0]}")
    assert ran.io("fallback", "read")["requests"] == 64
    assert ran.io("fallback", "read")["bytes"] == 64 * MIB


def test_a_pread_of_nothing_is_the_end_of_the_file() -> None:
    ran = compat(READ, "{where: pread, short: 0%, at: [4]}")
    assert ran.outcome == "completed"
    assert ran.io("fallback", "read")["bytes"] == 4 * MIB


def test_a_short_count_of_the_fast_path_is_not_sent_to_the_fallback() -> None:
    """The program asks for the rest, in whole sectors."""
    ran = run(
        READ,
        faults="{where: fastpath, short: 40%, at: [0]}",
        facts="dio_offset_align: 512B, dio_mem_align: 4B",
    )
    assert ran.io("fastpath", "read")["requests"] == 65
    assert ran.io("fastpath", "read")["bytes"] == 64 * MIB
    assert ran.io("fallback", "read")["requests"] == 0


def test_chance_hits_the_same_requests_for_the_same_seed() -> None:
    one, two = (run(READ, faults="{where: fastpath, errno: ENODEV, probability: 20%}") for _ in range(2))
    retried = one.io("fallback", "read")["requests"]
    assert 2 < retried < 30
    assert two.io("fallback", "read")["requests"] == retried
    assert one.summary["makespan_ns"] == two.summary["makespan_ns"]


def test_a_fault_may_be_meant_for_one_file() -> None:
    files = "g: {size: 4MiB, filesystem: xfs, drive: nvme1}"
    other = "other: {file_read: {file: g, buffer: x, io_size: 1MiB}}"
    ran = run(READ, other, files=files, faults="{where: fastpath, file: g, errno: ENODEV}")
    assert ran.io("fastpath", "read")["requests"] == 64
    assert ran.io("fallback", "read")["requests"] == 4


def test_a_file_that_cannot_be_reopened_directly_goes_by_the_fallback() -> None:
    ran = run(READ, faults="{where: reopen, errno: EINVAL}")
    assert ran.outcome == "completed"
    assert ran.io("fallback", "read")["reasons"] == {"no descriptor with O_DIRECT": 64}


@pytest.mark.parametrize(
    ("version", "where", "errno", "code"),
    [
        ("0.5.0", "reopen", "EIO", "hipFileInternalError"),
        ("0.5.0", "reopen", "EMFILE", "hipFileGetNewFDFailed"),
        ("0.2.0", "reopen", "EMFILE", "hipFileInternalError"),
        ("0.5.0", "statx", "EINVAL", "hipFileInternalError"),
    ],
)
def test_any_other_error_makes_the_registration_fail(version: str, where: str, errno: str, code: str) -> None:
    ran = run(READ, version=version, faults=f"{{where: {where}, errno: {errno}}}")
    assert (ran.outcome, ran.error) == ("io_error", f"hipFileHandleRegister of file 'f': {code}")
    assert ran.io("fastpath", "read")["requests"] == ran.io("fallback", "read")["requests"] == 0


def test_a_registration_that_fails_once_can_be_made_again() -> None:
    again = "again: {file_register: {file: f}}"
    first = "first: {file_register: {file: f}}"
    ran = run(first, again, READ, faults="{where: statx, errno: EIO, at: [0]}", on_error="continue")
    assert ran.io("fastpath", "read")["requests"] == 64


@pytest.mark.parametrize(
    "job",
    [
        "load: {file_read: {file: f, buffer: x, io_size: 1MiB, threads: 8}}",
        "load: {file_read: {file: f, buffer: x, io_size: 1MiB, api: posix}}",
        "load: {file_read: {file: f, buffer: x, io_size: 1MiB, api: async}}",
        "load: {file_batch: {operation: read, file: f, buffer: x, io_size: 1MiB, entries: 8}}",
    ],
)
def test_signals_without_end_are_no_progress(job: str) -> None:
    ran = compat(job, "{where: pread, errno: EINTR}")
    assert ran.outcome == "livelock"
    assert ran.error == "pread of file 'f' was interrupted 100 times in a row"


def test_many_signals_are_outlived() -> None:
    ran = compat(READ, "{where: pread, errno: EINTR, probability: 95%}")
    assert ran.io("fallback", "read")["bytes"] == 64 * MIB


def test_a_short_count_of_the_fast_path_ends_at_the_files_alignment() -> None:
    """1 % of 1 MiB is 10,485 bytes: with 4 KiB alignment that is two blocks, and with 512 bytes ten KiB."""
    coarse = run(READ, faults="{where: fastpath, short: 1%, at: [0]}", record="spans")
    fine = run(
        READ,
        faults="{where: fastpath, short: 1%, at: [0]}",
        facts="dio_offset_align: 512B, dio_mem_align: 4B",
        record="spans",
    )
    for ran, first in ((coarse, 8192), (fine, 10240)):
        assert int(ran.result.tables["io"]["bytes"].iloc[0]) == first
        assert ran.io("fastpath", "read")["bytes"] == 64 * MIB
        assert ran.io("fastpath", "read")["errors"] == {}


@pytest.mark.parametrize("api", ["sync", "async", "posix"])
def test_a_step_counts_what_its_calls_moved(api: str) -> None:
    """An end of file after four calls, or an error: the step did not move what the program had in mind."""
    step = READ.replace("1MiB}", f"1MiB, api: {api}}}")
    env = "" if api == "posix" else COMPAT
    ended = run(step, faults="{where: pread, short: 0%, at: [4]}", env=env, version="0.2.0")
    failed = run(step, faults="{where: pread, errno: EIO, at: [4]}", env=env, version="0.2.0")
    assert failed.step("load", "bytes") == 4 * MIB
    assert ended.step("load", "bytes") == (63 if api == "async" else 4) * MIB
    assert ended.step("load", "bandwidth_gb_per_s") < 10


def test_a_batch_that_fails_counts_what_was_reported() -> None:
    step = "job: {file_batch: {operation: read, file: f, buffer: x, io_size: 1MiB, entries: 8, capacity: 1}}"
    ran = run(step, faults="{where: fastpath, errno: EIO, at: [5]}")
    assert ran.step("job", "bytes") == 5 * MIB
