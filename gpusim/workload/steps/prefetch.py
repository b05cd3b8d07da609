"""prefetch: hipMemPrefetchAsync."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.spec import Size
from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Prefetch(StepSpec):
    """Migrate the ranges of a managed or malloc buffer now. Asynchronous in the stream unless `wait`."""

    verb: ClassVar[str] = "prefetch"
    tells: ClassVar[tuple[str, ...]] = ("buffer", "to")
    takes_stream: ClassVar[bool] = True

    buffer: str = Field(description="the buffer to move")
    to: str = Field(description="gpu0, gpu1, ... or cpu")
    size: Size | None = Field(default=None, gt=0, description="bytes; default: to the end of the buffer")
    offset: Size | None = Field(default=None, description="first byte; default: the start")
    wait: bool = Field(default=False, description="the thread waits for the end")

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        operation = thread.hip.prefetch(
            thread, self.buffer, to=self.to, offset=self.offset, size=self.size, stream=step.stream
        )
        step.ends_with(operation)
        if self.wait:
            yield from thread.wait_for(operation)
