"""What the driver decides: whether it serves a fault, where the data shall be, and what it moves for that.

Pure functions of what the driver looks at, in its order (`kfd_svm.md` 2, 2.2-2.4). The simulation calls them, and so
do the tests over whole tables of cases.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from gpusim.driver.attributes import CPU, UNDEFINED
from gpusim.driver.switches import Placement

#: are two GPUs the same, or linked by xGMI in one hive?
SameHive = Callable[[int, int], bool]


class Refusal(StrEnum):
    """Why svm_range_restore_pages ends without serving a fault; the value is what it returns."""

    NO_SVM = "-EFAULT: the device has no SVM"
    NO_PROCESS = "0: the process is gone"
    DRAINING = "0: the process is being torn down"
    NO_NODE = "-EFAULT: no such KFD node"
    XNACK_OFF = "-EFAULT: XNACK is off"
    NO_MM = "0: the address space is gone"
    BEFORE_CHECKPOINT = "-EAGAIN: older than the last munmap of the range"
    NO_RANGE = "-EFAULT: no range can be made here"
    DEFERRED = "0: the range waits to be unmapped or split"
    RECENT = "0: restored less than 2 ms ago"
    NO_VMA = "0: no VMA any more"
    NOT_ALLOWED = "-EPERM: the VMA does not allow it"
    NO_ACCESS = "-EACCES: the GPU has no access to the range"

    @property
    def fatal(self) -> bool:
        """An error other than -EAGAIN: the PTE is poisoned, and the next retry kills the process."""
        return self.value.startswith("-") and not self.value.startswith("-EAGAIN")


def examine(
    *,
    has_svm: bool = True,
    process_alive: bool = True,
    draining: bool = False,
    known_node: bool = True,
    xnack: bool = True,
    mm_alive: bool = True,
    before_checkpoint: bool = False,
    range_possible: bool = True,
    deferred: bool = False,
    recent: bool = False,
    vma: bool = True,
    readable: bool = True,
    writable: bool = True,
    write: bool = False,
) -> Refusal | None:
    """Steps 1 to 14 of the restore, in order; None if the fault goes on to the placement, as by default.

    `range_possible`: there is a range, or one can be made.
    """
    if not has_svm:
        return Refusal.NO_SVM
    if not process_alive:
        return Refusal.NO_PROCESS
    if draining:
        return Refusal.DRAINING
    if not known_node:
        return Refusal.NO_NODE
    if not xnack:
        return Refusal.XNACK_OFF
    if not mm_alive:
        return Refusal.NO_MM
    if before_checkpoint:
        return Refusal.BEFORE_CHECKPOINT
    if not range_possible:
        return Refusal.NO_RANGE
    if deferred:
        return Refusal.DEFERRED
    if recent:
        return Refusal.RECENT
    if not vma:
        return Refusal.NO_VMA
    if not readable or (write and not writable):
        return Refusal.NOT_ALLOWED
    return None


def restore_location(
    gpu: int,
    *,
    preferred: int,
    access: int,
    in_place: int,
    actual: int,
    apu: bool,
    same_hive: SameHive,
    rule: Placement = Placement.KFD,
) -> int | None:
    """svm_range_best_restore_location: where the data shall be for a fault of `gpu`; None if it has no access.

    `access` and `in_place` are bits by GPU. With `preferred_is_node`, the white paper's rule, the data moves only if
    the preferred location is the faulting GPU; all else is mapped in host memory.
    """
    if apu:
        return CPU
    if rule is _PREFERRED_IS_NODE:
        return gpu if preferred == gpu else CPU
    if preferred in (gpu, CPU):
        return preferred
    if preferred != UNDEFINED and same_hive(gpu, preferred):
        return preferred
    bit = 1 << gpu
    if access & bit:
        return gpu
    if in_place & bit:
        return actual if actual != CPU and same_hive(gpu, actual) else CPU
    return None


class Move(StrEnum):
    """What a fault or a prefetch moves, given where the data shall be and where it may be."""

    NOTHING = "nothing"
    TO_VRAM = "to_vram"  # system pages to the GPU; finds nothing to collect if they are there
    THROUGH_RAM = "through_ram"  # another GPU's pages of the whole range to RAM, then to the GPU
    TO_RAM = "to_ram"


# by names of their own: to look up a member of an enum takes time, and each fault asks
NOTHING: Final = Move.NOTHING
TO_VRAM: Final = Move.TO_VRAM
THROUGH_RAM: Final = Move.THROUGH_RAM
TO_RAM: Final = Move.TO_RAM
_PREFERRED_IS_NODE: Final = Placement.PREFERRED_IS_NODE


def move(best: int, actual: int) -> Move:
    """svm_migrate_to_vram or svm_migrate_vram_to_ram, if any."""
    if best == CPU:
        return NOTHING if actual == CPU else TO_RAM
    return TO_VRAM if actual in (CPU, best) else THROUGH_RAM


def fallback(best: int, actual: int) -> Move:
    """After a failed move to VRAM: pages that still lie in another GPU come to RAM, else RAM is mapped as it is.

    `actual` is where the range may have pages after the failure. The fault succeeds all the same.
    """
    return TO_RAM if actual not in (CPU, best) else NOTHING


def prefetch_location(
    target: int, *, access: int, in_place: int, xnack: bool, apu: bool, same_hive: SameHive
) -> int:
    """svm_range_best_prefetch_location: the target, or the CPU if a GPU outside its hive maps the range."""
    if target in (CPU, UNDEFINED):
        return target
    if apu:
        return CPU
    mapping = in_place if xnack else access | in_place
    for gpu in gpus_of(mapping):
        if gpu != target and not same_hive(target, gpu):
            return CPU
    return target


def prefetch_maps(target: int, *, access: int, in_place: int, xnack: bool) -> list[int]:
    """GPUs on which a prefetch maps the range afterwards (with XNACK off: if the restore work has to run)."""
    if not xnack:
        return gpus_of(access | in_place)
    mapping = in_place
    if target >= 0:
        mapping |= access & 1 << target
    return gpus_of(mapping)


def gpus_of(bits: int) -> list[int]:
    """The GPUs whose bits are set."""
    return [gpu for gpu in range(bits.bit_length()) if bits >> gpu & 1]


class CpuFault(StrEnum):
    """What a CPU access to a page in VRAM does."""

    GRANULE_TO_RAM = "granule_to_ram"
    SIGBUS = "sigbus"
    NOTHING = "nothing"


def cpu_fault(actual: int, *, ram_left: bool) -> CpuFault:
    """svm_migrate_to_ram: one granule comes back, whatever the preferred location says."""
    if actual == CPU:
        return CpuFault.NOTHING
    return CpuFault.GRANULE_TO_RAM if ram_left else CpuFault.SIGBUS


def stops_queues(*, xnack: bool, always_mapped: bool) -> bool:
    """Does an invalidation of mapped pages stop the queues of the process, instead of unmapping?"""
    return not xnack or always_mapped
