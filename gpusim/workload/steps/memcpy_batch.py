"""memcpy_batch: hipMemcpyBatchAsync."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.spec import Size, Spec
from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class CopyItem(Spec):
    """One copy of a batch, or `count` of them, one behind the other."""

    dst: str = Field(description="buffer written")
    src: str = Field(description="buffer read")
    size: Size | None = Field(
        default=None, gt=0, description="bytes of one copy; default: what fits in both, over `count`"
    )
    count: int = Field(default=1, gt=0, description="copies of this size")
    src_offset: Size | None = Field(default=None, description="first byte read; default: the start")
    dst_offset: Size | None = Field(default=None, description="first byte written; default: the start")


class MemcpyBatch(StepSpec):
    """Many copies in one call: small ones share the launch of their kernels."""

    verb: ClassVar[str] = "memcpy_batch"
    takes_stream: ClassVar[bool] = True

    copies: tuple[CopyItem, ...] = Field(min_length=1, description="the copies")
    wait: bool = Field(default=True, description="the thread waits for the end")

    def buffers(self) -> dict[str, str]:
        named = {f"copies[{i}].dst": copy.dst for i, copy in enumerate(self.copies)}
        return named | {f"copies[{i}].src": copy.src for i, copy in enumerate(self.copies)}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        from gpusim.runtime.batch_copies import (
            Entry,
        )  # not at import time: reading a scenario loads no runtime

        entries = [
            Entry(copy.dst, copy.src, copy.size, copy.count, copy.dst_offset, copy.src_offset)
            for copy in self.copies
        ]
        operation = thread.hip.memcpy_batch(thread, entries, stream=step.stream)
        step.ends_with(operation)
        if self.wait:
            yield from thread.wait_for(operation)
