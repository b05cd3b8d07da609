"""memcpy: hipMemcpy or hipMemcpyAsync between two buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.spec import Size
from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Memcpy(StepSpec):
    """Copy between buffers; pinned or pageable follows from the host buffer's allocator."""

    verb: ClassVar[str] = "memcpy"
    tells: ClassVar[tuple[str, ...]] = ("dst", "src")
    takes_stream: ClassVar[bool] = True

    dst: str = Field(description="buffer written")
    src: str = Field(description="buffer read")
    size: Size | None = Field(default=None, gt=0, description="bytes copied; default: the smaller buffer")
    src_offset: Size | None = Field(default=None, description="first byte read; default: the start")
    dst_offset: Size | None = Field(default=None, description="first byte written; default: the start")
    async_: bool = Field(default=False, alias="async", description="true: hipMemcpyAsync, the thread goes on")

    def buffers(self) -> dict[str, str]:
        return {"dst": self.dst, "src": self.src}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        operation = thread.hip.memcpy(
            thread,
            self.dst,
            self.src,
            dst_offset=self.dst_offset,
            src_offset=self.src_offset,
            size=self.size,
            stream=step.stream,
        )
        step.ends_with(operation)
        if not self.async_:
            yield from thread.wait_for(operation)
