"""stencil: each point reads its neighbours; caches keep all but the first read of each point away from HBM."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from gpusim.hardware.gpu import Gpu
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import Walk


def stencil(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Walk:
    """A square grid of points in rows; a step also reads one row before and after its own share.

    Sweeps of up to `points` neighbours within one row above and below. HBM moves each point once a pass.
    """
    elements = max(buffer.size for buffer in bound) // kernel.bytes_per_lane
    row = isqrt(max(1, elements)) * kernel.bytes_per_lane
    reach = 0 if (kernel.points or 5) <= 3 else row
    return Walk(kernel, bound, gpu, halo=reach)
