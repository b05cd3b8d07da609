"""Builds drives, block devices, the page cache and the files of a machine."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.engine.environment import Environment
from gpusim.engine.express import Express
from gpusim.engine.flows import Hop, Network
from gpusim.errors import InputError, Problem
from gpusim.hardware.drive import Drive
from gpusim.hardware.drive_spec import DriveSpec
from gpusim.hardware.fabric import Fabric
from gpusim.linux.address_space import HostMemory
from gpusim.linux.block_device import BlockDevice, Disk, Stack
from gpusim.linux.file import File, Inode, Volume
from gpusim.linux.file_io import PAGE_CACHE_LINK, FileIo
from gpusim.linux.host_spec import HostSpec
from gpusim.linux.page_cache import PageCache
from gpusim.linux.stack_spec import StackKind, StackSpec
from gpusim.machine import paced
from gpusim.scenario.resolve import ResolvedSystem, build
from gpusim.scenario.schema import File as Declared
from gpusim.scenario.schema import Process
from gpusim.scenario.words import FileSystem
from gpusim.spec import PAGE_BYTES

_WITH_FILES = "a node with drives (`gpusim profiles` lists them), or `io` in the CPU profile"


class Storage:
    """The storage of a node. `file_io` is None where the CPU profile has no numbers for it."""

    def __init__(
        self,
        system: ResolvedSystem,
        *,
        env: Environment,
        network: Network,
        fabric: Fabric,
        host: HostMemory,
        host_spec: HostSpec,
        paces: Sequence[float] | None = None,
        linked: bool = False,
    ) -> None:
        """`linked`: spans are recorded."""
        self.express = Express(network)
        self.drives = {
            name: Drive(
                paced.drive(build(DriveSpec, tree, f"drive.{name}"), paces),
                name=name,
                numa=fabric.place_of_drive(name)[1],
                env=env,
                network=network,
                express=self.express,
            )
            for name, tree in system.drives.items()
        }
        self.devices: dict[str, BlockDevice] = {
            name: Disk(drive, fabric) for name, drive in self.drives.items()
        }
        self._volumes: dict[str, Volume] = {}
        self.link_names = [link for drive in self.drives.values() for link in drive.links]
        self.memory_names = [fabric.memory_of(numa) for numa in range(fabric.numa_nodes)]
        self._inodes: dict[tuple[str, str, str], Inode] = {}
        self.file_io: FileIo | None = None
        if host_spec.io is None:
            return
        network.add_link(PAGE_CACHE_LINK, capacity_bytes_per_s=host_spec.io.cache_bandwidth)
        self.memory_names.append(PAGE_CACHE_LINK)
        for number, tree in enumerate(system.node.get("stacks") or ()):
            self._add(network, build(StackSpec, tree, f"node.stacks[{number}]"))
        cache = PageCache(host)
        self.file_io = FileIo(
            host_spec.io,
            network=network,
            express=self.express,
            cache=cache,
            distance=fabric.distance,
            linked=linked,
        )

    def _add(self, network: Network, spec: StackSpec) -> None:
        through: tuple[Hop, ...] = ()
        if spec.kind is StackKind.DM_CRYPT and spec.rate is not None:
            link = f"{spec.name}.cpu"
            network.add_link(link, capacity_bytes_per_s=spec.rate)
            self.link_names.append(link)
            through = ((link, 1.0),)
        elif spec.kind is StackKind.LOOP:  # the backing file's pages are copied once more
            through = ((PAGE_CACHE_LINK, 1.0),)
        members = [self.devices[name] for name in spec.members]
        self.devices[spec.name] = Stack(spec.name, spec.kind, members, chunk=spec.chunk, through=through)

    def files(self, process: Process) -> dict[str, File]:
        """The files of a process. Its instances share those that they declare alike."""
        if process.files and self.file_io is None:
            message = "the CPU profile of the node has no numbers for file I/O (`io`)"
            raise InputError([Problem(message, path=f"processes.{process.label}.files", legal=_WITH_FILES)])
        return {name: self._file(process.name, name, declared) for name, declared in process.files.items()}

    def _file(self, process: str, name: str, declared: Declared) -> File:
        key = (process, name, declared.model_dump_json())
        inode = self._inodes.get(key)
        if inode is None:
            memory_only = declared.filesystem is FileSystem.TMPFS
            device = self.devices[declared.drive]
            volume = None if memory_only else self._volumes.setdefault(device.name, Volume(device.capacity))
            inode = Inode(name, declared.size, device, memory_only=memory_only, volume=volume)
            self._inodes[key] = inode
            self._fill(inode, 1.0 if memory_only else declared.cached)
        return File(
            inode,
            filesystem=declared.filesystem.value,
            mount_options=declared.mount_options,
            file_type=declared.type.value,
            supports_o_direct=declared.supports_o_direct,
            dio_offset_align=declared.dio_offset_align,
            dio_mem_align=declared.dio_mem_align,
        )

    def _fill(self, inode: Inode, share: float) -> None:
        """The first `share` of a file is in the page cache at the start."""
        pages = round(-(-inode.size // PAGE_BYTES) * share)
        if pages and self.file_io is not None:
            self.file_io.cache.insert(inode, 0, pages - 1, dirty=False)

    def settle(self) -> None:
        """Credit to the links what small transfers carried; at the end of a run."""
        self.express.settle()

    def not_modelled(self) -> list[str]:
        """What file I/O leaves out."""
        return list(_NOT_MODELLED) if self._inodes else []


_NOT_MODELLED = (
    "splitting of requests into NVMe commands, garbage collection and thermal limits of drives",
    "the two LRU lists of the page cache",
)
