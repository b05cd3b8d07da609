"""fork: a child that shares memory copy-on-write."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepProcess, StepSpec
from gpusim.workload.steps.step import Step

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Fork(StepSpec):
    """fork: the child shares pages copy-on-write, runs its steps and ends."""

    verb: ClassVar[str] = "fork"

    steps: tuple[Step, ...] = Field(default=(), description="what the child does")
    wait: bool = Field(default=True, description="the parent waits for the child's end")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.fork(self.steps, suffix=step.suffix, wait=self.wait)
