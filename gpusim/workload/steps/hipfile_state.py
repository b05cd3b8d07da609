"""What a program does with hipFile besides I/O: open and close its driver, and give up files and buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class FileDeregister(StepSpec):
    """hipFileHandleDeregister: requests for the file fail from then on. While a job uses it, it stays."""

    verb: ClassVar[str] = "file_deregister"

    file: str = Field(description="a file of the process")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.files.deregister_file(thread, self.file)


class BufferDeregister(StepSpec):
    """hipFileBufDeregister: an error while a job uses the buffer, or where it is not registered."""

    verb: ClassVar[str] = "buffer_deregister"

    buffer: str = Field(description="the buffer")

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.files.deregister_buffer(thread, self.buffer)


class DriverOpen(StepSpec):
    """hipFileDriverOpen. The first registration opens it too."""

    verb: ClassVar[str] = "hipfile_open"

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.files.open_driver(thread)


class DriverClose(StepSpec):
    """hipFileDriverClose: the last one gives up all files and buffers; requests fail until it is opened again."""

    verb: ClassVar[str] = "hipfile_close"

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.files.close_driver(thread)
