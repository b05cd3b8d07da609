"""random: every lane takes any element of the buffer, all equally likely."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.hardware.access import AccessStream, Operand, Touch
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import HOST, INVALID, LOCAL
from gpusim.hardware.translation import FRAGMENT_PAGES
from gpusim.runtime.launch import Argument
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.patterns.base import MEMORY_LINE, ORDERS, model_steps


class RandomAccess(AccessStream):
    """As many accesses a pass as the largest buffer has elements; a step makes an equal share of them.

    Each access moves a whole memory line. The pages of a step are drawn from a stream of the step's own number, so
    they do not depend on which wavefront takes it, or when.
    """

    def __init__(self, kernel: KernelSpec, bound: Sequence[Argument], gpu: Gpu, seed: int) -> None:
        self.steps = model_steps(kernel, bound, gpu)
        self.passes = kernel.passes
        self.order = ORDERS[kernel.mapping]
        self._seed = seed
        line = max(MEMORY_LINE, kernel.bytes_per_lane)
        self.operands: Sequence[Operand] = []
        self._draws: list[int] = []
        instructions = 0
        fragments = 0
        for buffer in bound:
            each = max(1, buffer.size // kernel.bytes_per_lane) / self.steps
            accesses = max(1, round(each))
            moved = each * line
            self.operands.append(
                Operand(
                    buffer.region,
                    read_bytes=moved if buffer.read else 0.0,
                    write_bytes=moved if buffer.write else 0.0,
                )
            )
            self._draws.append(accesses)
            instructions += -(-accesses // gpu.spec.compute.lanes)
            fragments += -(-buffer.region.pages // FRAGMENT_PAGES)
        # the lanes of an instruction look their fragments up side by side: one mean added latency an instruction
        self.translation_ps: int | None = round(instructions * gpu.translation.mean_random_ps(fragments))

    def touches(self, index: int) -> Sequence[Touch]:
        """All pages that the step's lanes touch, in order of first access."""
        index %= self.steps
        touches: list[Touch] = []
        for number, operand in enumerate(self.operands):
            draw = np.random.Generator(np.random.PCG64([self._seed, index, number]))
            pages = draw.integers(0, operand.region.pages, self._draws[number])
            valid = np.frombuffer(operand.region.valid, dtype=np.uint8)
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
            valid = operand.region.valid
            if len(valid) not in (valid.count(LOCAL), valid.count(HOST)):
                return 0
        return stop - start
