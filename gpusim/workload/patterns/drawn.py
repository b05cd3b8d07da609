"""Accesses to places that a step draws: what random, zipf, gather, spmv and pointer chases share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from gpusim.hardware.access import Operand, Order, Touch
from gpusim.hardware.caches import Served
from gpusim.hardware.gpuvm import INVALID
from gpusim.workload.patterns.base import PatternStream

#: draws so many pages (indices into the operand's region) for step `index`
Draw = Callable[[np.random.Generator, int, int], npt.NDArray[np.int64]]


class Drawn(PatternStream):
    """Steps that draw the pages of some operands. The pages of a step are drawn from a stream of the step's own number,
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


def any_page(pages: int) -> Draw:
    """All pages equally likely."""

    def draw(generator: np.random.Generator, accesses: int, index: int) -> npt.NDArray[np.int64]:
        return generator.integers(0, pages, accesses)

    return draw
