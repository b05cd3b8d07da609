"""repeat, parallel, barrier and sleep: the order of a program."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.kinds import Kind
from gpusim.spec import Duration
from gpusim.workload.steps.base import StepProcess, StepSpec
from gpusim.workload.steps.step import Step

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Repeat(StepSpec):
    """Do steps again and again; each round appends `[i]` to the paths of its steps."""

    verb: ClassVar[str] = "repeat"

    times: int = Field(gt=0, description="rounds")
    steps: tuple[Step, ...] = Field(min_length=1, description="the steps of one round")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        for index in range(self.times):
            yield from thread.run_steps(self.steps, suffix=f"{step.suffix}[{index}]")


class Parallel(StepSpec):
    """Do several lists of steps at once, each on a host thread of its own; go on when all have ended."""

    verb: ClassVar[str] = "parallel"

    branches: tuple[tuple[Step, ...], ...] = Field(min_length=1, description="lists of steps, one a thread")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.run_branches(self.branches, suffix=step.suffix)


class BarrierScope(StrEnum):
    """Who meets at a barrier."""

    THREADS = "threads"  # all threads of this process that name the barrier
    RANKS = "ranks"  # this thread in all instances of this process


class Barrier(StepSpec):
    """Wait until all have come."""

    verb: ClassVar[str] = "barrier"

    name: str = Field(default="barrier", description="barriers of one name meet")
    scope: BarrierScope = Field(
        default=BarrierScope.THREADS, description="threads of the process, or all ranks"
    )

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.barrier(self.name, all_ranks=self.scope is BarrierScope.RANKS)


class Sleep(StepSpec):
    """The thread sleeps."""

    verb: ClassVar[str] = "sleep"

    duration: Duration = Field(gt=0, description="how long")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.spend(self.duration, Kind.SLEEP)
