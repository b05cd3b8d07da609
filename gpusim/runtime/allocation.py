"""What a program allocated: the buffer behind a name."""

from __future__ import annotations

from enum import StrEnum

from gpusim.errors import SimulatedFailure
from gpusim.linux.address_space import Vma


class Allocator(StrEnum):
    """Who allocates a buffer. The words of the scenario language."""

    MALLOC = "malloc"
    MMAP = "mmap"
    HEAP = "heap"
    STACK = "stack"
    HIP_MALLOC = "hipMalloc"
    HIP_MALLOC_MANAGED = "hipMallocManaged"
    HIP_HOST_MALLOC = "hipHostMalloc"
    HSA_POOL = "hsa_pool"
    MANAGED_GLOBAL = "managed_global"


#: memory of one GPU: a KFD buffer object in its VRAM
IN_VRAM = frozenset({Allocator.HIP_MALLOC, Allocator.HSA_POOL})
#: memory that the C library or the kernel gives; no GPU has to be there
OF_THE_HOST = frozenset({Allocator.MALLOC, Allocator.MMAP, Allocator.HEAP, Allocator.STACK})
#: registered as SVM ranges when it is allocated
MANAGED = frozenset({Allocator.HIP_MALLOC_MANAGED, Allocator.MANAGED_GLOBAL})
#: the initial heap and stack, which the driver keeps in host memory
KEPT_IN_PLACE = frozenset({Allocator.HEAP, Allocator.STACK})


class FileMapping(StrEnum):
    """How a file is mapped. The words of the scenario language."""

    READ_ONLY = "read_only"  # PROT_READ
    SHARED = "shared"  # PROT_READ and PROT_WRITE, MAP_SHARED: stores go to the file
    PRIVATE = "private"  # the same with MAP_PRIVATE: stores make copies


class Allocation:
    """A live buffer. `gpu` is the device that holds it, for hipMalloc.

    `user_pages` are those of its user pointers (hipHostRegister), which count against KFD's limit.
    """

    __slots__ = ("allocator", "gpu", "name", "size", "user_pages", "vma")

    def __init__(self, name: str, size: int, allocator: Allocator, gpu: int, vma: Vma) -> None:
        self.name = name
        self.size = size
        self.allocator = allocator
        self.gpu = gpu
        self.vma = vma
        self.user_pages = 0

    @property
    def is_svm(self) -> bool:
        """Does the driver manage it in SVM ranges?"""
        return self.allocator in OF_THE_HOST or self.allocator in MANAGED

    def slice(self, offset: int | None, size: int | None) -> tuple[int, int]:
        """First byte and size of a part. Raises SimulatedFailure `hip_error` when it leaves the buffer."""
        first = offset or 0
        length = self.size - first if size is None else size
        if length <= 0 or first + length > self.size:
            raise SimulatedFailure(
                "hip_error",
                f"hipErrorInvalidValue: bytes {first} to {first + length} leave buffer {self.name!r} of "
                f"{self.size} bytes",
            )
        return first, length

    def pages(self, first: int, size: int) -> tuple[int, int]:
        """First and last virtual page of a part."""
        return self.vma.first + (first >> 12), self.vma.first + ((first + size - 1) >> 12)
