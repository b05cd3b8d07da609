"""A small storage stack for tests: drives with round numbers, one GPU's link, and threads that make calls."""

from collections.abc import Callable

from gpusim.engine.environment import Environment
from gpusim.engine.express import Express
from gpusim.engine.flows import Network
from gpusim.engine.record import Chain, Mode, Recorder
from gpusim.engine.stages import Stages, run_stages
from gpusim.errors import SimulatedFailure
from gpusim.hardware.drive import Drive
from gpusim.hardware.drive_spec import DriveSpec
from gpusim.hardware.fabric import HOST_MEMORY, Fabric
from gpusim.hardware.fabric_spec import FabricSpec
from gpusim.kinds import Kind
from gpusim.linux.address_space import HostMemory
from gpusim.linux.block_device import BlockDevice, Disk, Stack
from gpusim.linux.file import File, Inode
from gpusim.linux.file_io import PAGE_CACHE_LINK, FileIo
from gpusim.linux.io_costs import IoCosts
from gpusim.linux.page_cache import PageCache
from gpusim.linux.stack_spec import StackKind

US = 1_000_000  # ps
MS = 1000 * US
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

DRIVE = {
    "capacity": "1TB",
    "read": {"latency": "80us", "units": 8, "bandwidth": "8GB/s", "stream": "4GB/s"},
    "write": {
        "latency": "10us",
        "units": 8,
        "bandwidth": "4GB/s",
        "stream": "4GB/s",
        "cache": "64MiB",
        "sustained": "1GB/s",
    },
    "flush": "5us",
    "coupling": 0.0,
}
COSTS = {
    "syscall": "1us",
    "direct": "3us",
    "cache_read": "8GB/s",
    "cache_write": "8GB/s",
    "cache_page": "0.1us",
    "cache_bandwidth": "32GB/s",
    "readahead": "128KiB",
    "largest_request": "1MiB",
    "background_ratio": 0.1,
    "dirty_ratio": 0.2,
    "writeback": "16MiB",
    "journal": "10us",
    "journal_size": "16KiB",
}


class Rig:
    """Drives nvme0, nvme1, ... at root ports, GPU 0 behind a link of 50 GB/s, host memory of 400 GB/s."""

    def __init__(
        self,
        drives: int = 1,
        *,
        memory: int = 64 * GIB,
        fabric: object = None,
        dirty_age: object = None,
        **changes: object,
    ) -> None:
        self.env = Environment()
        self.network = Network(self.env)
        self.express = Express(self.network)
        self.network.add_link("gpu[0].pcie.h2d", capacity_bytes_per_s=50e9)
        self.network.add_link("gpu[0].pcie.d2h", capacity_bytes_per_s=50e9)
        self.network.add_link("gpu[1].pcie.h2d", capacity_bytes_per_s=50e9)
        self.network.add_link("gpu[1].pcie.d2h", capacity_bytes_per_s=50e9)
        self.network.add_link(HOST_MEMORY, capacity_bytes_per_s=400e9)
        self.network.add_link(PAGE_CACHE_LINK, capacity_bytes_per_s=32e9)
        self.fabric = Fabric(FabricSpec.model_validate(fabric or {"peer_efficiency": 1.0}), self.network)
        spec = DriveSpec.model_validate({**DRIVE, **changes})
        self.drives = [
            Drive(spec, name=f"nvme{i}", numa=0, env=self.env, network=self.network, express=self.express)
            for i in range(drives)
        ]
        self.disks: list[BlockDevice] = [Disk(drive, self.fabric) for drive in self.drives]
        self.cache = PageCache(HostMemory(memory))
        self.recorder = Recorder(Mode.SUMMARY, len(Kind))
        self.io = FileIo(
            IoCosts.model_validate({**COSTS, "dirty_age": dirty_age}),
            network=self.network,
            express=self.express,
            cache=self.cache,
            distance=self.fabric.distance,
        )

    def stack(self, kind: StackKind, *, chunk: int = 512 * KIB) -> Stack:
        """All drives put together."""
        return Stack("stack", kind, self.disks, chunk=chunk)

    def file(
        self,
        size: int = GIB,
        *,
        device: BlockDevice | None = None,
        cached: int = 0,
        filesystem: str = "xfs",
        mount_options: str | None = None,
        supports_o_direct: bool = True,
        memory_only: bool = False,
    ) -> File:
        """A file whose first `cached` bytes are in the page cache."""
        inode = Inode("file", size, device or self.disks[0], memory_only=memory_only)
        if cached:
            self.cache.insert(inode, 0, cached // 4096 - 1, dirty=False)
        return File(
            inode,
            filesystem=filesystem,
            mount_options=mount_options,
            file_type="regular",
            supports_o_direct=supports_o_direct,
            dio_offset_align=None,
            dio_mem_align=None,
        )

    def thread(self, stages: Stages, ended: Callable[[Chain], None] | None = None) -> Chain:
        """Let a thread make calls from now on; it ends when `run` has run."""
        chain = Chain(self.recorder)
        chain.time_ps = self.env.now

        def done() -> None:
            if ended is not None:
                ended(chain)

        run_stages(self.env, chain, stages, done, _raise)
        return chain

    def run(self) -> int:
        """Run everything; returns the time."""
        self.env.run_to()
        self.express.settle()
        return self.env.now

    def time(self, stages: Stages) -> tuple[int, Chain]:
        """How long some calls take from now on, and where it went."""
        begun = self.env.now
        chain = self.thread(stages)
        self.run()
        return chain.time_ps - begun, chain


def _raise(failure: SimulatedFailure) -> None:
    raise failure
