"""Attributes of SVM ranges: what KFD_IOCTL_SVM_ATTR_* sets, with its defaults (`kfd_svm.md` 4.1).

Locations are numbers: a GPU of the node, CPU, or UNDEFINED. Access is kept as bits, one a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Final

CPU: Final = -1  # a location: host memory; GPUs are 0, 1, ...
UNDEFINED: Final = -2  # no location has been asked for

#: largest GRANULARITY that each layer lets through, as log2 of pages
ROCR_MOST, IOCTL_MOST, DRIVER_MOST = 18, 0x3F, 0x1B


class SvmFlag(IntFlag):
    """KFD_IOCTL_SVM_FLAG_*."""

    HOST_ACCESS = 0x01
    COHERENT = 0x02
    HIVE_LOCAL = 0x04
    GPU_RO = 0x08
    GPU_EXEC = 0x10
    GPU_READ_MOSTLY = 0x20
    GPU_ALWAYS_MAPPED = 0x40
    EXT_COHERENT = 0x80


#: what each flag does in the driver; the first three of these are stored and never tested
EFFECTS: dict[SvmFlag, str] = {
    SvmFlag.HOST_ACCESS: "stored only",
    SvmFlag.HIVE_LOCAL: "stored only: nothing in the driver tests it",
    SvmFlag.GPU_READ_MOSTLY: "stored only: the driver has no read duplication, pages move as without it",
    SvmFlag.COHERENT: "chooses the memory type of the mapping: here, how far atomics go; loads and stores take as long",
    SvmFlag.EXT_COHERENT: "keeps atomics of device scope out of caches; loads and stores take as long",
    SvmFlag.GPU_RO: "GPU page-table entries without the write bit",
    SvmFlag.GPU_EXEC: "GPU page-table entries with the execute bit",
    SvmFlag.GPU_ALWAYS_MAPPED: "an invalidation stops the queues instead of unmapping, as with XNACK off",
}
MEMORY_TYPE = SvmFlag.COHERENT | SvmFlag.EXT_COHERENT
STORED_ONLY = SvmFlag.HOST_ACCESS | SvmFlag.HIVE_LOCAL | SvmFlag.GPU_READ_MOSTLY


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of one range. `access` and `in_place` have bit g set for GPU g."""

    access: int
    granule_pages: int
    in_place: int = 0
    preferred: int = UNDEFINED
    prefetch: int = UNDEFINED
    flags: SvmFlag = SvmFlag.HOST_ACCESS | SvmFlag.COHERENT

    def accessible(self, gpu: int) -> Attributes:
        """ACCESS: data migrates to the GPU when it faults."""
        return replace(self, access=self.access | 1 << gpu, in_place=self.in_place & ~(1 << gpu))

    def mapped_in_place(self, gpu: int) -> Attributes:
        """ACCESS_IN_PLACE: the GPU maps data where it is."""
        return replace(self, access=self.access & ~(1 << gpu), in_place=self.in_place | 1 << gpu)

    def inaccessible(self, gpu: int) -> Attributes:
        """NO_ACCESS: neither bit. A mapping that exists stays."""
        return replace(self, access=self.access & ~(1 << gpu), in_place=self.in_place & ~(1 << gpu))

    def with_flags(self, add: SvmFlag, clear: SvmFlag) -> Attributes:
        """SET_FLAGS and CLR_FLAGS."""
        return replace(self, flags=(self.flags | add) & ~clear)

    def has(self, flag: SvmFlag) -> bool:
        return flag in self.flags

    @property
    def gpus(self) -> int:
        """Bits of all GPUs that may use it."""
        return self.access | self.in_place


def initial(*, xnack: bool, gpus: int, granule_pages: int, preferred: int = UNDEFINED) -> Attributes:
    """Of a new range: with XNACK on all GPUs of the process (bits) have ACCESS, with XNACK off none has until set."""
    return Attributes(access=gpus if xnack else 0, granule_pages=granule_pages, preferred=preferred)


def clamped_granule(pages: int) -> int:
    """Pages of a migration granule as ROCr and the driver let it through: a power of two, at most 1 GiB."""
    return 1 << min(max(pages, 1).bit_length() - 1, ROCR_MOST)


def common(found: list[Attributes]) -> Attributes:
    """GET_ATTR over several ranges: what all have in common; locations that differ are undefined."""
    first, *others = found
    for other in others:
        first = Attributes(
            access=first.access & other.access,
            in_place=first.in_place & other.in_place,
            granule_pages=min(first.granule_pages, other.granule_pages),
            preferred=first.preferred if first.preferred == other.preferred else UNDEFINED,
            prefetch=first.prefetch if first.prefetch == other.prefetch else UNDEFINED,
            flags=first.flags & other.flags,
        )
    return first
