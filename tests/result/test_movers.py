"""Who moves data over time: bytes are conserved, shares add up."""

import pytest

import gpusim as gs
from gpusim.scenario import loader

TEXT = """
version: 1
name: movers
question: x
system: {node: mi300x-7nvme, gpus: 1}
processes:
  - name: app
    buffers:
      x: {size: 64MiB, allocator: hipMalloc}
      h: {size: 64MiB, allocator: hipHostMalloc}
    files: {f: {size: 1GiB, filesystem: xfs, drive: nvme0}}
    threads:
      main:
        - {name: read, file_read: {file: f, buffer: x, io_size: 1MiB, size: 64MiB}}
        - {name: copy, memcpy: {dst: x, src: h}}
"""


def test_bytes_of_all_bins_are_those_that_were_moved():
    ran = gs.run(loader.loads(TEXT))
    moved = ran.movers(bins=10)
    assert moved.groupby("mover")["bytes"].sum().to_dict() == pytest.approx(
        {"app fastpath read": 64 << 20, "app memcpy": 64 << 20}
    )
    busy = moved[moved.groupby("start_ns")["bytes"].transform("sum") > 0]
    assert busy.groupby("start_ns")["share"].sum().to_numpy() == pytest.approx(1)
    assert len(moved) == 20
