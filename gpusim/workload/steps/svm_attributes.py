"""svm_attributes: hsa_amd_svm_attributes_set, the attributes of the driver themselves."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.runtime.advice import Access
from gpusim.spec import Size
from gpusim.workload.steps.base import BufferPart, StepProcess

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class SvmFlag(StrEnum):
    """The flags of KFD_IOCTL_SVM_ATTR_SET_FLAGS."""

    HOST_ACCESS = "host_access"
    COHERENT = "coherent"
    HIVE_LOCAL = "hive_local"
    GPU_RO = "gpu_ro"
    GPU_EXEC = "gpu_exec"
    GPU_READ_MOSTLY = "gpu_read_mostly"
    GPU_ALWAYS_MAPPED = "gpu_always_mapped"
    EXT_COHERENT = "ext_coherent"


class SvmAttributes(BufferPart):
    """hsa_amd_svm_attributes_set: the attributes of the driver themselves."""

    verb: ClassVar[str] = "svm_attributes"

    preferred_location: str | None = Field(default=None, description="gpu0, gpu1, ..., cpu or undefined")
    prefetch_location: str | None = Field(default=None, description="gpu0, gpu1, ... or cpu")
    granularity: Size | None = Field(default=None, gt=0, description="migration granule")
    access: dict[str, Access] = Field(default_factory=dict, description="GPU -> what it may do")
    set_flags: tuple[SvmFlag, ...] = Field(default=(), description="flags to set")
    clear_flags: tuple[SvmFlag, ...] = Field(default=(), description="flags to clear")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation, part = self.locate(thread, step)
        yield from thread.hip.set_attributes(
            thread,
            allocation,
            part,
            preferred=self.preferred_location,
            prefetch=self.prefetch_location,
            granularity=self.granularity,
            access=self.access,
            set_flags=[flag.value for flag in self.set_flags],
            clear_flags=[flag.value for flag in self.clear_flags],
        )
