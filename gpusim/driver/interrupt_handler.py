"""The hard interrupt handler of ring 0: reads vectors in passes, and copies retry faults to a soft ring.

One interrupt wakes it; it goes on pass by pass until the ring is empty. A pass reads at most 31 vectors, then the read
pointer is published. Each pass ends before its vectors reach a worker (`kfd_svm.md` 1.1).
"""

from __future__ import annotations

from collections.abc import Callable

from gpusim.driver.interrupt_spec import InterruptSpec
from gpusim.engine.environment import Environment
from gpusim.engine.timeline import Timeline
from gpusim.hardware.interrupt import Vector, VectorRing


class InterruptHandler:
    """`deliver` gets each vector; it answers False if there is no room yet: `retry` says that there is."""

    def __init__(
        self,
        spec: InterruptSpec,
        *,
        interrupt_ps: int,
        env: Environment,
        name: str,
        deliver: Callable[[Vector], bool],
        lost: Callable[[Vector], None],
    ) -> None:
        self._env = env
        self._spec = spec
        self._interrupt_ps = interrupt_ps
        self._deliver = deliver
        self._lost = lost
        self.ring = VectorRing(spec.ring0, margin=spec.overflow_margin)
        self._busy = False
        self._batch: list[Vector] = []
        self._blocked = False
        self.interrupts = 0
        self.use = Timeline(name)  # CPU time: an amount is a vector

    def arrived(self, vector: Vector) -> None:
        """A vector is written to the ring; the hardware interrupts unless the handler is at it."""
        for lost in self.ring.push(vector):
            self._lost(lost)
        if not self._busy:
            self._busy = True
            self.interrupts += 1
            self._pass(self._interrupt_ps)

    def _pass(self, entry_ps: int) -> None:
        now = self._env.now
        self._batch = self.ring.take(self._spec.per_pass, hold=True)
        end = now + entry_ps + len(self._batch) * self._spec.vector
        self.use.add(now, end, len(self._batch))
        self._env.call_at(end, self.resume)

    def resume(self) -> None:
        """Hand over what was read, as far as there is room; then read on."""
        self._blocked = False
        while self._batch:
            if not self._deliver(self._batch[0]):
                self._blocked = True
                return
            self._batch.pop(0)
        self.ring.release()
        if len(self.ring):
            self._pass(0)
        else:
            self._busy = False

    def retry(self) -> None:
        """There is room again."""
        if self._blocked:
            self.resume()
