"""zipf: every lane takes any element, the r-th most popular one in proportion to r ** -exponent."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.hardware.gpu import Gpu
from gpusim.hardware.popularity import Popularity
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import ORDERS, model_steps
from gpusim.workload.patterns.drawn import Drawn, Place, drawn

DEFAULT_EXPONENT = 1.0


def zipf(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Drawn:
    """As many accesses a pass as the largest buffer has elements. Popular elements come first in each buffer."""
    exponent = DEFAULT_EXPONENT if kernel.exponent is None else kernel.exponent
    steps = model_steps(kernel, bound, gpu)
    places = []
    for buffer in bound:
        elements = max(1, buffer.size // kernel.bytes_per_lane)
        places.append(Place(buffer, elements / steps, Popularity(elements, exponent)))
    return drawn(
        places, kernel, gpu, steps=steps, passes=kernel.passes, order=ORDERS[kernel.mapping], seed=seed
    )
