"""pointer_chase: each load gives the address of the next, in a ring through all lines in random order."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.hardware.access import Operand
from gpusim.hardware.gpu import Gpu
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import MEMORY_LINE, ORDERS, all_fragments, far
from gpusim.workload.patterns.drawn import Drawn, any_page


def pointer_chase(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Drawn:
    """One line of each buffer is in flight in a wavefront, and no other until it is there.

    `accesses` loads of each buffer by each wavefront; by default once round a ring through all lines of the largest.
    The ring has been walked before: caches and TLBs hold of it what they can. All wavefronts walk the same ring, each
    on its own.
    """
    line = max(MEMORY_LINE, kernel.bytes_per_lane)
    waves = chasers(kernel, gpu.spec.compute.lanes)
    loads = kernel.accesses or max(1, max(buffer.size for buffer in bound) // line)
    per_wave = -(-loads * line // kernel.step)
    each = loads / per_wave
    operands = [
        Operand(
            buffer.region,
            read_bytes=each * line if buffer.read else 0.0,
            write_bytes=each * line if buffer.write else 0.0,
        )
        for buffer in bound
    ]
    footprint = sum(buffer.size for buffer in bound)
    latency, reads = gpu.translation.independent(all_fragments(bound))
    count = len(bound) * each
    return Drawn(
        operands,
        [(max(1, round(each)), any_page(buffer.region.pages)) for buffer in bound],
        steps=per_wave * waves,
        passes=kernel.passes,
        order=ORDERS[kernel.mapping],
        seed=seed,
        served=gpu.caches.all_miss() if far(bound) else gpu.caches.ring(footprint),
        translation_ps=round(count * latency),
        table_reads=count * reads,
        in_flight_bytes=float(line),
        waves=waves,
    )


def chasers(kernel: KernelSpec, lanes: int) -> int:
    """Wavefronts that chase: one, unless workgroups are given."""
    return (kernel.workgroups or 1) * (-(-kernel.workgroup // lanes) if kernel.workgroups else 1)
