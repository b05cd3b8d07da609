"""Giving up files, buffers and the driver (`hipfile.md` 3.3): what requests find afterwards."""

from __future__ import annotations

import pytest

from tests.file_programs import run

MIB = 1 << 20
READ = "load: {file_read: {file: f, buffer: x, io_size: 1MiB}}"
AGAIN = READ.replace("load:", "again:")
REG = "reg: {file_register: {file: f}}"
BUFFER = "keep: {buffer_register: {buffer: x}}"
DROP = "drop: {buffer_deregister: {buffer: x}}"


def test_a_deregistered_file_is_unknown_until_it_is_registered_again() -> None:
    drop = "drop: {file_deregister: {file: f}}"
    ran = run(READ, drop, AGAIN)
    assert ran.error == "hipFileRead of file 'f': hipFileHandleNotRegistered"
    assert ran.io("rejected", "read")["reasons"] == {"file is not registered": 1}
    back = run(READ, drop, REG, AGAIN)
    assert back.io("fastpath", "read")["requests"] == 128
    assert back.statistics["fileRegistrations"] == 2


def test_giving_up_a_file_that_is_not_registered_says_nothing() -> None:
    ran = run("drop: {file_deregister: {file: f}}", READ)
    assert ran.io("fastpath", "read")["requests"] == 64


def test_a_deregistered_buffer_costs_queries_again() -> None:
    ran = run(BUFFER, READ, DROP, AGAIN)
    assert ran.outcome == "completed"
    assert ran.step("again") - ran.step("load") == pytest.approx(
        64 * 800 - 45_000, abs=100
    )  # first time: 45 us


def test_a_buffer_that_is_not_registered_cannot_be_given_up() -> None:
    assert run(REG, DROP).error == "hipFileBufDeregister of buffer 'x': hipFileMemoryNotRegistered"
    assert run(BUFFER, DROP, "twice: {buffer_deregister: {buffer: x}}").outcome == "io_error"


def side_by_side(first: str, second: str) -> str:
    return f"both: {{parallel: {{branches: [[{{{first}}}], [{{{second}}}]]}}}}"


def test_what_a_job_uses_cannot_be_given_up() -> None:
    load = "name: load, file_read: {file: f, buffer: x, io_size: 1MiB}"
    buffer = run(REG, BUFFER, side_by_side(load, "name: drop, buffer_deregister: {buffer: x}"))
    assert buffer.error == "hipFileBufDeregister of buffer 'x': hipFileInternalError"
    file = run(REG, side_by_side(load, "name: drop, file_deregister: {file: f}"), AGAIN)
    assert file.io("fastpath", "read")["requests"] == 128


def test_the_last_close_gives_up_everything() -> None:
    close = "close: {hipfile_close: {}}"
    ran = run(BUFFER, READ, close, AGAIN)
    assert ran.error == "hipFileRead of file 'f': EINVAL"
    assert ran.io("rejected", "read")["reasons"] == {"the driver of hipFile is not open": 1}
    opened = run(READ, close, "open: {hipfile_open: {}}", AGAIN)
    assert opened.error == "hipFileRead of file 'f': hipFileHandleNotRegistered"
    assert run(BUFFER, close, DROP).error == "hipFileBufDeregister of buffer 'x': hipFileDriverClosing"
    assert run(close).error == "hipFileDriverClose: hipFileDriverClosing"


def test_a_driver_that_was_opened_twice_stays_open() -> None:
    opened = "open: {hipfile_open: {}}"
    close = "close: {hipfile_close: {}}"
    assert run(opened, "more: {hipfile_open: {}}", READ, close, AGAIN).outcome == "completed"
    assert (
        run(opened, READ, close, AGAIN).outcome == "io_error"
    )  # a registration does not count if it is open


@pytest.mark.parametrize(
    ("version", "error"), [("0.2.0", "hipFileInternalError"), ("0.5.0", "hipFileGetNewFDFailed")]
)
def test_a_process_runs_out_of_descriptors(version: str, error: str) -> None:
    """Two for each file."""
    files = "g: {size: 4MiB, filesystem: xfs, drive: nvme1}"
    second = "second: {file_register: {file: g}}"
    ran = run(REG, second, files=files, version=version, hipfile=", open_files: 3")
    assert ran.error == f"hipFileHandleRegister of file 'g': {error}"
    drop = "drop: {file_deregister: {file: f}}"
    assert run(REG, drop, second, files=files, hipfile=", open_files: 3").outcome == "completed"
