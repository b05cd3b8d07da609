"""Access patterns: one file each, listed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpusim.hardware.gpu import Gpu
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec, Pattern
from gpusim.workload.patterns.base import PatternStream
from gpusim.workload.patterns.gather import gather, spmv
from gpusim.workload.patterns.pointer_chase import pointer_chase
from gpusim.workload.patterns.random import random
from gpusim.workload.patterns.stencil import stencil
from gpusim.workload.patterns.stream import stream
from gpusim.workload.patterns.strided import strided
from gpusim.workload.patterns.tiled import tiled
from gpusim.workload.patterns.zipf import zipf

#: pattern -> how it walks the buffers bound to it
PATTERNS: dict[Pattern, Callable[[KernelSpec, Sequence[Argument], Gpu, int], PatternStream]] = {
    Pattern.STREAM: stream,
    Pattern.STRIDED: strided,
    Pattern.STENCIL: stencil,
    Pattern.TILED: tiled,
    Pattern.RANDOM: random,
    Pattern.ZIPF: zipf,
    Pattern.GATHER: gather,
    Pattern.SPMV: spmv,
    Pattern.POINTER_CHASE: pointer_chase,
}
