"""The IOMMU of an APU: ATS requests of the GPU, and the log of its page requests (PPR).

At most so many ATS requests are outstanding; each is answered after a walk of the CPU page table. A page request takes
one of the device's credits until it is completed, and an entry of the log until the IOMMU thread has read it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gpusim.engine.environment import Environment
from gpusim.engine.ring import Ring
from gpusim.engine.server import Server
from gpusim.engine.timeline import Timeline
from gpusim.hardware.ats_spec import AtsSpec


class Iommu:
    """`interrupt` is called when the log gets its first entry; whoever listens reads it with `read`."""

    def __init__(self, spec: AtsSpec, *, env: Environment, name: str, interrupt: Callable[[], None]) -> None:
        self._spec = spec
        self._env = env
        self._interrupt = interrupt
        self._requests = Server(env, f"{name}.ats", lanes=spec.outstanding)
        self.use = Timeline(f"{name}.ats")  # of all outstanding requests together
        self.log: Ring[Callable[[], None]] = Ring(spec.log_entries)
        self._credits = spec.page_requests
        self._waiting: deque[tuple[Callable[[], None], Callable[[], None]]] = deque()
        self.requests = 0  # of ATS
        self.page_requests = 0

    def translate(self, answered: Callable[[], None]) -> None:
        """One ATS request; `answered` is called when the walk's result is back."""
        self.requests += 1
        start, end = self._requests.reserve(self._spec.request + self._spec.walk)
        self.use.add(start, end, 1, (end - start) // self._requests.lanes)
        self._env.call_at(end, answered)

    def request_page(self, served: Callable[[], None], lost: Callable[[], None]) -> None:
        """One PRI request: `served` is for whoever reads the log, `lost` is called if the log was full."""
        if self._credits == 0:
            self._waiting.append((served, lost))
            return
        self._credits -= 1
        self.page_requests += 1
        self._env.call_at(self._env.now + self._spec.message, lambda: self._logged(served, lost))

    def _logged(self, served: Callable[[], None], lost: Callable[[], None]) -> None:
        first = len(self.log) == 0
        if not self.log.push(served):
            lost()
        elif first:
            self._interrupt()

    def completed(self) -> None:
        """A request was answered: its credit is free again."""
        self._credits += 1
        if self._waiting:
            self.request_page(*self._waiting.popleft())
