"""tiled: matrices that are walked square tile by square tile, as blocked matrix kernels and transposes do."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from gpusim.hardware.access import Operand, Touch
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import INVALID
from gpusim.hardware.translation import Translation
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import ORDERS, PatternStream, far, outstanding

DEFAULT_TILE = 64  # elements


class Tiled(PatternStream):
    """Each buffer is a square matrix in rows. A model step is one tile of each, in the order of rows of tiles.

    A tile comes from as many places as it has rows: where a row of the matrix is longer than a page, each is another
    page. Each element is moved once a pass; what a tile is used again for stays in registers and LDS.
    """

    def __init__(self, kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu) -> None:
        element = kernel.bytes_per_lane
        tile = kernel.tile or DEFAULT_TILE
        self._tile = tile
        self._grids = [_Grid(buffer, element, tile) for buffer in bound]
        self.steps = max(grid.tiles for grid in self._grids)
        self.passes = kernel.passes
        self.order = ORDERS[kernel.mapping]
        self.operands: Sequence[Operand] = [
            Operand(
                buffer.region,
                read_bytes=buffer.size / self.steps if buffer.read else 0.0,
                write_bytes=buffer.size / self.steps if buffer.write else 0.0,
            )
            for buffer in bound
        ]
        away = far(bound)
        footprint = sum(buffer.size for buffer in bound)
        self.served = gpu.caches.all_miss() if away else gpu.caches.passes(footprint, self.passes)
        self.in_flight_bytes = sum(buffer.read + buffer.write for buffer in bound) * outstanding(kernel, gpu)
        self.translation_ps: int | None = 0
        self.table_reads = 0.0
        if not away:
            self._sample(gpu)

    def _sample(self, gpu: Gpu) -> None:
        """Translate some tiles, as they are handed out to the compute units, with caches of their own."""
        spec = gpu.spec
        units = spec.compute.compute_units
        caches = Translation(spec.utcl1, spec.utcl2, spec.walker, compute_units=units, xcds=spec.compute.xcds)
        sample = min(self.steps, _SAMPLE)
        counted = latency = 0
        before = 0
        for step in range(sample):
            if step == sample // 2:  # from here on the caches hold what they hold in the middle
                latency, before = 0, caches.counts()["table_reads"]
                counted = sample - step
            now = step * _APART_PS
            latency += caches.step_ps(step % units, self.touches(step), now)
        self.translation_ps = latency // max(1, counted)
        self.table_reads = (caches.counts()["table_reads"] - before) / max(1, counted)

    def touches(self, index: int) -> Sequence[Touch]:
        """The pages of each row of a tile, operand by operand; those that follow each other are joined."""
        index %= self.steps
        touches: list[Touch] = []
        for operand, grid in zip(self.operands, self._grids, strict=True):
            begin = len(touches)
            for first, last in grid.rows(index % grid.tiles):
                if len(touches) > begin and first <= touches[-1][2] + 1:
                    touches[-1] = (operand, touches[-1][1], max(last, touches[-1][2]))
                else:
                    touches.append((operand, first, last))
        return touches

    def mapped_run(self, start: int, stop: int) -> int:
        """Steps whose whole rows of tiles are mapped in one place."""
        run = stop - start
        for operand, grid in zip(self.operands, self._grids, strict=True):
            run = min(run, grid.mapped_run(operand.valid, start % self.steps, run))
            if run <= 0:
                return 0
        return run


_SAMPLE = 256  # tiles whose translation is looked at
_APART_PS = 10**9  # far enough that no walk waits for another one's


class _Grid:
    """The tiles of one square matrix. Sizes in bytes, pages as indices into its region."""

    def __init__(self, buffer: Argument, element: int, tile: int) -> None:
        self._size = buffer.size
        elements = max(1, buffer.size // element)
        side = max(1, isqrt(elements - 1) + 1)  # columns; the last row may be short
        self._row = side * element
        self._rows = -(-elements // side)
        self._height = min(tile, self._rows)
        self._width = min(tile, side) * element
        self._across = -(-self._row // self._width)
        self.tiles = self._across * -(-self._rows // self._height)

    def rows(self, tile: int) -> list[tuple[int, int]]:
        """First and last page of each row of a tile."""
        down, across = divmod(tile, self._across)
        left = across * self._width
        width = min(self._width, self._row - left)
        top = down * self._height
        pages: list[tuple[int, int]] = []
        for row in range(top, min(top + self._height, self._rows)):
            first = row * self._row + left
            last = min(first + width, self._size) - 1
            if last >= first:
                pages.append((first >> 12, last >> 12))
        return pages or [((self._size - 1) >> 12, (self._size - 1) >> 12)]

    def mapped_run(self, valid: bytearray, start: int, most: int) -> int:
        """How many of `most` tiles from `start` on (round and round) lie in rows of tiles that are mapped alike."""
        band = self._row * self._height
        state = valid[0]
        if state != INVALID and valid.count(state) == len(valid):
            return most
        start %= self.tiles
        run = 0
        down = start // self._across
        first = min(self._size - 1, down * band)
        state = valid[first >> 12]
        while state and run < most and down * band < self._size:
            low, high = down * band >> 12, (min(self._size, (down + 1) * band) - 1) >> 12
            if valid.count(state, low, high + 1) != high + 1 - low:
                break
            down += 1
            run = min(most, down * self._across - start)
        return run


def tiled(kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> Tiled:
    """Square tiles of `tile` x `tile` elements (default 64)."""
    return Tiled(kernel, bound, gpu)
