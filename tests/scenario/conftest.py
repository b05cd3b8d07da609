"""A small right scenario, and ways to spoil it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpusim.errors import InputError, Problem
from gpusim.scenario import loader

RIGHT = """\
version: 1
name: small
question: How long does it take?
system: {node: mi210-pcie4, gpus: 2}
driver: {preset: kfd-6.12}
parameters: {prefetch: false, rounds: 3}
kernels:
  scale: {pattern: stream, bytes_per_lane: 8B}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: 4GiB, allocator: hipMallocManaged}
      w: {size: 8GiB, allocator: hipMalloc, gpu: gpu1}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - {name: move, prefetch: {buffer: x, to: gpu0}, when: "${prefetch}"}
        - name: rounds
          repeat:
            times: "${rounds}"
            steps:
              - {name: scale, launch: {kernel: scale, reads: [x], writes: [w], wait: true}}
seed: 7
expect:
  - {metric: "steps.scale[0].duration_ns", value: 4.1s, tolerance: 20%, source: a guess, kind: predicted}
"""

Spoil = Callable[..., list[Problem]]


@pytest.fixture
def right() -> str:
    return RIGHT


@pytest.fixture
def spoil() -> Spoil:
    """Replaces pieces of the right scenario, each there once, and returns the problems of what comes out."""

    def problems(*pieces: tuple[str, str], sets: dict[str, object] | None = None) -> list[Problem]:
        text = RIGHT
        for old, new in pieces:
            assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the scenario"
            text = text.replace(old, new)
        with pytest.raises(InputError) as refusal:
            loader.loads(text, sets=sets)
        for problem in refusal.value.problems:
            assert problem.message
        return list(refusal.value.problems)

    return problems
