"""Finds programs that go round in circles: faults that are served again and again while nothing gets on.

A process makes progress when a wave step completes or a page is served that was not served before. When one page has
been restored `RESTORES` times, or retries have gone on for `PATIENCE_PS` of simulated time, without either, nothing can
be expected of another round, and the run ends with the outcome `livelock`.
"""

from __future__ import annotations

from collections.abc import Callable

from gpusim.driver.kfd_process import KfdProcess
from gpusim.engine.environment import Environment
from gpusim.errors import SimulatedFailure
from gpusim.linux.address_space import Vma
from gpusim.quantity import format_duration_ps

RESTORES = 100
PATIENCE_PS = 10 * 10**12
_MOST = 1 << 16  # pages remembered; a circle over more of them is found by the clock


class Watch:
    """Looks at each restore of one machine. `steps` tells how many wave steps of a process have completed."""

    def __init__(self, *, env: Environment, steps: Callable[[KfdProcess], int]) -> None:
        self._env = env
        self._steps = steps
        self._restored: dict[tuple[int, int], int] = {}
        self._fresh: dict[int, int] = {}  # process -> pages served for the first time
        self._seen: dict[int, tuple[int, int]] = {}  # process -> steps and fresh pages when last looked at
        self._since_ps: dict[int, int] = {}

    def restoring(self, process: KfdProcess, vma: Vma, page: int, gpu: str) -> None:
        """A fault is served. Raises SimulatedFailure `livelock` if that has led to nothing for too long."""
        number = process.number
        key = (number, page)
        count = self._restored.get(key, 0) + 1
        if count == 1:
            if len(self._restored) >= _MOST:
                self._restored.clear()
            self._fresh[number] = self._fresh.get(number, 0) + 1
            self._since_ps[number] = self._env.now
        self._restored[key] = count
        late = self._env.now - self._since_ps.get(number, self._env.now) > PATIENCE_PS
        if count % RESTORES and not late:
            return
        state = (self._steps(process), self._fresh.get(number, 0))
        if self._seen.get(number) != state:
            self._seen[number] = state
            self._since_ps[number] = self._env.now
            return
        since = format_duration_ps(self._env.now - self._since_ps.get(number, 0))
        raise SimulatedFailure(
            "livelock",
            f"page {page:#x} of {vma.name} has been restored {count} times: {gpu} faults on it, the driver serves the "
            f"fault and maps the page, and the access faults again; for {since} no wavefront of {process.name} has "
            f"completed a step and no other page was served. {gpu}'s fault worker holds {process.lock.name}",
        )

    def waits_for_io(self, process: KfdProcess, page: int) -> None:
        """A restore could not be completed because pages are being read: that is not a circle."""
        self._restored.pop((process.number, page), None)
        self._since_ps[process.number] = self._env.now
