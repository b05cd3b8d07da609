"""What every step of a host thread has in common."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from gpusim.spec import Size, Spec

if TYPE_CHECKING:
    from gpusim.runtime.allocation import Allocation
    from gpusim.workload.program import HostThread, StepRun

#: what a step's behaviour yields: events of the engine that the thread waits for
StepProcess = Generator[Any, Any, None]


class StepSpec(Spec):
    """Arguments of one verb, and what it does when a host thread reaches it."""

    verb: ClassVar[str]
    takes_stream: ClassVar[bool] = False  # may the step name a stream?
    tells: ClassVar[tuple[str, ...]] = ()  # arguments that reports of the step repeat

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        """Do it. The step ends when this returns, or when the operation given to `step.ends_with` ends."""
        raise NotImplementedError  # pragma: no cover

    def buffers(self) -> dict[str, str]:
        """Buffers that the step names: argument -> buffer, for the reference check."""
        return {}


class BufferPart(StepSpec):
    """What names a buffer or a part of it."""

    buffer: str = Field(description="the buffer")
    offset: Size | None = Field(default=None, description="first byte; default: the start")
    size: Size | None = Field(default=None, gt=0, description="bytes; default: to the end of the buffer")

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def locate(self, thread: HostThread, step: StepRun) -> tuple[Allocation, tuple[int, int]]:
        """The allocation, and first byte and size of the part of it; `step` is credited with that size."""
        allocation = thread.hip.allocation(self.buffer)
        part = allocation.slice(self.offset, self.size)
        step.bytes = part[1]
        return allocation, part
