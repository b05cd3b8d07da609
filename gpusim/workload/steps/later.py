"""Verbs that the language has and this version does not simulate yet: their arguments are checked in full.

Each gets a file of its own, with its behaviour, when it is simulated; it then moves to the list in
`__init__`.
"""

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from gpusim.spec import Size, Spec
from gpusim.workload.steps.base import StepSpec
from gpusim.workload.steps.step import Step


class BufferPart(StepSpec):
    """What names a buffer or a part of it."""

    buffer: str = Field(description="the buffer")
    offset: Size | None = Field(default=None, description="first byte; default: the start")
    size: Size | None = Field(default=None, gt=0, description="bytes; default: to the end of the buffer")

    def buffers(self) -> dict[str, str]:
        return {"buffer": self.buffer}


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


class Advice(StrEnum):
    """The advice of hipMemAdvise."""

    SET_READ_MOSTLY = "set_read_mostly"
    UNSET_READ_MOSTLY = "unset_read_mostly"
    SET_PREFERRED_LOCATION = "set_preferred_location"
    UNSET_PREFERRED_LOCATION = "unset_preferred_location"
    SET_ACCESSED_BY = "set_accessed_by"
    UNSET_ACCESSED_BY = "unset_accessed_by"
    SET_COARSE_GRAIN = "set_coarse_grain"
    UNSET_COARSE_GRAIN = "unset_coarse_grain"


class Advise(BufferPart):
    """hipMemAdvise."""

    verb: ClassVar[str] = "advise"

    advice: Advice = Field(description="what to advise")
    device: str = Field(default="gpu0", description="gpu0, gpu1, ... or cpu")


class Access(StrEnum):
    """What a GPU may do with a range."""

    ACCESS = "access"
    IN_PLACE = "in_place"
    NONE = "none"


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


class Munmap(BufferPart):
    """munmap: the range leaves the address space."""

    verb: ClassVar[str] = "munmap"


class Protection(StrEnum):
    """What mprotect allows."""

    NONE = "none"
    READ = "read"
    READ_WRITE = "read_write"


class Mprotect(BufferPart):
    """mprotect."""

    verb: ClassVar[str] = "mprotect"

    protection: Protection = Field(description="what stays allowed")


class Fork(StepSpec):
    """fork: the child shares pages copy-on-write, runs its steps and ends."""

    verb: ClassVar[str] = "fork"

    steps: tuple[Step, ...] = Field(default=(), description="what the child does")
    wait: bool = Field(default=True, description="the parent waits for the child's end")


class HostRegister(BufferPart):
    """hipHostRegister: pin host memory and map it on the GPUs."""

    verb: ClassVar[str] = "host_register"


class SwapOut(BufferPart):
    """The kernel swaps pages out."""

    verb: ClassVar[str] = "swap_out"


class Collapse(BufferPart):
    """khugepaged collapses base pages to huge ones."""

    verb: ClassVar[str] = "collapse"


class Compact(StepSpec):
    """The kernel compacts memory: pages move."""

    verb: ClassVar[str] = "compact"


class Kill(StepSpec):
    """SIGKILL."""

    verb: ClassVar[str] = "kill"

    process: str | None = Field(default=None, description="the process, all its ranks; default: this one")


_LATER: tuple[type[StepSpec], ...] = (
    Advise,
    Collapse,
    Compact,
    Fork,
    HostRegister,
    Kill,
    MemcpyBatch,
    Mprotect,
    Munmap,
    SvmAttributes,
    SwapOut,
)

#: verb -> its arguments
NOT_SUPPORTED_YET: dict[str, type[StepSpec]] = {step.verb: step for step in _LATER}
