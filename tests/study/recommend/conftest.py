"""Scenarios of one knob each, small enough to be run many times."""

import pytest

from gpusim.scenario import loader

HEAD = """
version: 1
name: {name}
system: {{node: {node}, gpus: 1}}
kernels:
  scale: {{pattern: stream}}
processes:
  - name: app
"""


@pytest.fixture(scope="session")
def make():
    """A scenario of one process from the YAML of its body."""

    def made(body, *, node="mi210-pcie4", more=""):
        lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
        return loader.loads(HEAD.format(name="knobs", node=node) + lines + "\n" + more)

    return made


MANAGED = """
env: {HSA_XNACK: "1"}
buffers: {x: {size: 8MiB, allocator: hipMallocManaged}}
threads:
  main:
    - {name: fill, host_touch: {buffer: x, access: write}}
    - {name: scale, launch: {kernel: scale, reads: [x], wait: true}}
"""


@pytest.fixture(scope="session")
def managed(make):
    """A kernel reads what the CPU has written, once."""
    return make(MANAGED)
