"""Asynchronous calls by revision: what they wait for, which way they go, and what becomes of errors."""

from __future__ import annotations

import pytest

import gpusim as gs
from gpusim.scenario import loader
from tests.file_programs import Ran, run

MIB = 1 << 20


def job(
    verb: str = "file_write", size: str = "1MiB", threads: int = 1, depth: int = 4, more: str = ""
) -> str:
    return (
        f"job: {{{verb}: {{file: f, buffer: x, io_size: {size}, api: async, threads: {threads}, "
        f"depth: {depth}{more}}}}}"
    )


def test_old_asynchronous_calls_use_the_fallback_whatever_the_environment_says() -> None:
    """`hipfile.md` 1.5: they ignore both variables, and nothing is scored."""
    for env in ("", 'HIPFILE_ALLOW_COMPAT_MODE: "false"', 'HIPFILE_FORCE_COMPAT_MODE: "true"'):
        io = run(job(), version="0.2.0", env=env).io("fallback", "write")
        assert io["reasons"] == {"asynchronous calls of this version use the fallback only": 64}


@pytest.mark.parametrize("version", ["0.5.0", "0.6-dev"])
def test_newer_ones_are_scored(version: str) -> None:
    assert run(job(), version=version).io("fastpath", "write")["requests"] == 64
    forced = run(job(), version=version, env='HIPFILE_FORCE_COMPAT_MODE: "true"')
    assert forced.io("fallback", "write")["reasons"] == {"HIPFILE_FORCE_COMPAT_MODE is true": 64}


def test_host_functions_of_a_process_are_one_server() -> None:
    """IO037 and IO025: more streams do not help once one keeps the thread busy."""
    rates = [
        float(
            run(job(size="4KiB", threads=threads, depth=16, more=", duration: 5ms"), version="0.2.0").step(
                "job", "bandwidth_gb_per_s"
            )
        )
        for threads in (4, 16)
    ]
    assert rates[1] == pytest.approx(rates[0], rel=0.1)


def test_two_processes_have_two_servers() -> None:
    """IO039: 10.23 GB/s of two processes against 5.55 of one."""
    text = """\
version: 1
name: two
system: {node: mi300x-7nvme, gpus: 1}
runtime: {hipfile: {version: 0.2.0}}
processes:
  - name: app
    count: 2
    buffers: {x: {size: 64MiB, allocator: hipMalloc}}
    files: {f: {size: 1GiB, filesystem: ext4, drive: "nvme${rank}"}}
    threads:
      main:
        - name: job
          file_write: {file: f, buffer: x, io_size: 1MiB, api: async, threads: 4, depth: 4, duration: 20ms}
"""
    two = gs.run(loader.loads(text))
    one = gs.run(loader.loads(text.replace("count: 2", "count: 1").replace("nvme${rank}", "nvme0")))
    rates = [ran.summary["io"]["fallback"]["write"]["bandwidth_gb_per_s"] for ran in (one, two)]
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.05)


def test_one_error_of_the_fast_path_is_final_in_one_revision_and_retried_in_the_next() -> None:
    fault = "{where: fastpath, errno: ENODEV, at: [2]}"
    final = run(job(), version="0.5.0", faults=fault)
    assert final.error == "hipFileWriteAsync of file 'f': ENODEV"
    retried = run(job(), version="0.6-dev", faults=fault)
    assert retried.outcome == "completed"
    assert retried.io("fallback", "write")["requests"] == 1


@pytest.mark.parametrize("version", ["0.2.0", "0.5.0", "0.6-dev"])
@pytest.mark.parametrize("verb", ["file_read", "file_write"])
def test_every_byte_crosses_the_link_once(version: str, verb: str) -> None:
    ran = run(job(verb, threads=3), version=version, env='HIPFILE_FORCE_COMPAT_MODE: "true"')
    way = "h2d" if verb == "file_read" else "d2h"
    assert ran.summary["links"][f"gpu[0].pcie.{way}"]["bytes"] == 64 * MIB
    assert ran.io("fallback", verb.removeprefix("file_"))["bytes"] == 64 * MIB
    assert ran.outcome == "completed"


def test_a_request_larger_than_the_streams_buffer_goes_in_pieces() -> None:
    """A host function and a copy kernel for each piece: 4 of 16 MiB, or 64 of 1 MiB."""
    first = job("file_read", "64MiB", depth=1)
    again = first.replace("job:", "again:")  # the stream has its buffer then
    env = 'HIPFILE_FORCE_COMPAT_MODE: "true"'
    large = run(first, again, env=env, facts="cached: 100%")
    small = run(first, again, env=env + ', HIPFILE_ASYNC_BUFFER_SIZE: "1048576"', facts="cached: 100%")
    assert small.step("again") - large.step("again") == pytest.approx(60 * 33_000, rel=0.2)
    assert large.step("job") - large.step("again") > 4096 * 500  # pages that are pinned once


def test_a_stream_keeps_its_order_with_kernels() -> None:
    ran = run(
        "fill: {stream: s, memset: {buffer: x, async: true}}",
        "job: {stream: s, file_write: {file: f, buffer: x, io_size: 64MiB, api: async}}",
    )
    steps = {row["path"]: row for row in ran.summary["steps"]}
    assert steps["job"]["end_ns"] >= steps["fill"]["end_ns"]


def test_the_pools_size_bounds_what_runs_at_once() -> None:
    def rate(threads: int) -> float:
        ran = run(
            job("file_read", threads=8, depth=8, more=", duration: 20ms"),
            version="0.6-dev",
            hipfile=f", pool_threads: {threads}",
        )
        return float(ran.step("job", "bandwidth_gb_per_s"))

    assert rate(1) < 0.6 * rate(2) < 0.6 * rate(64)


def test_copies_of_the_newest_revision_do_not_wait_for_the_null_stream() -> None:
    """Pool threads copy on streams of their own: a long job in the null stream holds back batches only."""
    fill = "fill: {memset: {buffer: y, async: true}}"
    load = job("file_read", "1MiB", depth=1, more=", size: 1MiB")
    batch = "job: {file_batch: {operation: read, file: f, buffer: x, io_size: 1MiB, entries: 1}}"
    about = {"version": "0.6-dev", "env": 'HIPFILE_FORCE_COMPAT_MODE: "true"', "facts": "cached: 100%"}
    buffers = "y: {size: 40GiB, allocator: hipMalloc}"
    alone = run(load, **about)
    beside = run(fill, load, buffers=buffers, **about)
    assert beside.step("fill") > 5 * alone.step("job")
    assert beside.step("job") == pytest.approx(alone.step("job"), rel=0.1)
    assert run(fill, batch, buffers=buffers, **about).step("job") > 0.9 * beside.step("fill")


@pytest.mark.parametrize(("version", "more"), [("0.2.0", 1), ("0.5.0", 1), ("0.6-dev", 0)])
def test_parameters_that_are_bound_late_take_a_host_function_of_their_own(version: str, more: int) -> None:
    about = {"version": version, "env": 'HIPFILE_FORCE_COMPAT_MODE: "true"', "facts": "cached: 100%"}
    fixed, late = (run(job("file_read", depth=1, more=word), **about) for word in ("", ", late: true"))
    table = fixed.result.tables["parameters"].set_index("path")["value"]
    each = float(table["cpu.hipfile.host_function"].removesuffix("us")) * 1000
    assert late.step("job") - fixed.step("job") == pytest.approx(more * 64 * each, rel=0.01, abs=1)


@pytest.mark.parametrize("version", ["0.2.0", "0.5.0", "0.6-dev"])
def test_a_size_may_shrink_after_the_call_but_not_grow(version: str) -> None:
    shrunk = run(job("file_read", more=", late_size: 4KiB"), version=version)
    assert shrunk.step("job", "bytes") == 64 * 4096
    grown = run(job("file_read", more=", late_size: 2MiB"), version=version)
    assert grown.error == "hipFileReadAsync of file 'f': hipFileInvalidValue"
    assert grown.step("job", "bytes") == 0


def test_without_waits_for_a_value_the_newest_revision_is_one_server_again() -> None:
    def ran(hipfile: str) -> Ran:
        return run(
            job("file_read", threads=8, depth=8, more=", duration: 20ms"), version="0.6-dev", hipfile=hipfile
        )

    inline = ran(", wait_value: false")
    assert inline.io("fastpath", "read")["limited_by"] == "host functions"
    assert ran("").step("job", "bandwidth_gb_per_s") > 2 * inline.step("job", "bandwidth_gb_per_s")
    fault = "{where: fastpath, errno: ENODEV, at: [2]}"
    retried = run(job(), version="0.6-dev", hipfile=", wait_value: false", faults=fault)
    assert retried.io("fallback", "write")["requests"] == 1
