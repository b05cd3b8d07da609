"""random: every lane takes any element of the buffer, all equally likely."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.hardware.gpu import Gpu
from gpusim.hardware.popularity import Popularity
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import ORDERS, model_steps
from gpusim.workload.patterns.drawn import Drawn, Place, drawn


def random(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Drawn:
    """As many accesses a pass as the largest buffer has elements; a step makes an equal share of them."""
    steps = model_steps(kernel, bound, gpu)
    places = []
    for buffer in bound:
        elements = max(1, buffer.size // kernel.bytes_per_lane)
        places.append(Place(buffer, elements / steps, Popularity(elements, 0.0)))
    return drawn(
        places, kernel, gpu, steps=steps, passes=kernel.passes, order=ORDERS[kernel.mapping], seed=seed
    )
