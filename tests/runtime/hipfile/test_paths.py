"""Which way requests go on a whole machine, why, and what each way costs."""

from __future__ import annotations

import pytest

from tests.file_programs import run

READ = "load: {file_read: {file: f, buffer: x, io_size: 1MiB}}"
MIB = 1 << 20


def test_aligned_requests_take_the_fast_path_and_move_every_byte() -> None:
    ran = run(READ)
    io = ran.io("fastpath", "read")
    assert (io["requests"], io["bytes"]) == (64, 64 * MIB)
    assert io["reasons"] == {"accepted": 64}
    assert ran.summary["links"]["nvme0.read"]["bytes"] == 64 * MIB
    assert ran.summary["links"]["gpu[0].pcie.h2d"]["bytes"] == 64 * MIB
    assert ran.io("fallback", "read")["requests"] == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"env": 'HIPFILE_FORCE_COMPAT_MODE: "TRUE"'}, "HIPFILE_FORCE_COMPAT_MODE is true"),
        (
            {"hipfile": ", missing_symbols: [hipAmdFileWrite]"},
            "HIP lacks hipAmdFileRead or hipAmdFileWrite",
        ),
        ({"facts": "supports_o_direct: false"}, "no descriptor with O_DIRECT"),
        ({"facts": "type: character"}, "neither a regular file nor a block device"),
        (
            {"facts": 'mount_options: "rw,data=writeback"'},
            "file system is neither ext4 with ordered journal nor xfs",
        ),
        ({"filesystem": "btrfs"}, "file system is neither ext4 with ordered journal nor xfs"),
        ({"facts": "dio_offset_align: 2MiB, dio_mem_align: 4B"}, "size is not aligned"),
    ],
)
def test_the_report_says_why_a_request_took_the_fallback(change: dict[str, str], reason: str) -> None:
    io = run(READ, **change).io("fallback", "read")
    assert sum(io["reasons"].values()) == io["requests"] == 64
    assert reason in io["reasons"]


@pytest.mark.parametrize("drive", ["md0", "md1", "crypt0", "mpath0", "loop0"])
def test_no_device_behind_a_stack_is_found_out_by_the_driver_at_every_request(drive: str) -> None:
    ran = run(READ, node="mi300x-stacks", drive=drive)
    assert ran.io("fallback", "read")["reasons"] == {"retried after ENODEV": 64}
    assert ran.io("fastpath", "read")["errors"] == {"ENODEV": 64}
    assert ran.io("fastpath", "read")["requests"] == 0


@pytest.mark.parametrize(("version", "path"), [("0.2.0", "fallback"), ("0.5.0", "fastpath")])
def test_lvm_over_local_drives_takes_the_fast_path_since_it_is_supported(version: str, path: str) -> None:
    ran = run(READ, node="mi300x-stacks", drive="vg0", version=version)
    assert ran.io(path, "read")["requests"] == 64


def test_a_virtual_function_retries_each_request_and_pays_for_the_check_each_time() -> None:
    bare = run(READ)
    virtual = run(READ, top="overrides: {link.peer_visible: false}")
    assert virtual.io("fallback", "read")["reasons"] == {"retried after ENODEV": 64}
    assert virtual.step("load") > 1.5 * bare.step("load")


def test_without_a_fallback_the_drivers_error_is_the_programs() -> None:
    ran = run(READ, top="overrides: {link.peer_visible: false}", env='HIPFILE_ALLOW_COMPAT_MODE: "false"')
    assert ran.outcome == "io_error"
    assert ran.error == "hipFileRead of file 'f': ENODEV"


@pytest.mark.parametrize("allocator", ["malloc", "hipHostMalloc", "hipMallocManaged"])
def test_memory_of_no_device_is_refused_before_anything_moves(allocator: str) -> None:
    buffers = f"h: {{size: 1MiB, allocator: {allocator}}}"
    ran = run("load: {file_read: {file: f, buffer: h, io_size: 1MiB}}", buffers=buffers)
    assert ran.error == "hipFileRead of file 'f': hipFileHipMemoryTypeInvalid"
    assert ran.io("fastpath", "read")["requests"] == ran.io("fallback", "read")["requests"] == 0


def test_the_first_request_pays_for_the_check_and_for_hip() -> None:
    io = run(READ).io("fastpath", "read")
    assert io["first_call_ns"] - io["later_calls_ns"] == pytest.approx(20_000 + 5_000, rel=0.05)


def test_a_registered_buffer_saves_two_queries_a_request() -> None:
    asked = run(READ).io("fastpath", "read")["later_calls_ns"]
    known = run("reg: {buffer_register: {buffer: x}}", READ).io("fastpath", "read")["later_calls_ns"]
    assert asked - known == pytest.approx(800, abs=1)


def test_a_file_is_registered_once() -> None:
    twice = run("one: {file_register: {file: f}}", "two: {file_register: {file: f}}")
    assert twice.error == "hipFileHandleRegister of file 'f': hipFileHandleAlreadyRegistered"
    opened = run("one: {file_register: {file: f, direct: true}}", facts="supports_o_direct: false")
    assert opened.error == "hipFileHandleRegister of file 'f': EINVAL"


def test_pages_of_the_bounce_buffer_are_paid_for_in_every_call() -> None:
    """256 pages of a 1 MiB call: a fault, a new page and its clearing, and the zap."""
    ran = run(READ, env='HIPFILE_FORCE_COMPAT_MODE: "true"', facts="cached: 100%")
    io = ran.io("fallback", "read")
    pages = io["time"]["bounce_map"] * io["latency_ns"]["mean"]
    parameters = {row.path: row.value for row in ran.result.tables["parameters"].itertuples()}
    assert set(parameters) >= {"cpu.pages.fault", "cpu.pages.alloc", "cpu.pages.zero", "cpu.pages.free"}
    each = sum(
        float(parameters[f"cpu.pages.{part}"].removesuffix("us")) * 1000
        for part in ("fault", "alloc", "zero", "free")
    )
    assert pages == pytest.approx(256 * each + 2000, rel=0.02)  # and the two system calls


def test_a_write_is_synced_after_each_chunk_of_16_mib() -> None:
    ran = run(
        "save: {file_write: {file: f, buffer: x, io_size: 40MiB, size: 40MiB}}",
        env='HIPFILE_FORCE_COMPAT_MODE: "true"',
    )
    assert ran.io("fallback", "write")["requests"] == 1
    assert ran.io("fallback", "write")["time"]["writeback"] > 0.2


def test_many_threads_with_small_requests_collapse_at_the_pin_lock() -> None:
    def read(size: str, threads: int) -> float:
        job = (
            f"load: {{file_read: {{file: f, buffer: x, io_size: {size}, threads: {threads}, duration: 5ms}}}}"
        )
        return float(run(job, node="mi300x-16nvme").io("fastpath", "read")["bandwidth_gb_per_s"])

    pin = 9.75e-6  # seconds that a request holds the lock of the GPU
    assert read("4KiB", 32) == pytest.approx(4096 / pin / 1e9, rel=0.03)
    assert read("4KiB", 64) == pytest.approx(read("4KiB", 32), rel=0.03)
    assert read("1MiB", 16) > 12


def test_the_limit_of_each_run_is_named() -> None:
    big = "load: {file_read: {file: f, buffer: x, io_size: 1MiB, threads: 8, duration: 20ms}}"
    small = "load: {file_read: {file: f, buffer: x, io_size: 4KiB, threads: 64, duration: 5ms}}"
    assert run(big).io("fastpath", "read")["limited_by"] == "drive"
    assert run(small, node="mi300x-16nvme").io("fastpath", "read")["limited_by"] == "lock"
    cached = run(READ, env='HIPFILE_FORCE_COMPAT_MODE: "true"', facts="cached: 100%").io("fallback", "read")
    assert cached["limited_by"] == "submitter"
    assert cached["cpu_ns"] > 0.5 * cached["latency_ns"]["mean"] * 64


@pytest.mark.parametrize("path", ["fastpath", "fallback"])
@pytest.mark.parametrize("threads", [1, 5])
def test_littles_law_holds(path: str, threads: int) -> None:
    job = f"load: {{file_read: {{file: f, buffer: x, io_size: 256KiB, threads: {threads}, duration: 100ms}}}}"
    ran = run(job, env=f'HIPFILE_FORCE_COMPAT_MODE: "{str(path == "fallback").lower()}"')
    io = ran.io(path, "read")
    in_flight = io["requests"] * io["latency_ns"]["mean"] / ran.step("load")
    assert in_flight == pytest.approx(threads, rel=0.01)


def test_without_recording_there_is_no_cpu_time_rather_than_none_spent() -> None:
    ran = run(READ, record="off")
    assert ran.io("fastpath", "read")["cpu_ns"] is None
    assert ran.io("fastpath", "read")["time"] is None
    assert ran.io("fastpath", "read")["requests"] == 64


def test_the_table_has_a_row_for_each_request() -> None:
    table = run(READ, record="spans").result.tables["io"]
    assert len(table) == 64
    assert set(table["count"]) == {1}
    assert int(table["bytes"].sum()) == 64 * MIB


@pytest.mark.parametrize("path", ["fastpath", "fallback"])
def test_a_read_at_the_end_of_the_file_finds_nothing(path: str) -> None:
    env = f'HIPFILE_FORCE_COMPAT_MODE: "{str(path == "fallback").lower()}"'
    ran = run("load: {file_read: {file: f, buffer: x, io_size: 1MiB, file_offset: 64MiB}}", env=env)
    assert ran.outcome == "completed"
    assert (ran.io(path, "read")["requests"], ran.io(path, "read")["bytes"]) == (1, 0)


@pytest.mark.parametrize("path", ["fastpath", "fallback"])
def test_one_call_moves_at_most_int_max_down_to_a_page(path: str) -> None:
    """Larger requests return short; the program asks for the rest."""
    env = f'HIPFILE_FORCE_COMPAT_MODE: "{str(path == "fallback").lower()}"'
    buffers = "y: {size: 3GiB, allocator: hipMalloc}"
    ran = run(
        "load: {file_read: {file: f, buffer: y, io_size: 3GiB}}",
        size="3GiB",
        buffers=buffers,
        env=env,
        record="spans",
    )
    sizes = sorted(int(size) for size in ran.result.tables["io"]["bytes"])
    assert sizes == [3 * 1024 * MIB - 0x7FFFF000, 0x7FFFF000]


@pytest.mark.parametrize("api", ["sync", "async"])
def test_what_both_refuse_is_told_with_both_reasons(api: str) -> None:
    env = 'HIPFILE_FORCE_COMPAT_MODE: "true", HIPFILE_ALLOW_COMPAT_MODE: "false"'
    ran = run(READ.replace("1MiB}", f"1MiB, api: {api}}}"), env=env)
    refused = ran.io("rejected", "read")
    assert (refused["requests"], refused["errors"]) == (0, {"hipFileInternalError": 1})
    assert refused["reasons"] == {"HIPFILE_FORCE_COMPAT_MODE is true; HIPFILE_ALLOW_COMPAT_MODE is false": 1}
    assert ran.statistics["fastpathRejections"] == 1
    assert "rejected" not in run(READ).summary["io"]


def test_memory_of_no_device_is_refused_with_its_reason() -> None:
    buffers = "h: {size: 1MiB, allocator: hipHostMalloc}"
    ran = run("load: {file_read: {file: f, buffer: h, io_size: 1MiB}}", buffers=buffers)
    assert ran.io("rejected", "read")["reasons"] == {"buffer is not device memory": 1}
    assert ran.statistics["fastpathRejections"] == 0  # nothing was scored


def test_a_fallback_that_fails_was_refused_by_the_fast_path_all_the_same() -> None:
    ran = run(READ, filesystem="btrfs", faults="{where: pread, errno: EIO, at: [3]}")
    assert ran.statistics["fastpathRejections"] == 4


@pytest.mark.parametrize(
    ("kind", "error"), [("directory", "EISDIR"), ("fifo", "ESPIPE"), ("socket", "ESPIPE")]
)
@pytest.mark.parametrize("api", ["sync", "posix"])
def test_what_has_no_bytes_cannot_be_read(kind: str, error: str, api: str) -> None:
    ran = run(READ.replace("1MiB}", f"1MiB, api: {api}}}"), facts=f"type: {kind}")
    assert str(ran.error).endswith(error)


def test_one_request_at_a_time_is_the_submitters_limit() -> None:
    io = run(READ).io("fastpath", "read")
    assert io["limited_by"] == "submitter"
    assert io["limits"]["drive"] < 0.5
    assert io["in_flight"] == pytest.approx(1, rel=0.01)
    many = run(READ.replace("1MiB}", "1MiB, threads: 8}")).io("fastpath", "read")
    assert many["limited_by"] == "drive"
    assert many["in_flight"] == pytest.approx(8, rel=0.1)


def test_the_one_thread_of_host_functions_and_a_small_pool_are_limits() -> None:
    job = "job: {file_write: {file: f, buffer: x, io_size: 1MiB, api: async, threads: 8, depth: 16}}"
    assert run(job, version="0.2.0").io("fallback", "write")["limited_by"] == "host functions"
    pool = run(job, version="0.6-dev", hipfile=", pool_threads: 1")
    assert pool.io("fastpath", "write")["limited_by"] == "pool"
    assert pool.summary["resources"]["app.hipfile_pool"]["busy_fraction"] > 0.9


@pytest.mark.parametrize(
    ("about", "code"),
    [({"size": "3839GB"}, "ENOSPC"), ({"facts": "type: block"}, "ENOSPC")],
)
@pytest.mark.parametrize("compat", ["true", "false"])
def test_writing_where_there_is_no_room(about: dict[str, str], code: str, compat: str) -> None:
    """The drive has 3.84 TB; a block device does not grow."""
    offset = about.get("size", "64MiB")
    ran = run(
        f"save: {{file_write: {{file: f, buffer: x, io_size: 32MiB, size: 2GiB, file_offset: {offset}}}}}",
        env=f'HIPFILE_FORCE_COMPAT_MODE: "{compat}"',
        **about,
    )
    assert ran.error == f"hipFileWrite of file 'f': {code}"
    assert ran.step("save", "bytes") < 1e9
