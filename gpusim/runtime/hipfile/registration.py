"""hipFileHandleRegister and hipFileBufRegister: the facts that are kept (`hipfile.md` 1.4, 3.3).

Left out: the price of libmount's look-up, and registering a descriptor of Windows or of a file system in user space.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gpusim.errors import CallError
from gpusim.runtime.hipfile import codes

_NOT_REPORTED = 4096  # bytes: alignment where the kernel does not report one
#: descriptors of a registered file: one with and one without O_DIRECT
DESCRIPTORS = 2


class MemoryType(StrEnum):
    """What HIP says of a pointer."""

    DEVICE = "device"
    HOST = "host"
    MANAGED = "managed"
    UNIFIED = "unified"
    ARRAY = "array"
    UNREGISTERED = "unregistered"


class FileFacts(Protocol):
    """What the kernel says of a file. `type` and `filesystem` are words of the scenario language."""

    @property
    def type(self) -> str: ...
    @property
    def filesystem(self) -> str: ...
    @property
    def mount_options(self) -> str | None: ...
    @property
    def supports_o_direct(self) -> bool: ...
    @property
    def dio_offset_align(self) -> int | None: ...
    @property
    def dio_mem_align(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What registration found out. Alignments are in bytes; 0 refuses direct I/O."""

    direct: bool  # a descriptor with O_DIRECT exists
    regular: bool
    block: bool
    ordered_ext4: bool
    xfs: bool
    offset_align: int
    mem_align: int


def register_file(facts: FileFacts, *, reopened: bool = True) -> FileRecord:
    """Ask statx and the mount table, and open the second descriptor; `reopened`: that was not refused with EINVAL.

    The client's own flags do not matter: there is one descriptor with O_DIRECT and one without, unless the reopen with
    O_DIRECT fails with EINVAL.
    """
    direct = reopened and facts.supports_o_direct
    if direct:
        offset_align = _or_default(facts.dio_offset_align)
        mem_align = _or_default(facts.dio_mem_align)
    else:
        offset_align = mem_align = 0
    return FileRecord(
        direct=direct,
        regular=facts.type == "regular",
        block=facts.type == "block",
        ordered_ext4=facts.filesystem == "ext4" and journal_mode(facts.mount_options) == "ordered",
        xfs=facts.filesystem == "xfs",
        offset_align=offset_align,
        mem_align=mem_align,
    )


def _or_default(reported: int | None) -> int:
    return _NOT_REPORTED if reported is None else reported


def journal_mode(options: str | None) -> str:
    """The value of the mount option `data`; ordered where there is none, as for ext4."""
    mode = "ordered"
    for option in (options or "").split(","):
        key, _, value = option.strip().partition("=")
        if key == "data":
            mode = value
    return mode


@dataclass(frozen=True, slots=True)
class BufferRecord:
    """Memory that a request names: found among the registered buffers, or asked of HIP."""

    address: int  # of its first byte
    length: int
    memory: MemoryType
    gpu: int  # number of the GPU in the node
    registered: bool = True


def look_up(buffer: BufferRecord) -> BufferRecord:
    """The buffer of a request or a registration. Raises CallError for memory that is not a device's."""
    if buffer.memory is not MemoryType.DEVICE:
        raise CallError(codes.MEMORY_TYPE)
    return buffer
