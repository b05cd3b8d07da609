"""Writing the page tables of one GPU: by the CPU where it sees all of VRAM (large BAR), else by SDMA jobs.

A job of SDMA waits for a free engine, where copies of programs are under way for the packet in hand: engines go from
ring to ring between packets. Left out: that a fault handler does not wait for the job it has submitted (`kfd_svm.md` 2,
step 19), and the CPU time of filling the job's buffer.
"""

from __future__ import annotations

from gpusim.engine.stages import REACH, Stages, Until
from gpusim.hardware.gpu import Gpu
from gpusim.kinds import Kind

_ENTRY_BYTES = 8


class TableWriter:
    """`pte_write_ps` is the CPU's time for an entry; `by_cpu` says that it writes them itself."""

    def __init__(self, gpu: Gpu, *, pte_write_ps: int, by_cpu: bool) -> None:
        self._gpu = gpu
        self._each = pte_write_ps
        self.by_cpu = by_cpu
        self.jobs = 0

    def stages(self, entries: int) -> Stages:
        """Write so many entries."""
        if self.by_cpu:
            yield Kind.PTE_WRITE, entries * self._each
            return
        yield REACH  # so that it meets the copies of this time
        gpu = self._gpu
        sdma = gpu.spec.sdma
        arrival = gpu.env.now
        if gpu.engines.copies >= sdma.engines:  # in the mean half a packet is left
            arrival += round(sdma.packet * 1e12 / (2 * sdma.rate))
        size = entries * _ENTRY_BYTES
        start, end = gpu.sdma.reserve(sdma.job + round(size * 1e12 / sdma.clear_rate), arrival)
        gpu.engines.job(gpu.env.now, start, end, size)
        self.jobs += 1
        yield Until(Kind.PTE_WRITE, end, alone_ps=end - start)
