"""A scenario, and results of runs that no simulator made."""

import pytest

from gpusim.result import Result
from gpusim.scenario import loader
from tests import synthetic

SCENARIO = """
version: 1
name: managed-first-touch
question: How fast does a kernel stream managed memory that the CPU has written?
system: {node: mi210-pcie4, gpus: 1}
kernels:
  scale: {pattern: stream}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: 4GiB, allocator: hipMallocManaged}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - {name: scale, launch: {kernel: scale, reads: [x], writes: [x], wait: true}}
seed: 7
"""


@pytest.fixture(scope="session")
def scenario():
    return loader.loads(SCENARIO)


@pytest.fixture
def first_touch(scenario):
    return Result.from_run(scenario, synthetic.first_touch())


@pytest.fixture
def blur(scenario):
    return Result.from_run(scenario, synthetic.blur())
