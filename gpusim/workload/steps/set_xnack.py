"""set_xnack: the driver's call that switches the XNACK mode of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class SetXnack(StepSpec):
    """The driver's call that switches XNACK of this process. It fails with -EBUSY once the process has queues."""

    verb: ClassVar[str] = "set_xnack"

    enabled: bool = Field(description="on or off")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.set_xnack(thread, enabled=self.enabled)
