"""What file requests cost: 4 KiB and 1 MiB by hipFile's fast path, and the kernel's part alone."""

import tracemalloc

import pytest

from gpusim.engine.record import Mode
from gpusim.machine.build import Machine
from gpusim.scenario import loader
from tests.benchmarks.ratios import against_bare

TEXT = """
version: 1
name: reads
system: {node: mi300x-7nvme, gpus: 1}
processes:
  - name: app
    buffers: {x: {size: 1GiB, allocator: hipMalloc}}
    files:
      a: {size: 256GiB, filesystem: xfs, drive: nvme0}
      b: {size: 256GiB, filesystem: xfs, drive: nvme1}
    threads:
      main:
        - {name: read, file_read: {file: [a, b], buffer: x, io_size: IO, size: ALL, threads: 8}}
"""
KIB, MIB = 1 << 10, 1 << 20


def machine(io_bytes, requests):
    text = TEXT.replace("IO", f"{io_bytes}B").replace("ALL", f"{io_bytes * requests}B")
    built = Machine(loader.loads(text), Mode.SUMMARY)
    built.start()
    return built


@pytest.mark.parametrize(("io_bytes", "most"), [(4 * KIB, 2.1), (MIB, 3.6)])
def test_a_request_takes_few_events(io_bytes, most):
    built = machine(io_bytes, 4000)
    built.env.run_to()
    assert built.env.events <= most * 4000


def test_memory_does_not_grow_with_the_number_of_requests():
    """Ten times the requests, and less than a hundredth of their number in kilobytes more."""

    def peak(requests):
        built = machine(4 * KIB, requests)
        tracemalloc.start()
        built.env.run_to()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(100_000) - peak(40_000) < 600_000


@pytest.mark.timing
@pytest.mark.parametrize(("io_bytes", "most"), [(4 * KIB, 5.0), (MIB, None)])
def test_what_a_request_costs(io_bytes, most, figure):
    requests = 10_000
    built = [machine(io_bytes, requests) for _ in range(7)]
    name = f"file read, {io_bytes // KIB} KiB"

    def read():
        built.pop().env.run_to()  # whose answer is no time

    ratio = against_bare(name, read, requests)
    figure(f"{name}: time a request, in bare timeouts", ratio.middle, most=most, note=ratio.spread)
