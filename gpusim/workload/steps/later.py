"""Verbs that the language has and this version does not simulate yet: their arguments are checked in full.

Each gets a file of its own, with its behaviour, when it is simulated; it then moves to the list in
`__init__`.
"""

from typing import ClassVar

from pydantic import Field

from gpusim.spec import Size, Spec
from gpusim.workload.steps.base import StepSpec


class CopyItem(Spec):
    """One copy of a batch."""

    dst: str = Field(description="buffer written")
    src: str = Field(description="buffer read")
    size: Size | None = Field(default=None, gt=0, description="bytes copied; default: the smaller buffer")
    src_offset: Size | None = Field(default=None, description="first byte read; default: the start")
    dst_offset: Size | None = Field(default=None, description="first byte written; default: the start")


class MemcpyBatch(StepSpec):
    """hipMemcpyBatchAsync: many copies in one call."""

    verb: ClassVar[str] = "memcpy_batch"
    takes_stream: ClassVar[bool] = True

    copies: tuple[CopyItem, ...] = Field(min_length=1, description="the copies")

    def buffers(self) -> dict[str, str]:
        named = {f"copies[{i}].dst": copy.dst for i, copy in enumerate(self.copies)}
        return named | {f"copies[{i}].src": copy.src for i, copy in enumerate(self.copies)}


class Kill(StepSpec):
    """SIGKILL."""

    verb: ClassVar[str] = "kill"

    process: str | None = Field(default=None, description="the process, all its ranks; default: this one")


_LATER: tuple[type[StepSpec], ...] = (
    Kill,
    MemcpyBatch,
)

#: verb -> its arguments
NOT_SUPPORTED_YET: dict[str, type[StepSpec]] = {step.verb: step for step in _LATER}
