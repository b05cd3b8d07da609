"""gather and spmv: arrays that are walked tell where to read in one that is gathered from.

The last of the launch's `reads` is gathered from, with one access for each element of the largest other buffer; all
others are walked from start to end. `gather` is a graph with a power law: the vertex of rank r is the neighbour of as
many as r ** -exponent says, and vertices are numbered without regard to that. `spmv` is a sparse matrix: row i reads
columns within `band` around the diagonal (default: anywhere).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from gpusim.errors import InputError, Problem
from gpusim.hardware.access import Instruction, Operand, Touch
from gpusim.hardware.caches import Served, uniform_share
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.popularity import Popularity
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import (
    MEMORY_LINE,
    ORDERS,
    PatternStream,
    Walk,
    all_fragments,
    far,
    outstanding,
)
from gpusim.workload.patterns.drawn import Draw, Drawn, Place, drawn

DEFAULT_EXPONENT = 0.8  # of ranks; a degree distribution k ** -2.25


class Gathering(PatternStream):
    """A walk and draws side by side: step i does its share of both."""

    def __init__(self, walk: Walk, gathered: Drawn, in_flight_bytes: float) -> None:
        self._walk = walk
        self._gathered = gathered
        self.steps = walk.steps
        self.passes = walk.passes
        self.order = walk.order
        self.in_flight_bytes = in_flight_bytes
        self.operands: Sequence[Operand] = [*walk.operands, *gathered.operands]
        own = 0 if walk.translation_ps is None else walk.translation_ps
        self.translation_ps: int | None = own + (gathered.translation_ps or 0)
        self.table_reads = walk.table_reads + gathered.table_reads
        self.served = Served.mixed(
            [(_moved(walk), walk.served), (_moved(gathered), gathered.served)],
        )

        self.lanes = gathered.lanes

    def instructions(self, index: int) -> Iterator[Instruction]:
        return self._gathered.instructions(index)

    def touches(self, index: int) -> Sequence[Touch]:
        return [*self._walk.touches(index), *self._gathered.touches(index)]

    def mapped_run(self, start: int, stop: int) -> int:
        if not self._gathered.mapped_run(start, stop):
            return 0
        return self._walk.mapped_run(start, stop)


def _moved(stream: PatternStream) -> float:
    return sum(operand.read_bytes + operand.write_bytes for operand in stream.operands)


def gather(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Gathering:
    """Indices are walked; each one reads an element of the gathered array, popular ones more often."""
    source, walked = _split(kernel, bound)
    exponent = DEFAULT_EXPONENT if kernel.exponent is None else kernel.exponent
    walk = Walk(kernel, walked, gpu)
    elements = max(1, source.size // kernel.bytes_per_lane)
    place = Place(source, _accesses(kernel, walked, walk), Popularity(elements, exponent, scattered=True))
    gathered = drawn([place], kernel, gpu, steps=walk.steps, passes=walk.passes, order=walk.order, seed=seed)
    return Gathering(walk, gathered, walk.in_flight_bytes + outstanding(kernel, gpu))


def spmv(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Gathering:
    """The matrix is walked; each of its elements reads one of the vector, near the diagonal."""
    source, walked = _split(kernel, bound)
    walk = Walk(kernel, walked, gpu)
    band = min(source.size, kernel.band or source.size)
    accesses = _accesses(kernel, walked, walk)
    line = max(MEMORY_LINE, kernel.bytes_per_lane)
    # what is in use at one time is the band; its lines come from memory once a pass
    if far([source]):
        served = gpu.caches.all_miss()
    else:
        once = min(1.0, source.size / (accesses * walk.steps * line))
        share = uniform_share(band)
        served = gpu.caches.independent(lambda size: (1.0 - once) * share(size))
    fragments = all_fragments([source])
    used = {shift: max(1, round(count * band / source.size)) for shift, count in fragments.items()}
    latency, reads = gpu.translation.independent(used) if used else (0.0, 0.0)
    instructions = -(-max(1, round(accesses)) // gpu.spec.compute.lanes)
    moved = accesses * line
    gathered = Drawn(
        [Operand(source.region, read_bytes=moved, write_bytes=moved if source.write else 0.0)],
        [(max(1, round(accesses)), _in_band(source, band, walk.steps))],
        steps=walk.steps,
        passes=walk.passes,
        order=ORDERS[kernel.mapping],
        seed=seed,
        served=served,
        translation_ps=round(instructions * latency),
        table_reads=accesses * reads,
        in_flight_bytes=outstanding(kernel, gpu),
        lanes=gpu.spec.compute.lanes,
    )
    return Gathering(walk, gathered, walk.in_flight_bytes + outstanding(kernel, gpu))


def _split(kernel: KernelSpec, bound: Sequence[Argument]) -> tuple[Argument, Sequence[Argument]]:
    """The buffer that is gathered from, and those that are walked. Raises InputError where there are not two reads."""
    read = [buffer for buffer in bound if buffer.read]
    if len(read) < 2:
        raise InputError(
            [
                Problem(
                    f"pattern {kernel.pattern} reads where another buffer says",
                    path="processes.*.launch.reads",
                    read=f"{len(read)} buffers read",
                    legal="two or more in `reads`: what is walked, and last what is gathered from",
                )
            ]
        )
    return read[-1], [buffer for buffer in bound if buffer is not read[-1]]


def _accesses(kernel: KernelSpec, walked: Sequence[Argument], walk: Walk) -> float:
    """Accesses of one step: one for each element of the largest buffer that is walked."""
    return max(1.0, max(buffer.size for buffer in walked) / kernel.bytes_per_lane / walk.steps)


def _in_band(source: Argument, band: int, steps: int) -> Draw:
    pages = source.region.pages

    def draw(generator: np.random.Generator, accesses: int, index: int) -> npt.NDArray[np.int64]:
        centre = (index + 0.5) / steps * source.size
        low = min(max(0.0, centre - band / 2), source.size - band)
        page: npt.NDArray[np.int64] = (low + generator.random(accesses) * band).astype(np.int64) >> 12
        return np.minimum(page, pages - 1, dtype=np.int64)

    return draw
