"""trace: wavefronts do the accesses that a file says, in its order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from gpusim.errors import InputError, Problem
from gpusim.hardware.access import AccessKind, Operand, Order, Touch
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import INVALID
from gpusim.hardware.translation import Translation
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import PatternStream, far, outstanding
from gpusim.workload.trace_file import Access, Trace

_APART_PS = 10**9  # far enough that no walk waits for another one's
_MOST_PROBLEMS = 20
_SAMPLE = 20_000  # accesses whose translation is looked at


class Traced(PatternStream):
    """Wavefront w of the trace is a wavefront of its own. An access is one instruction: all lanes in one page.

    A model step is so many consecutive accesses of a wavefront as `step` bytes hold. HBM moves all of them: hits in
    caches are not looked for. Each step moves of a buffer what a step does in the mean.
    """

    def __init__(
        self,
        name: str,
        kernel: KernelSpec,
        waves: Sequence[Sequence[Access]],
        bound: Sequence[Argument],
        gpu: Gpu,
    ) -> None:
        self._path = f"kernels.{name}.file"
        lanes = gpu.spec.compute.lanes
        instruction = lanes * kernel.bytes_per_lane
        self._each = max(1, kernel.step // instruction)
        self._waves = waves
        counts = [-(-len(accesses) // self._each) for accesses in waves]
        ends = list(accumulate(counts))
        self._ends = ends
        self.shares = [(end - count, end) for end, count in zip(ends, counts, strict=True)]
        self.steps = ends[-1]
        self.passes = 1
        self.order = Order.SHARES
        self.waves = len(waves)
        self.in_flight_bytes = outstanding(kernel, gpu)
        self.served = gpu.caches.all_miss()
        self._starts = [0, *accumulate(buffer.region.pages for buffer in bound)]
        self._by_kind = self._operands(bound, instruction)
        self.operands: Sequence[Operand] = list(self._by_kind.values())
        self.translation_ps: int | None = 0
        self.table_reads = 0.0
        if not far(bound):
            self._sample(bound, gpu)

    def _operands(self, bound: Sequence[Argument], instruction: int) -> dict[tuple[int, AccessKind], Operand]:
        """What a step moves in the mean, by buffer and kind. Raises InputError for pages beyond the buffers."""
        counts: dict[tuple[int, AccessKind], int] = {}
        problems: list[Problem] = []
        for accesses in self._waves:
            for access in accesses:
                if access.page < self._starts[-1]:
                    key = (self._buffer(access.page), access.kind)
                    counts[key] = counts.get(key, 0) + 1
                elif len(problems) < _MOST_PROBLEMS:
                    problems.append(
                        Problem(
                            "beyond the buffers of the launch",
                            path=self._path,
                            read=f"page {access.page} in line {access.line}",
                            legal=f"0 to {self._starts[-1] - 1}",
                        )
                    )
        if problems:
            raise InputError(problems)
        operands: dict[tuple[int, AccessKind], Operand] = {}
        for (buffer, kind), count in counts.items():
            moved = count * instruction / self.steps
            operand = Operand(
                bound[buffer].region,
                read_bytes=0.0 if kind is AccessKind.WRITE else moved,
                write_bytes=moved if kind in (AccessKind.WRITE, AccessKind.ATOMIC) else 0.0,
            )
            operand.access = kind
            operands[buffer, kind] = operand
        return operands

    def _buffer(self, page: int) -> int:
        return bisect_right(self._starts, page) - 1

    def _sample(self, bound: Sequence[Argument], gpu: Gpu) -> None:
        """Translate the first accesses of all wavefronts side by side, with caches of their own."""
        spec = gpu.spec
        caches = Translation(
            spec.utcl1,
            spec.utcl2,
            spec.walker,
            compute_units=spec.compute.compute_units,
            xcds=spec.compute.xcds,
        )
        done = latency = 0
        longest = max(map(len, self._waves))
        for number in range(longest):
            for wave, accesses in enumerate(self._waves):
                if number < len(accesses):
                    page = accesses[number].page
                    buffer = self._buffer(page)
                    region = bound[buffer].region
                    unit = wave % spec.compute.compute_units
                    latency += caches.added_ps(unit, region, page - self._starts[buffer], done * _APART_PS)
                    done += 1
            if done >= _SAMPLE:
                break
        per_step = sum(map(len, self._waves)) / self.steps / done
        self.translation_ps = round(latency * per_step)
        self.table_reads = caches.counts()["table_reads"] * per_step

    def touches(self, index: int) -> Sequence[Touch]:
        """The pages of a step in order; those that follow each other are joined."""
        wave = bisect_right(self._ends, index)
        first, _ = self.shares[wave] if self.shares is not None else (0, 0)
        begin = (index - first) * self._each
        touches: list[Touch] = []
        for access in self._waves[wave][begin : begin + self._each]:
            buffer = self._buffer(access.page)
            operand = self._by_kind[buffer, access.kind]
            page = access.page - self._starts[buffer]
            if touches and touches[-1][0] is operand and touches[-1][2] in (page, page - 1):
                touches[-1] = (operand, touches[-1][1], page)
            else:
                touches.append((operand, page, page))
        return touches

    def mapped_run(self, start: int, stop: int) -> int:
        """All steps or none: whether every page is mapped, and in one place a buffer."""
        for operand in self.operands:
            valid = operand.valid
            if valid[0] == INVALID or valid.count(valid[0]) != len(valid):
                return 0
        return stop - start


def traced(name: str, kernel: KernelSpec, trace: Trace, bound: Sequence[Argument], gpu: Gpu) -> Traced:
    """The accesses of kernel `name` in a trace."""
    return Traced(name, kernel, list(trace[name].values()), bound, gpu)
