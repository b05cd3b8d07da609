"""Kernel code in a buffer: instruction fetches that fault where its pages are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpusim.hardware.access import AccessKind, Instruction, Operand, Touch
from gpusim.hardware.gpuvm import INVALID, Region
from gpusim.workload.patterns.base import PatternStream


class WithCode(PatternStream):
    """A pattern whose wavefronts first fetch from all pages of their code.

    Mapped code costs nothing: it comes from the instruction caches, of which neither hits nor misses are modelled.
    """

    def __init__(self, inner: PatternStream, code: Sequence[Region]) -> None:
        self._inner = inner
        self._code = []
        for region in code:
            operand = Operand(region, read_bytes=0.0, write_bytes=0.0)
            operand.read = True
            operand.access = AccessKind.EXECUTE
            self._code.append(operand)
        self.operands: Sequence[Operand] = [*inner.operands, *self._code]
        self.steps = inner.steps
        self.passes = inner.passes
        self.order = inner.order
        self.translation_ps = inner.translation_ps
        self.table_reads = inner.table_reads
        self.serial_ps = inner.serial_ps
        self.shares = inner.shares
        self.served = inner.served
        self.in_flight_bytes = inner.in_flight_bytes
        self.waves = inner.waves
        self.lanes = inner.lanes

    def instructions(self, index: int) -> Iterator[Instruction]:
        return self._inner.instructions(index)

    def touches(self, index: int) -> Sequence[Touch]:
        """Missing code first, then what the step itself touches."""
        missing = [
            (operand, 0, operand.region.pages - 1)
            for operand in self._code
            if INVALID in operand.region.valid
        ]
        return [*missing, *self._inner.touches(index)]

    def mapped_run(self, start: int, stop: int) -> int:
        if any(INVALID in operand.region.valid for operand in self._code):
            return 0
        return self._inner.mapped_run(start, stop)
