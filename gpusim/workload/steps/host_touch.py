"""host_touch: a CPU thread reads or writes a buffer from start to end."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, model_validator

from gpusim.spec import ATOMIC_BYTES, Size
from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class HostAccess(StrEnum):
    """What a CPU thread does to each byte."""

    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"


class HostTouch(StepSpec):
    """Touch a buffer from the CPU: populates pages, and pulls pages back from a GPU granule by granule."""

    verb: ClassVar[str] = "host_touch"
    tells: ClassVar[tuple[str, ...]] = ("buffer",)

    buffer: str = Field(description="the buffer to touch")
    access: HostAccess = Field(
        default=HostAccess.WRITE,
        description="read or write; atomic: each element of 8 bytes is updated, as a GPU may do at the same time",
    )
    times: int | None = Field(
        default=None, gt=0, description="access atomic: passes over the part; default: 1"
    )
    size: Size | None = Field(
        default=None, gt=0, description="bytes touched; default: to the end of the buffer"
    )
    offset: Size | None = Field(default=None, description="first byte touched; default: the start")

    @model_validator(mode="after")
    def _times_of_atomics(self) -> HostTouch:
        if self.times is not None and self.access is not HostAccess.ATOMIC:
            raise ValueError("`times` goes with `access: atomic`")
        return self

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation = thread.hip.allocation(self.buffer)
        first, size = allocation.slice(self.offset, self.size)
        step.bytes = size * (self.times or 1)
        if self.access is HostAccess.ATOMIC:
            step.facts = {"atomics": max(1, size // ATOMIC_BYTES) * (self.times or 1)}
            yield from thread.hip.host_atomics(thread, allocation, first, size, times=self.times or 1)
            return
        yield from thread.hip.host_touch(
            thread, allocation, first, size, write=self.access is HostAccess.WRITE
        )
