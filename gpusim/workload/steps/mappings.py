"""munmap, mprotect, host_register and host_unregister: the program changes its address space."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.linux.address_space import NO_RIGHTS, READ_ONLY, READ_WRITE
from gpusim.workload.steps.base import BufferPart, StepProcess

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Munmap(BufferPart):
    """munmap: the range leaves the address space."""

    verb: ClassVar[str] = "munmap"

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation, part = self.locate(thread, step)
        yield from thread.hip.munmap(thread, allocation, part)


class Protection(StrEnum):
    """What mprotect allows."""

    NONE = "none"
    READ = "read"
    READ_WRITE = "read_write"


_RIGHTS = {Protection.NONE: NO_RIGHTS, Protection.READ: READ_ONLY, Protection.READ_WRITE: READ_WRITE}


class Mprotect(BufferPart):
    """mprotect."""

    verb: ClassVar[str] = "mprotect"

    protection: Protection = Field(description="what stays allowed")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation, part = self.locate(thread, step)
        yield from thread.hip.mprotect(thread, allocation, part, _RIGHTS[self.protection])


class HostRegister(BufferPart):
    """hipHostRegister: pin host memory and map it on the GPUs."""

    verb: ClassVar[str] = "host_register"

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation, part = self.locate(thread, step)
        yield from thread.hip.host_register(thread, allocation, part)


class HostUnregister(BufferPart):
    """hipHostUnregister: what was registered is ordinary memory again."""

    verb: ClassVar[str] = "host_unregister"

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation, part = self.locate(thread, step)
        yield from thread.hip.host_unregister(thread, allocation, part)
