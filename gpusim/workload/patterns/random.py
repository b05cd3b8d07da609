"""random: every lane takes any element of the buffer, all equally likely."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.hardware.access import Operand
from gpusim.hardware.caches import uniform_share
from gpusim.hardware.gpu import Gpu
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import MEMORY_LINE, ORDERS, all_fragments, far, model_steps, outstanding
from gpusim.workload.patterns.drawn import Drawn, any_page


def random(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Drawn:
    """As many accesses a pass as the largest buffer has elements; a step makes an equal share of them.

    Each access moves a whole memory line.
    """
    steps = model_steps(kernel, bound, gpu)
    line = max(MEMORY_LINE, kernel.bytes_per_lane)
    operands: list[Operand] = []
    draws = []
    instructions = 0
    for buffer in bound:
        each = max(1, buffer.size // kernel.bytes_per_lane) / steps
        accesses = max(1, round(each))
        operands.append(
            Operand(
                buffer.region,
                read_bytes=each * line if buffer.read else 0.0,
                write_bytes=each * line if buffer.write else 0.0,
            )
        )
        draws.append((accesses, any_page(buffer.region.pages)))
        instructions += -(-accesses // gpu.spec.compute.lanes)
    # the lanes of an instruction look their fragments up side by side: one mean added latency an instruction
    latency, reads = gpu.translation.independent(all_fragments(bound))
    footprint = sum(buffer.size for buffer in bound)
    return Drawn(
        operands,
        draws,
        steps=steps,
        passes=kernel.passes,
        order=ORDERS[kernel.mapping],
        seed=seed,
        served=gpu.caches.all_miss() if far(bound) else gpu.caches.independent(uniform_share(footprint)),
        translation_ps=round(instructions * latency),
        table_reads=sum(accesses for accesses, _ in draws) * reads,
        in_flight_bytes=outstanding(kernel, gpu),
    )
