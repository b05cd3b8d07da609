"""strided: lanes take elements `stride` apart; memory still moves whole lines."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.errors import InputError, Problem
from gpusim.hardware.gpu import Gpu
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import MEMORY_LINE, Walk


def strided(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Walk:
    """Walk all buffers from start to end, of each `stride` bytes only `bytes_per_lane`, by whole memory lines.

    A stride of more than a page leaves pages out in the real kernel; here all pages of the walk are touched, so such a
    stride is refused.
    """
    stride = kernel.stride or kernel.bytes_per_lane
    if stride > 4096:
        raise InputError(
            [
                Problem(
                    "a stride of more than one 4 KiB page would skip pages",
                    path="kernels.*.stride",
                    read=f"{stride} bytes",
                    legal="up to 4KiB; for larger strides use pattern random",
                )
            ]
        )
    moved = min(stride, -(-kernel.bytes_per_lane // MEMORY_LINE) * MEMORY_LINE)
    share = max(moved, kernel.bytes_per_lane) / stride
    return Walk(kernel, bound, gpu, read_amplification=share, write_amplification=share)
