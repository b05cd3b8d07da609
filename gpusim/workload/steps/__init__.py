"""The verbs of the scenario language: one file each, listed here."""

from __future__ import annotations

from gpusim.workload.steps.advise import Advise
from gpusim.workload.steps.allocation import Alloc, Free
from gpusim.workload.steps.base import StepSpec
from gpusim.workload.steps.control import Barrier, Parallel, Repeat, Sleep
from gpusim.workload.steps.drop_caches import DropCaches
from gpusim.workload.steps.events import Record, Synchronize, Wait
from gpusim.workload.steps.files import (
    BufferRegister,
    FileBatch,
    FileRead,
    FileRegister,
    FileWrite,
)
from gpusim.workload.steps.fork import Fork
from gpusim.workload.steps.hipfile_state import BufferDeregister, DriverClose, DriverOpen, FileDeregister
from gpusim.workload.steps.host_touch import HostTouch
from gpusim.workload.steps.kill import Kill
from gpusim.workload.steps.launch import Launch
from gpusim.workload.steps.mappings import HostRegister, HostUnregister, Mprotect, Munmap
from gpusim.workload.steps.memcpy import Memcpy
from gpusim.workload.steps.memcpy_batch import MemcpyBatch
from gpusim.workload.steps.memset import Memset
from gpusim.workload.steps.prefetch import Prefetch
from gpusim.workload.steps.reclaim import Collapse, Compact, SwapOut
from gpusim.workload.steps.set_xnack import SetXnack
from gpusim.workload.steps.step import Step
from gpusim.workload.steps.svm_attributes import SvmAttributes

_SUPPORTED: tuple[type[StepSpec], ...] = (
    Advise,
    Collapse,
    Compact,
    Fork,
    HostRegister,
    HostUnregister,
    Mprotect,
    Munmap,
    SvmAttributes,
    SwapOut,
    Alloc,
    Barrier,
    DropCaches,
    BufferDeregister,
    BufferRegister,
    DriverClose,
    DriverOpen,
    FileBatch,
    FileDeregister,
    FileRead,
    FileRegister,
    FileWrite,
    Free,
    HostTouch,
    Kill,
    Launch,
    Memcpy,
    MemcpyBatch,
    Memset,
    Parallel,
    Prefetch,
    Record,
    Repeat,
    SetXnack,
    Sleep,
    Synchronize,
    Wait,
)

#: verb -> its arguments and behaviour
STEPS: dict[str, type[StepSpec]] = {step.verb: step for step in _SUPPORTED}

__all__ = ["STEPS", "Step", "StepSpec"]
