"""What a file request costs: events, which are counted exactly, and time, as a ratio to the bare loop."""

import subprocess
import sys

import pytest

from gpusim.scenario import loader
from gpusim.simulation import simulate
from tests.benchmarks.peak_memory import ROOT, needs_proc
from tests.benchmarks.ratios import against_bare

TEXT = """\
version: 1
name: requests
system: {{node: mi300x-16nvme, gpus: 1}}
processes:
  - name: app
    buffers: {{x: {{size: 256MiB, allocator: hipMalloc}}}}
    files: {{f: {{size: 4GiB, filesystem: xfs, drive: nvme0}}}}
    threads:
      main:
        - {{name: load, file_read: {{file: f, buffer: x, io_size: {io_size}, size: {size}, threads: {threads}}}}}
"""


def program(io_size, size, threads=4):
    return loader.loads(TEXT.format(io_size=io_size, size=size, threads=threads))


def requests(data):
    return sum(total.requests for total in data.io)


def test_a_small_request_takes_one_event():
    few, many = (simulate(program("4KiB", size)) for size in ("4MiB", "12MiB"))
    assert requests(many) - requests(few) == 2048
    assert many.engine["events"] - few.engine["events"] <= 1.01 * 2048


def test_a_small_request_at_a_busy_pin_lock_takes_two():
    few, many = (simulate(program("4KiB", size, threads=64)) for size in ("4MiB", "12MiB"))
    assert many.engine["events"] - few.engine["events"] <= 2.05 * 2048


def test_a_large_request_takes_three():
    few, many = (simulate(program("1MiB", size)) for size in ("1GiB", "2GiB"))
    assert many.engine["events"] - few.engine["events"] <= 3.05 * 1024


@needs_proc
def test_200_000_requests_more_take_no_memory():
    """Each would take 24 bytes in a table of all requests, 4.6 MiB."""
    command = [sys.executable, "-m", "tests.benchmarks.io_memory", "sync", "100000", "300000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2.0


@pytest.mark.timing
@pytest.mark.parametrize(("io_size", "size", "most"), [("4KiB", "160MiB", 5), ("1MiB", "10GiB", None)])
def test_time_of_a_request(figure, io_size, size, most):
    """Long enough that building the machine and the tables, 30 ms a run, does not count."""
    scenario = program(io_size, size)
    count = requests(simulate(scenario))
    ratio = against_bare(io_size, lambda: simulate(scenario) and None, count)
    figure(f"file request of {io_size}: time in bare timeouts", ratio.middle, most=most, note=ratio.spread)
