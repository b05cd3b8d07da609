"""kill: a process ends in the middle of its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Kill(StepSpec):
    """SIGKILL: the process ends now, and the kernel takes back what it holds. One that has ended is left alone."""

    verb: ClassVar[str] = "kill"
    tells: ClassVar[tuple[str, ...]] = ("process",)

    process: str | None = Field(
        default=None,
        description="the process, all its ranks, or one of them as `name[rank]`; default: this one",
    )

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        own = thread.process
        for victim in [own] if self.process is None else own.find(self.process):
            victim.sigkill(thread)
        yield from ()
