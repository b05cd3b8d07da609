"""drop_caches: clean pages of the page cache go."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class DropCaches(StepSpec):
    """Write 1 to /proc/sys/vm/drop_caches: clean page-cache pages go; dirty ones stay."""

    verb: ClassVar[str] = "drop_caches"

    file: str | None = Field(default=None, description="only this file; default: all")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.drop_caches(thread, self.file)
