"""A scenario that is simulated in a fraction of a second, with something to sweep."""

import pytest

SMALL = """
version: 1
name: small
question: Is it better to prefetch?
system: {node: mi210-pcie4, gpus: 1}
parameters: {prefetch: false, size: 8MiB}
kernels:
  scale: {pattern: stream}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: "${size}", allocator: hipMallocManaged}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - {name: move, prefetch: {buffer: x, to: gpu0, wait: true}, when: "${prefetch}"}
        - {name: scale, launch: {kernel: scale, reads: [x], writes: [x], wait: true}}
seed: 3
"""


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file
