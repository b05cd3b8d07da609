"""Following which SVM memory wavefronts use: what a least-recently-used policy needs, and the driver does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpusim.driver.kfd_process import KfdProcess
from gpusim.engine.environment import Environment
from gpusim.hardware.access import AccessStream, Touch


class Watched:
    """An access stream that notes, on the buffer objects behind its pages, when a step last used them."""

    #: each step is to come by
    step_pages = 0

    def __init__(self, stream: AccessStream, kfd: KfdProcess, env: Environment) -> None:
        self._stream = stream
        self._kfd = kfd
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def touches(self, index: int) -> Sequence[Touch]:
        """As the stream's."""
        found = self._stream.touches(index)
        for operand, first, last in found:
            self._used(operand.region.first_page + first, operand.region.first_page + last)
        return found

    def mapped_run(self, start: int, stop: int) -> int:
        """As the stream's: steps that are looked at together are about to be used."""
        run = self._stream.mapped_run(start, stop)
        if run:
            ends = self._stream.touches(start), self._stream.touches(start + run - 1)
            for (operand, first, _), (_, _, last) in zip(*ends, strict=False):
                if first <= last:
                    base = operand.region.first_page
                    self._used(base + first, base + last)
        return run

    def _used(self, first: int, last: int) -> None:
        now = self._env.now
        for svm in self._kfd.ranges.within(first, last):
            if svm.bo is not None:
                svm.bo.used_ps = now
