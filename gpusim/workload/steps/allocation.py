"""alloc and free: allocate a declared buffer here instead of at process start, and free it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Alloc(StepSpec):
    """Allocate a buffer that the process declares. Without such a step it is allocated at process start."""

    verb: ClassVar[str] = "alloc"

    buffer: str = Field(description="the buffer to allocate")

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        step.bytes = thread.hip.declared_size(self.buffer)
        yield from thread.hip.alloc(thread, self.buffer)


class Free(StepSpec):
    """Free a buffer: hipFree or free, by its allocator."""

    verb: ClassVar[str] = "free"

    buffer: str = Field(description="the buffer to free")

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        step.bytes = thread.hip.declared_size(self.buffer)
        yield from thread.hip.free(thread, self.buffer)
