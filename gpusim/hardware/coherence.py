"""Cache lines of one buffer that CPU threads and GPUs update at the same time: system-scope atomics.

A line is in one place. A CPU core that owns it updates it in its own cache; if another core or a GPU had it last, it
is fetched first, once for all the updates that a thread does on it in a row. Atomics of a GPU on memory that the CPU
shares are done in memory, one at a time on a line (`mark_atomics`): they take the line from the core that has it, and
wait while a core works on it. Several GPUs share what a line can do equally.

All lines are alike, and threads and kernels go over them independently of each other. Left out: failed locks and loops
of compare-and-swap, and lines that hold other data as well.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from gpusim.spec import Duration, Spec

if TYPE_CHECKING:
    from gpusim.engine.environment import Environment, Timer

LINE = 64


class LineCosts(Spec):
    """Atomics of a CPU core."""

    owned: Duration = Field(gt=0, description="one atomic on a line in the core's own cache")
    between_cores: Duration = Field(description="fetch a line that another core has written")
    from_gpu: Duration = Field(description="fetch a line whose last atomic was a GPU's")


class Kernel(Protocol):
    """A kernel whose atomics go to the lines."""

    @property
    def lines_use(self) -> float:
        """Share of the lines' time that it would take alone."""
        ...

    def slow_atomics(self, factor: float) -> None:
        """Its atomics take `factor` times as long as alone from now on."""
        ...


class _Updates:
    """Atomics of one CPU thread that are left to do, and how long one takes now."""

    __slots__ = ("done", "each_ps", "left", "per_line")

    def __init__(self, count: int, per_line: int, done: Callable[[], None]) -> None:
        self.left = float(count)
        self.per_line = per_line
        self.done = done
        self.each_ps = 1.0


class SharedLines:
    """`lines` lines of a buffer and who works on them."""

    __slots__ = ("_alarm", "_costs", "_env", "_kernels", "_lines", "_settled_ps", "_threads")

    def __init__(self, env: Environment, costs: LineCosts, size_bytes: int) -> None:
        self._env = env
        self._costs = costs
        self._lines = max(1, size_bytes // LINE)
        self._threads: list[_Updates] = []
        self._kernels: dict[Kernel, float] = {}
        self._settled_ps = 0
        self._alarm: Timer | None = None

    def update(self, count: int, per_line: int, done: Callable[[], None]) -> None:
        """A CPU thread does `count` atomics, `per_line` in a row on a line, then `done` is called."""
        self._settle()
        self._threads.append(_Updates(count, per_line, done))
        self._share()

    def begin(self, kernel: Kernel) -> None:
        """A kernel's atomics go to the lines from now on."""
        self._settle()
        self._kernels[kernel] = 1.0
        self._share()

    def end(self, kernel: Kernel) -> None:
        """It has ended."""
        self._settle()
        self._kernels.pop(kernel, None)
        self._share()

    def each_ps(self, per_line: int) -> float:
        """What an atomic of a CPU thread takes now."""
        costs, threads = self._costs, max(1, len(self._threads))
        gpus = min(1.0, sum(kernel.lines_use for kernel in self._kernels))
        another_core = (1.0 - gpus) * (threads - 1) / threads
        return costs.owned + (another_core * costs.between_cores + gpus * costs.from_gpu) / per_line

    def _settle(self) -> None:
        now = self._env.now
        passed = now - self._settled_ps
        self._settled_ps = now
        for thread in self._threads:
            thread.left -= passed / thread.each_ps

    def _share(self) -> None:
        """Who does how much from now on; wake up when the first thread has done."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for thread in self._threads:
            thread.each_ps = self.each_ps(thread.per_line)
        if self._threads:
            wait = min(thread.left * thread.each_ps for thread in self._threads)
            self._alarm = self._env.call_at(self._env.now + max(1, ceil(wait - 1e-3)), self._wake)
        at_cores = 1.0 - (1.0 - 1.0 / (self._lines + 1)) ** len(self._threads)
        uses = {kernel: kernel.lines_use for kernel in self._kernels}
        together = sum(uses.values())
        for kernel, last in list(self._kernels.items()):
            factor = (1.0 + together - uses[kernel]) / (1.0 - at_cores)
            if factor != last:
                self._kernels[kernel] = factor
                kernel.slow_atomics(factor)

    def _wake(self) -> None:
        self._alarm = None
        self._settle()
        ready = [thread for thread in self._threads if thread.left * thread.each_ps < 1.0]
        self._threads = [thread for thread in self._threads if thread not in ready]
        self._share()
        for thread in ready:
            thread.done()
