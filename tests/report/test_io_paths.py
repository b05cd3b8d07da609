"""The path report says which way requests went, why, and what limited them."""

from __future__ import annotations

from gpusim.report.explain import as_json
from gpusim.report.io_paths import io_paths
from tests.file_programs import Ran, run

READ = "load: {file_read: {file: f, buffer: x, io_size: 1MiB}}"


def printed(ran: Ran) -> str:
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=200).print(io_paths(ran.summary))
    return out.getvalue()


def test_each_path_has_its_row_and_each_fallback_its_reason() -> None:
    odd = "odd: {file_read: {file: f, buffer: x, io_size: 1MB, size: 10MB}}"
    text = printed(run(READ, odd, faults="{where: fastpath, errno: ENODEV, at: [1]}"))
    assert "fastpath read" in text
    assert "fallback read: 9 because: file offset is not aligned" in text
    assert "fallback read: 1 because: retried after ENODEV" in text
    assert "fastpath read: errors: 1 ENODEV" in text
    assert " drive " in text


def test_a_run_without_files_has_no_such_table() -> None:
    assert io_paths(run("nap: {sleep: {duration: 1ms}}").summary) is None


def test_explain_has_it_as_data() -> None:
    assert as_json(run(READ).result)["io"]["fastpath"]["read"]["requests"] == 64


def test_a_formula_puts_a_job_that_fills_its_drive_together() -> None:
    full = run("load: {file_read: {file: f, buffer: x, io_size: 1MiB, size: 1GiB, threads: 16}}")
    assert "1GiB / 7.1GB/s of the drive" in full.summary["formula"]
    alone = run("load: {file_read: {file: f, buffer: x, io_size: 4KiB, size: 4MiB}}")
    assert "1024 requests x" in alone.summary["formula"]
