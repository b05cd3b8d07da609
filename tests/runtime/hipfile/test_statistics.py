"""What ais-stats shows of a process, by revision and level."""

from __future__ import annotations

import pytest

from gpusim.runtime.hipfile.statistics import bucket
from tests.file_programs import run

KIB, MIB = 1 << 10, 1 << 20
READ = "load: {file_read: {file: f, buffer: x, io_size: 1MiB}}"
ODD = "odd: {file_read: {file: f, buffer: x, io_size: 1MB, size: 10MB}}"


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 0),
        (4095, 0),
        (4 * KIB, 1),
        (8 * KIB - 1, 1),
        (8 * KIB, 2),
        (MIB, 9),
        (64 * MIB - 1, 14),
        (64 * MIB, 15),
        (2**31, 15),
    ],
)
def test_buckets_double_from_4_kib_to_64_mib(size: int, expected: int) -> None:
    assert bucket(size) == expected


def test_old_revisions_count_bytes_of_synchronous_calls_when_they_are_told_to() -> None:
    stream = "later: {file_write: {file: f, buffer: x, io_size: 1MiB, api: async}}"
    ran = run(READ, ODD, stream, version="0.2.0", env='HIPFILE_STATS_LEVEL: "1"')
    assert ran.statistics == {
        "TotalFastPathReadBytes": 64 * MIB,
        "TotalFastPathWriteBytes": 0,
        "TotalFallbackPathReadBytes": 10_000_000,
        "TotalFallbackPathWriteBytes": 0,
    }
    assert "statistics" not in run(READ, version="0.2.0").summary["io"]


def test_newer_ones_count_from_the_start() -> None:
    ran = run(READ, ODD, "reg: {buffer_register: {buffer: x}}")
    assert ran.statistics["fileRegistrations"] == 1
    assert ran.statistics["bufferRegistrations"] == 1
    assert ran.statistics["fastpathRejections"] == 10
    assert ran.statistics["fastpath.read"] == {"ioCount": 64, "ioSizeBytes": 64 * MIB, "errorCount": 0}


def test_level_2_has_histograms_by_size() -> None:
    ran = run(READ, ODD, env='HIPFILE_STATS_LEVEL: "2"')
    sync = ran.statistics["fastpath.read"]
    assert sync["ioCount"][bucket(MIB)] == sum(sync["ioCount"]) == 64
    mean = sum(sync["ioTimeUs"]) / 64
    assert mean == pytest.approx(ran.io("fastpath", "read")["latency_ns"]["mean"] / 1000, rel=0.01)
    assert ran.statistics["fallback.read"]["unalignedCount"] == 10


def test_level_3_tells_gpus_apart() -> None:
    ran = run(READ, env='HIPFILE_STATS_LEVEL: "9"')
    assert ran.statistics["gpu0.fastpath.read"]["ioCount"][bucket(MIB)] == 64


def test_a_retried_request_is_an_error_of_one_backend_and_a_request_of_the_other() -> None:
    ran = run(READ, faults="{where: fastpath, errno: EREMOTEIO, at: [1, 2]}")
    assert ran.statistics["fastpath.read"] == {"ioCount": 62, "ioSizeBytes": 62 * MIB, "errorCount": 2}
    assert ran.statistics["fallback.read"]["ioCount"] == 2


def test_a_run_that_its_limit_ends_has_counted_what_was_answered() -> None:
    ran = run(
        "load: {file_read: {file: f, buffer: x, io_size: 64KiB, size: 64GiB, threads: 2}}",
        top="limits: {simulated_time: 5ms}",
    )
    read = ran.io("fastpath", "read")
    assert 0 < read["requests"] < 1000
    assert ran.statistics["fastpath.read"]["ioCount"] == read["requests"]
    assert read["cpu_ns"] > 0
