"""Accesses to places that a step draws: what random, zipf, gather and spmv share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpusim.hardware.access import Instruction, Operand, Order, Touch
from gpusim.hardware.caches import Served
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import INVALID
from gpusim.hardware.popularity import Popularity
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import MEMORY_LINE, PatternStream, all_fragments, far, outstanding

#: draws the pages (indices into the operand's region) of so many accesses of step `index`
Draw = Callable[[np.random.Generator, int, int], npt.NDArray[np.int64]]


class Drawn(PatternStream):
    """Steps that draw the pages of all operands. The pages of a step are drawn from a stream of the step's own number,
    so they do not depend on which wavefront takes it, or when.

    `draws[i]` is the number of accesses of a step to operand i and what draws them.
    """

    def __init__(
        self,
        operands: Sequence[Operand],
        draws: Sequence[tuple[int, Draw]],
        *,
        steps: int,
        passes: int,
        order: Order,
        seed: int,
        served: Served,
        translation_ps: int,
        table_reads: float,
        in_flight_bytes: float,
        waves: int | None = None,
        lanes: int = 0,
    ) -> None:
        self.operands = operands
        self._draws = draws
        self.steps = steps
        self.passes = passes
        self.order = order
        self._seed = seed
        self.served = served
        self.translation_ps = translation_ps
        self.table_reads = table_reads
        self.in_flight_bytes = in_flight_bytes
        self.waves = waves
        self.lanes = lanes

    def instructions(self, index: int) -> Iterator[Instruction]:
        """Instructions of a step with a page that is missing when they are issued."""
        index %= self.steps
        for number, (operand, (accesses, draw)) in enumerate(zip(self.operands, self._draws, strict=True)):
            generator = np.random.Generator(np.random.PCG64([self._seed, index, number]))
            pages = draw(generator, accesses, index)
            for start in range(0, accesses, self.lanes):
                part = pages[start : start + self.lanes]
                valid = np.frombuffer(operand.valid, dtype=np.uint8)
                missing = bool((valid[part] == INVALID).any())
                del valid  # the region's bytes must be free to change
                if missing:
                    yield operand, part.tolist()

    def touches(self, index: int) -> Sequence[Touch]:
        """All pages that the step's lanes touch and that are missing, in order of first access; else one of them."""
        index %= self.steps
        touches: list[Touch] = []
        for number, (operand, (accesses, draw)) in enumerate(zip(self.operands, self._draws, strict=True)):
            generator = np.random.Generator(np.random.PCG64([self._seed, index, number]))
            pages = draw(generator, accesses, index)
            valid = np.frombuffer(operand.valid, dtype=np.uint8)
            missing = pages[valid[pages] == INVALID]
            del valid  # the region's bytes must be free to change
            if missing.size:
                _, first = np.unique(missing, return_index=True)
                touches += [(operand, int(page), int(page)) for page in missing[np.sort(first)]]
            else:
                page = int(pages[0])
                touches.append((operand, page, page))
        return touches

    def mapped_run(self, start: int, stop: int) -> int:
        """All steps or none: any of them may touch any page."""
        for operand in self.operands:
            valid = operand.valid
            if valid[0] == INVALID or valid.count(valid[0]) != len(valid):
                return 0
        return stop - start


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer whose elements are drawn: so many accesses a step, each to a whole memory line."""

    buffer: Argument
    accesses: float
    popularity: Popularity


def drawn(
    places: Sequence[Place], kernel: KernelSpec, gpu: Gpu, *, steps: int, passes: int, order: Order, seed: int
) -> Drawn:
    """A stream of independent accesses to the elements of some buffers."""
    line = max(MEMORY_LINE, kernel.bytes_per_lane)
    element = kernel.bytes_per_lane
    operands: list[Operand] = []
    draws: list[tuple[int, Draw]] = []
    latency = reads = 0.0
    weights: list[tuple[float, Served]] = []
    total = sum(place.buffer.size for place in places)
    for place in places:
        buffer, each = place.buffer, place.accesses
        accesses = max(1, round(each))
        moved = each * line
        operands.append(
            Operand(
                buffer.region,
                read_bytes=moved if buffer.read else 0.0,
                write_bytes=moved if buffer.write else 0.0,
            )
        )
        draws.append((accesses, _pages(place.popularity, element, buffer.region.pages)))
        # buffers share the caches by their size
        part = buffer.size / total
        weights.append((moved * (buffer.read + buffer.write), _served(place, gpu, line, element, part)))
        # the lanes of an instruction look their fragments up side by side: one mean added latency an instruction
        fragments = all_fragments([buffer])
        if fragments:
            added, read = gpu.translation.skewed(fragments, _held(place.popularity, element, part))
            latency += -(-accesses // gpu.spec.compute.lanes) * added
            reads += accesses * read
    return Drawn(
        operands,
        draws,
        steps=steps,
        passes=passes,
        order=order,
        seed=seed,
        served=Served.mixed(weights),
        translation_ps=round(latency),
        table_reads=reads,
        in_flight_bytes=outstanding(kernel, gpu),
        lanes=gpu.spec.compute.lanes,
    )


def _served(place: Place, gpu: Gpu, line: int, element: int, part: float) -> Served:
    if far([place.buffer]):
        return gpu.caches.all_miss()
    per_line = max(1, line // element)
    return gpu.caches.independent(
        lambda size: place.popularity.lru_share(max(1, round(size * part / line)), per_line)
    )


def _held(popularity: Popularity, element: int, part: float) -> Callable[[int, int], float]:
    """What a translation cache serves, of which the buffer has its part: from entries and their pages."""
    per_page = max(1, 4096 // element)
    return lambda entries, pages: popularity.lru_share(max(1, round(entries * part)), pages * per_page)


def _pages(popularity: Popularity, element: int, pages: int) -> Draw:
    def draw(generator: np.random.Generator, accesses: int, index: int) -> npt.NDArray[np.int64]:
        page: npt.NDArray[np.int64] = popularity.draw(generator, accesses) * element >> 12
        return np.minimum(page, pages - 1, dtype=np.int64)

    return draw


def any_page(pages: int) -> Draw:
    """All pages equally likely."""

    def draw(generator: np.random.Generator, accesses: int, index: int) -> npt.NDArray[np.int64]:
        return generator.integers(0, pages, accesses)

    return draw
