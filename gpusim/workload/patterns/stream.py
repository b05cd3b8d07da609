"""stream: every lane takes the next element; each byte is moved once a pass."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.hardware.gpu import Gpu
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import Walk


def stream(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Walk:
    """Walk all buffers from start to end."""
    return Walk(kernel, bound, gpu)
