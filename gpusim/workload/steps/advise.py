"""advise: hipMemAdvise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.runtime.advice import Advice
from gpusim.workload.steps.base import BufferPart, StepProcess

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Advise(BufferPart):
    """hipMemAdvise."""

    verb: ClassVar[str] = "advise"

    advice: Advice = Field(description="what to advise")
    device: str = Field(default="gpu0", description="gpu0, gpu1, ... or cpu")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation, part = self.locate(thread, step)
        yield from thread.hip.advise(thread, allocation, part, self.advice, self.device)
