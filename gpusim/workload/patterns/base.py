"""What patterns share: what they tell of themselves, and walking buffers from start to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from gpusim.hardware.access import AccessStream, Instruction, Operand, Order, Touch
from gpusim.hardware.caches import Served
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import INVALID
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import DEFAULT_STEP, KernelSpec, Mapping

ORDERS = {Mapping.LINEAR: Order.FRONTIER, Mapping.GRID_STRIDE: Order.STRIDED, Mapping.BLOCKED: Order.SHARES}
MEMORY_LINE = 64  # bytes; the shortest HBM access of CDNA and Vega (L2 fetches 64 B sectors)


def model_steps(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu) -> int:
    """Steps in which the largest operand is walked.

    At the default step, a kernel whose data are all mapped gets at least one step for each wavefront that it has in
    flight. Where pages are missing the fault worker sets the pace, and the step stays as it is.
    """
    largest = max(buffer.size for buffer in bound)
    steps = -(-largest // kernel.step)
    if kernel.step != DEFAULT_STEP or any(INVALID in buffer.region.valid for buffer in bound):
        return steps
    lanes = -(-largest // kernel.bytes_per_lane)
    wavefronts = -(-lanes // gpu.spec.compute.lanes)
    return max(steps, min(wavefronts, gpu.spec.compute.slots))


def far(bound: Sequence[Argument]) -> bool:
    """Does part of it lie across a link? That is not cached, and the link hides its translation."""
    return any(_is_far(buffer) for buffer in bound)


def _is_far(buffer: Argument) -> bool:
    return any(state in buffer.region.valid for state in buffer.region.vm.far)


def all_fragments(bound: Sequence[Argument]) -> dict[int, int]:
    """How many fragments of 2**shift pages, by shift, the local ones among the buffers have."""
    counts: dict[int, int] = {}
    for buffer in bound:
        if not _is_far(buffer):
            for shift, count in buffer.region.fragment_counts(-(-buffer.size >> 12)).items():
                counts[shift] = counts.get(shift, 0) + count
    return counts


def outstanding(kernel: KernelSpec, gpu: Gpu) -> float:
    """Bytes that a wavefront keeps in flight of one array: what its lanes ask for, as far as the GPU keeps it."""
    compute = gpu.spec.compute
    return float(min(compute.bytes_in_flight, compute.lanes * kernel.bytes_per_lane))


class PatternStream(AccessStream, Protocol):
    """An access stream with what decides how fast one of its wavefronts can be."""

    #: where its accesses are served, once it has run for a while
    served: Served
    #: bytes that one wavefront keeps outstanding
    in_flight_bytes: float
    #: wavefronts at most; None: as many as fit in
    waves: int | None = None
    serial_ps: float = 0.0
    shares: Sequence[tuple[int, int]] | None = None
    step_pages: int = 0
    lanes: int = 0

    def instructions(self, index: int) -> Iterator[Instruction]:
        """Lanes that walk side by side are not told apart."""
        return iter(())


class Walk(PatternStream):
    """An access stream that goes through its operands side by side, in steps of equal share.

    `reach` is how many bytes before and after its own share a step also reads (a stencil's halo).
    """

    def __init__(
        self,
        kernel: KernelSpec,
        bound: Sequence[Argument],
        gpu: Gpu,
        *,
        read_amplification: float = 1.0,
        write_amplification: float = 1.0,
        halo: int = 0,
    ) -> None:
        self.steps = model_steps(kernel, bound, gpu)
        self.passes = kernel.passes
        self.order = ORDERS[kernel.mapping]
        # the accesses to several arrays do not wait for each other
        arrays = sum(buffer.read + buffer.write for buffer in bound)
        self.in_flight_bytes = arrays * outstanding(kernel, gpu)
        footprint = sum(buffer.size for buffer in bound)
        self.served = gpu.caches.all_miss() if far(bound) else gpu.caches.passes(footprint, self.passes)
        self._translate(bound, gpu)
        self._halo = halo
        self._sizes = [buffer.size for buffer in bound]
        self.operands: Sequence[Operand] = [
            Operand(
                buffer.region,
                read_bytes=buffer.size / self.steps * read_amplification if buffer.read else 0.0,
                write_bytes=buffer.size / self.steps * write_amplification if buffer.write else 0.0,
            )
            for buffer in bound
        ]
        self._pairs = list(zip(self.operands, self._sizes, strict=True))
        # a step of whole pages in every operand needs no division
        whole = [size // self.steps for size in self._sizes]
        self._pages_per_step = (
            [size >> 12 for size in whole]
            if halo == 0
            and all(size % self.steps == 0 and size // self.steps % 4096 == 0 for size in self._sizes)
            else None
        )
        if self._pages_per_step and len(bound) == 1:
            self.step_pages = self._pages_per_step[0]

    def _translate(self, bound: Sequence[Argument], gpu: Gpu) -> None:
        """A closed form where steps are handed out in order and each is its compute unit's first in a fragment.

        Elsewhere latency is looked up step by step; what whole small pages ask of the walkers is the same.
        """
        self.translation_ps: int | None = None
        self.table_reads = 0.0
        latency = reads = small = 0.0
        looks_up = self.order is not Order.FRONTIER
        for buffer in bound:
            if _is_far(buffer):
                continue
            pages = -(-buffer.size >> 12)
            for shift, count in buffer.region.fragment_counts(pages).items():
                step_pages = buffer.size / self.steps / 4096
                added = gpu.translation.stream(step_pages, shift)
                share = min(1.0, (count << shift) / pages)
                if added is None:
                    looks_up = True
                    continue
                latency += added.latency_ps * share
                reads += added.reads * share
                if shift == 0 and step_pages >= 1:
                    small += added.reads * share
        self.table_reads = small if looks_up else reads
        if not looks_up:
            self.translation_ps = round(latency)

    def touches(self, index: int) -> Sequence[Touch]:
        """The pages of a step, operand by operand."""
        if index >= self.steps:
            index %= self.steps
        per_step = self._pages_per_step
        if per_step is not None:
            return [
                (operand, index * pages, (index + 1) * pages - 1)
                for operand, pages in zip(self.operands, per_step, strict=True)
            ]
        steps, halo = self.steps, self._halo
        found: list[Touch] = []
        for operand, size in self._pairs:
            first = index * size // steps
            last = max(first, (index + 1) * size // steps - 1)
            if halo and operand.read:
                first, last = max(0, first - halo), min(size - 1, last + halo)
            found.append((operand, first >> 12, last >> 12))
        return found

    def mapped_run(self, start: int, stop: int) -> int:
        """How many steps from `start` find all pages valid, and in the places where the first one finds them."""
        steps = self.steps
        run = stop - start
        if self.passes > 1:
            begin = start % steps
            if begin + run > steps:  # around the end: only if everything is there
                if all(self._clear_run(op, size, 0, steps, 0) >= steps for op, size in self._pairs):
                    return run
                run = steps - begin
            start = begin
        for operand, size in self._pairs:
            run = min(run, self._clear_run(operand, size, start, start + run, start))
            if run <= 0:
                return 0
        return run

    def _clear_run(self, operand: Operand, size: int, start: int, stop: int, like: int) -> int:
        """Steps start..stop-1 before the first one that touches a page unlike the first page of step `like`."""
        steps, halo = self.steps, self._halo if operand.read else 0
        valid = operand.valid
        first = max(0, start * size // steps - halo) >> 12
        last = min(size - 1, max(start * size // steps, stop * size // steps - 1) + halo) >> 12
        state = valid[max(0, like * size // steps - halo) >> 12]
        if state == INVALID:
            return 0
        hit = last + 1
        for other in operand.region.vm.states:
            if other != state:
                found = valid.find(other, first, hit)
                if found >= 0:
                    hit = found
        if hit > last:
            return stop - start
        # the last step that ends before page `hit`
        limit = ((hit << 12) - halo) * steps // size
        return max(0, min(stop, limit) - start)
