"""What requests spent their time on sums to their latencies, to the picosecond, through every interface."""

from __future__ import annotations

import pytest

from gpusim.scenario import loader
from gpusim.simulation import simulate
from tests import file_programs

JOBS = {
    "sync": "file_read: {file: f, buffer: x, io_size: 1MiB, threads: 3}",
    "small": "file_read: {file: f, buffer: x, io_size: 4KiB, size: 4MiB, threads: 9}",
    "odd": "file_write: {file: f, buffer: x, io_size: 1MB, size: 30MB, threads: 2}",
    "async": "file_write: {file: f, buffer: x, io_size: 1MiB, api: async, threads: 2, depth: 4}",
    "batch": "file_batch: {operation: read, file: f, buffer: x, io_size: 1MiB, threads: 2, capacity: 8}",
    "posix": "file_read: {file: f, buffer: x, io_size: 1MiB, api: posix, threads: 3}",
    "pinned": "file_write: {file: f, buffer: x, io_size: 1MiB, api: posix, bounce: pinned, direct: true}",
}


@pytest.mark.parametrize("version", ["0.2.0", "0.5.0", "0.6-dev"])
@pytest.mark.parametrize("job", JOBS)
def test_kinds_tile_the_latencies(job: str, version: str) -> None:
    text = file_programs.text(f"job: {{{JOBS[job]}}}", version=version, hipfile=", pool_threads: 3")
    totals = simulate(loader.loads(text)).io
    assert totals
    for total in totals:
        assert total.kinds is not None
        assert sum(total.kinds.values()) == total.latency_ps
