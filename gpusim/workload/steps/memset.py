"""memset: hipMemset on device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.spec import Size
from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Memset(StepSpec):
    """Set a buffer from the GPU with a fill kernel; touches pages as a kernel does."""

    verb: ClassVar[str] = "memset"
    tells: ClassVar[tuple[str, ...]] = ("buffer",)
    takes_stream: ClassVar[bool] = True

    buffer: str = Field(description="the buffer to set")
    size: Size | None = Field(default=None, gt=0, description="bytes set; default: to the end of the buffer")
    gpu: str = Field(default="gpu0", description="the GPU that does it")
    async_: bool = Field(default=False, alias="async", description="true: hipMemsetAsync, the thread goes on")

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        operation = thread.hip.memset(thread, self.buffer, size=self.size, gpu=self.gpu, stream=step.stream)
        step.ends_with(operation)
        if not self.async_:
            yield from thread.wait_for(operation)
