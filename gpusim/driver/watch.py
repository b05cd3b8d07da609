"""Finds programs that go round in circles: faults that are served again and again while nothing gets on.

A process makes progress when a wave step completes, an access of a copy engine or of the command processor goes
through, or a page is served that was not served before. When one page has been restored `RESTORES` times, or retries
have gone on for `PATIENCE_PS` of simulated time, without any of that, nothing can be expected of another round, and the
run ends with the outcome `livelock`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gpusim.driver.kfd_process import KfdProcess
from gpusim.engine.environment import Environment
from gpusim.errors import SimulatedFailure
from gpusim.linux.address_space import Vma
from gpusim.quantity import format_duration_ps

RESTORES: Final = 100
PATIENCE_PS: Final = 10 * 10**12
_MOST: Final = 1 << 16  # pages remembered of a process that gets on


class _Restores:
    """What was served of one process: how often each page, how many for the first time, and what had been done then."""

    __slots__ = ("done", "fresh", "most", "pages", "seen", "since_ps")

    def __init__(self) -> None:
        self.pages: dict[int, int] = {}
        self.fresh = 0
        self.seen = (-1, -1)  # accesses done and fresh pages when last looked at
        self.since_ps = 0
        self.done = 0  # when pages were last forgotten
        self.most = _MOST


class Watch:
    """Looks at each restore of one machine. `done` tells how many steps and accesses of a process have completed."""

    def __init__(self, *, env: Environment, done: Callable[[KfdProcess], int]) -> None:
        self._env = env
        self._done = done
        self._processes: dict[int, _Restores] = {}

    def restoring(self, process: KfdProcess, vma: Vma, page: int, gpu: str) -> None:
        """A fault is served. Raises SimulatedFailure `livelock` if that has led to nothing for too long."""
        now = self._env.now
        found = self._processes.get(process.number)
        if found is None:
            found = self._processes[process.number] = _Restores()
        count = found.pages.get(page, 0) + 1
        found.pages[page] = count
        if count == 1:
            found.fresh += 1
            found.since_ps = now
            if len(found.pages) >= found.most:
                self._forget(process, found)
            return
        if count % RESTORES and now - found.since_ps <= PATIENCE_PS:
            return
        state = (self._done(process), found.fresh)
        if found.seen != state:
            found.seen = state
            found.since_ps = now
            return
        since = format_duration_ps(now - found.since_ps)
        raise SimulatedFailure(
            "livelock",
            f"page {page:#x} of {vma.name} has been restored {count} times: {gpu} faults on it, the driver serves the "
            f"fault and maps the page, and the access faults again; for {since} no wavefront of {process.name} has "
            f"completed a step, no copy has got on, and no other page was served. {gpu}'s fault worker holds "
            f"{process.lock.name}",
        )

    def _forget(self, process: KfdProcess, found: _Restores) -> None:
        """A process that gets on may see its pages again. One that does not may be in a circle over all of them."""
        done = self._done(process)
        if done != found.done:
            found.done = done
            found.pages.clear()
            found.most = _MOST
        else:
            found.most *= 2

    def waits_for_io(self, process: KfdProcess, page: int) -> None:
        """A restore could not be completed because pages are being read: that is not a circle."""
        found = self._processes[process.number]
        found.pages.pop(page, None)
        found.since_ps = self._env.now
