"""The closed lists of words of the scenario language (kernels and driver switches have their own)."""

from __future__ import annotations

from enum import StrEnum


class Allocator(StrEnum):
    """How a buffer comes to be."""

    MALLOC = "malloc"
    MMAP = "mmap"  # of a file
    HEAP = "heap"  # inside the initial heap
    STACK = "stack"
    HIP_MALLOC = "hipMalloc"
    HIP_MALLOC_MANAGED = "hipMallocManaged"
    HIP_HOST_MALLOC = "hipHostMalloc"
    HSA_POOL = "hsa_pool"
    MANAGED_GLOBAL = "managed_global"  # a __managed__ variable


#: allocators whose memory belongs to one GPU
DEVICE_ALLOCATORS = frozenset({Allocator.HIP_MALLOC, Allocator.HSA_POOL})


class HugePages(StrEnum):
    """Transparent huge pages of a buffer."""

    ALWAYS = "always"
    MADVISE = "madvise"
    NEVER = "never"


class FileSystem(StrEnum):
    """What a file lies on."""

    XFS = "xfs"
    EXT4 = "ext4"
    EXT3 = "ext3"
    EXT2 = "ext2"
    BTRFS = "btrfs"
    F2FS = "f2fs"
    ZFS = "zfs"
    NFS4 = "nfs4"
    BEEGFS = "beegfs"
    TMPFS = "tmpfs"
    NONE = "none"  # no entry in the mount table


class FileType(StrEnum):
    """What `statx` says a file is."""

    REGULAR = "regular"
    BLOCK = "block"
    CHARACTER = "character"
    FIFO = "fifo"
    SOCKET = "socket"
    DIRECTORY = "directory"


class OnError(StrEnum):
    """What a process does when a call fails."""

    STOP = "stop"
    CONTINUE = "continue"


class EngineMode(StrEnum):
    """How resident stretches are simulated."""

    GROUPED = "grouped"  # wavefronts with equal work left form one job
    STEPWISE = "stepwise"  # each wavefront step by step: the reference


class ExpectKind(StrEnum):
    """What stands behind an expected value."""

    PREDICTED = "predicted"  # nothing in the model was set to meet it
    FITTED = "fitted"  # a parameter was fitted to it
    INPUT = "input"  # it is an input of the scenario


class Errno(StrEnum):
    """Errors that can be injected."""

    EAGAIN = "EAGAIN"
    EBADF = "EBADF"
    EBADFD = "EBADFD"
    EINTR = "EINTR"
    EINVAL = "EINVAL"
    EIO = "EIO"
    EMFILE = "EMFILE"
    ENODEV = "ENODEV"
    ENOMEM = "ENOMEM"
    ENOSPC = "ENOSPC"
    EREMOTEIO = "EREMOTEIO"
    HIP_ERROR = "hipError"  # the HIP runtime fails instead of the system call
