"""Files: their facts as `statx` and the mount table tell them, and what the kernel keeps of them in memory."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from gpusim.linux.block_device import BlockDevice, Stack
from gpusim.linux.page_cache import Block
from gpusim.linux.stack_spec import StackKind

_EXT = ("ext4", "ext3")
#: what pread and pwrite say of what is no file with bytes at offsets
_NO_BYTES = {"directory": "EISDIR", "fifo": "ESPIPE", "socket": "ESPIPE"}
_JOURNALED = ("ext4", "ext3", "xfs")


class Journal(StrEnum):
    """How ext3 and ext4 order data and metadata (mount option `data=`)."""

    ORDERED = "ordered"
    JOURNAL = "journal"
    WRITEBACK = "writeback"


class Mapping(Protocol):
    """Who maps pages of a file, and is told what the page cache does with them."""

    @property
    def pinned(self) -> bool:
        """Do its pages have to stay?"""
        ...

    def mapped(self, first: int, last: int) -> int:
        """A mask of the pages first..last of the file that are mapped."""
        ...

    def lost(self, first: int, last: int) -> None:
        """Pages first..last of the file leave memory."""
        ...

    def cleaned(self, first: int, last: int) -> None:
        """Pages first..last of the file are on their way to the drive."""
        ...


class Volume:
    """A device that files lie on: its size, and what they take of it (bytes)."""

    __slots__ = ("capacity", "used")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0


class Inode:
    """What the kernel keeps of a file: length, pages in memory, and what is not on the drive yet.

    All descriptors of all ranks of a process share it. `cached` and `dirty` count pages; `writing` the bytes that
    are on their way to the drive, and `waiting` who is to be told when they are there.
    """

    __slots__ = (
        "cached",
        "device",
        "dirty",
        "dirty_blocks",
        "dirty_since_ps",
        "extended",
        "mappings",
        "memory_only",
        "name",
        "size",
        "streams",
        "volume",
        "waiting",
        "writing",
    )

    def __init__(
        self,
        name: str,
        size: int,
        device: BlockDevice,
        *,
        memory_only: bool = False,
        volume: Volume | None = None,
    ) -> None:
        self.name = name
        self.volume = volume  # None: it has no end, as tmpfs, whose room is that of memory
        if volume is not None:
            volume.used += size
        self.size = size
        self.device = device
        self.memory_only = memory_only  # tmpfs: its pages are the file
        self.cached = 0
        self.dirty = 0
        self.dirty_blocks: dict[int, Block] = {}  # by index
        self.dirty_since_ps = -1  # -1: it is clean
        self.extended = False  # its length has changed since the last journal commit
        self.mappings: list[Mapping] = []  # of all processes
        self.writing = 0
        self.waiting: list[Callable[[], None]] = []
        self.streams: dict[int, Reader] = {}  # by the page that he will ask for next


class Ahead:
    """Pages first..last are being read before anybody asks for them."""

    __slots__ = ("alone_end_ps", "done", "first", "last", "waiting")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.done = False
        self.alone_end_ps = 0  # when it would be there with nobody else at the drive, where that is recorded
        self.waiting: list[Callable[[], None]] = []

    def when_done(self, call: Callable[[], None]) -> None:
        if self.done:
            call()
        else:
            self.waiting.append(call)


class Reader:
    """Somebody who reads a file from one page to the next, and the windows that are on their way for him."""

    __slots__ = ("windows",)

    def __init__(self) -> None:
        self.windows: list[Ahead] = []


class File:
    """One declared file of a process. Words are those of the scenario."""

    __slots__ = (
        "dio_mem_align",
        "dio_offset_align",
        "filesystem",
        "inode",
        "mount_options",
        "name",
        "no_bytes",
        "supports_o_direct",
        "type",
    )

    def __init__(
        self,
        inode: Inode,
        *,
        filesystem: str,
        mount_options: str | None,
        file_type: str,
        supports_o_direct: bool,
        dio_offset_align: int | None,
        dio_mem_align: int | None,
    ) -> None:
        self.inode = inode
        self.name = inode.name
        self.filesystem = filesystem
        self.mount_options = mount_options
        self.type = file_type
        self.no_bytes = _NO_BYTES.get(
            file_type
        )  # the error of reading and writing, where there is nothing to
        self.supports_o_direct = supports_o_direct
        self.dio_offset_align = dio_offset_align
        self.dio_mem_align = dio_mem_align

    @property
    def size(self) -> int:
        """Its length now."""
        return self.inode.size

    @property
    def device(self) -> BlockDevice:
        return self.inode.device

    @property
    def pci(self) -> str | None:
        """The PCI device behind it, as far as the kernel finds one."""
        return None if self.inode.memory_only else self.device.pci

    @property
    def numa(self) -> int:
        """The socket of its (first) drive."""
        return self.device.drives[0].numa

    @property
    def lvm(self) -> bool:
        """Does it lie on LVM whose members are all local drives?"""
        device = self.device
        return (
            isinstance(device, Stack)
            and device.kind is StackKind.LVM
            and all(member.pci is not None for member in device.members)
        )

    @property
    def journal(self) -> Journal | None:
        """The journal mode of ext3 and ext4; None for other file systems."""
        if self.filesystem not in _EXT:
            return None
        options = (self.mount_options or "").split(",")
        data = next(
            (option.removeprefix("data=") for option in options if option.startswith("data=")), "ordered"
        )
        return Journal(data) if data in list(Journal) else Journal.WRITEBACK

    @property
    def commits(self) -> bool:
        """Does a change of its length go through a journal or log?"""
        return self.filesystem in _JOURNALED
