"""Atomics, whatever the pattern: what their faults say, and how long they keep each other waiting.

A cache line takes one atomic at a time: in L2 where only this GPU sees the memory, in memory where the CPU may see it
as well. Over `lines` lines, all alike, the atomics of a step take their number times that time, divided by the lines;
no more wavefronts help. Left out: that atomics of one instruction on one line are put together first, and retries of
compare-and-swap loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.hardware.access import AccessKind
from gpusim.hardware.gpu_spec import GpuSpec
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import MEMORY_LINE, PatternStream


def mark_atomics(kernel: KernelSpec, bound: Sequence[Argument], stream: PatternStream, gpu: GpuSpec) -> float:
    """Mark the operands that atomics work on; returns the picoseconds of a step that only one wavefront can spend."""
    serial = 0.0
    by_region = {id(operand.region): operand for operand in stream.operands}
    for buffer in bound:
        if not buffer.atomic:
            continue
        operand = by_region[id(buffer.region)]
        operand.access = AccessKind.ATOMIC
        lines = kernel.lines or max(1, buffer.size // MEMORY_LINE)
        each = gpu.atomic.coherent if buffer.coherent else gpu.atomic.near
        # as many atomics as elements, in the steps of a pass
        serial += buffer.size / kernel.bytes_per_lane / stream.steps * each / lines
    return serial
