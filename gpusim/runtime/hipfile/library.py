"""hipFile in one process: what is registered, its configuration, and what its requests share (`hipfile.md` 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from gpusim.driver.ais import Ais
from gpusim.engine.environment import Environment
from gpusim.engine.mutex import Mutex
from gpusim.engine.server import Server
from gpusim.engine.stages import Stages
from gpusim.errors import CallError
from gpusim.kinds import Kind
from gpusim.linux.file import File
from gpusim.linux.file_io import FileIo
from gpusim.linux.library_costs import LibraryCosts
from gpusim.runtime.allocation import Allocation, Allocator
from gpusim.runtime.hipfile import codes
from gpusim.runtime.hipfile.config import Configuration
from gpusim.runtime.hipfile.faults import FaultPlace, Injector
from gpusim.runtime.hipfile.pool import Pool
from gpusim.runtime.hipfile.registration import (
    DESCRIPTORS,
    BufferRecord,
    FileRecord,
    MemoryType,
    look_up,
    register_file,
)
from gpusim.runtime.hipfile.statistics import Statistics
from gpusim.runtime.io_log import IoLog
from gpusim.spec import PAGE_BYTES

#: what ends the names of its one thread for host functions and of its pool
HOST_FUNCTIONS, POOL = "host_functions", "hipfile_pool"

_MEMORY: Mapping[Allocator, MemoryType] = {
    Allocator.HIP_MALLOC: MemoryType.DEVICE,
    Allocator.HSA_POOL: MemoryType.DEVICE,
    Allocator.HIP_HOST_MALLOC: MemoryType.HOST,
    Allocator.HIP_MALLOC_MANAGED: MemoryType.MANAGED,
    Allocator.MANAGED_GLOBAL: MemoryType.MANAGED,
}


class Charged(Protocol):
    """Who keeps count of its own requests for a while."""

    def charge(self) -> None:
        """Tell all of them."""
        ...


class HipFile:
    """The library's state. `host_functions` is held by the host function that runs: HIP has one thread for them.

    Left out: the library's own reader-writer lock, which only registrations hold exclusively. A job holds its files and
    its buffer from its begin to its end.
    """

    def __init__(
        self,
        *,
        env: Environment,
        process: str,
        number: int,
        config: Configuration,
        costs: LibraryCosts,
        ais: Ais,
        kernel: FileIo,
        files: Mapping[str, File],
        injector: Injector,
        log: IoLog,
        pool_threads: int,
        patched_pool: bool,
        open_files: int,
        wait_value: bool,
    ) -> None:
        self.env = env
        self.process = process
        self.number = number
        self.config = config
        self.costs = costs
        self.ais = ais
        self.kernel = kernel
        self.wait_value = wait_value  # streams can wait for a value in memory
        self.open_files = open_files  # descriptors that the process may have
        self.files = files
        self.injector = injector
        self.log = log
        self.statistics = Statistics(config)
        self.host_functions = Mutex(env, f"{process}.{HOST_FUNCTIONS}")
        self.host_function_row = 0  # the last span of the one that ran last
        self.monitor = Server(env, f"{process}.hipfile_monitor")  # frees pinned buffers
        #: are submitted batches carried out? Not by old revisions, unless they were patched to
        self.batch_runs = config.revision.batch_runs or patched_pool
        self.pool = Pool(env, f"{process}.{POOL}", pool_threads)
        self.started: set[int] = set()  # threads that have made a fast-path request
        self.clients: dict[Charged, None] = {}  # those at work
        self.users = 0  # of the driver: opened implicitly by the first registration
        self.records: dict[str, FileRecord] = {}
        self.given_up: set[str] = (
            set()
        )  # files that the program has deregistered: jobs do not register them again
        self.held: Counter[object] = Counter()  # jobs at work with a file (by name) or a buffer
        self._buffers: set[Allocation] = set()

    def settle(self) -> None:
        """Bring all counts up to now."""
        for client in self.clients:
            client.charge()

    def register_file(self, name: str, *, opened_direct: bool) -> Stages:
        """hipFileHandleRegister. Raises CallError for a file that is registered, or cannot be opened so."""
        file = self.files[name]
        if opened_direct and not file.supports_o_direct:
            raise CallError("EINVAL")  # open() itself
        yield Kind.IO_SUBMIT, self.costs.register_file
        if name in self.records:
            raise CallError(codes.ALREADY_REGISTERED)
        if DESCRIPTORS * (len(self.records) + 1) > self.open_files:
            raise CallError(self.config.revision.no_descriptor)
        self.records[name] = register_file(file, reopened=self._reopened(name))
        self.given_up.discard(name)
        self.users = max(self.users, 1)
        self.statistics.file_registrations += 1

    def _reopened(self, name: str) -> bool:
        """Is there a second descriptor? Raises CallError where the registration fails."""
        try:
            self.injector.limit(FaultPlace.STATX, name, 0)
        except CallError:
            raise CallError(codes.INTERNAL) from None
        try:
            self.injector.limit(FaultPlace.REOPEN, name, 0)
        except CallError as error:
            if error.code == "EINVAL":
                return False
            failed = self.config.revision.no_descriptor if error.code == "EMFILE" else codes.INTERNAL
            raise CallError(failed) from None
        return True

    def register_buffer(self, allocation: Allocation) -> Stages:
        """hipFileBufRegister. A failing one still opens the driver."""
        self.users = max(self.users, 1)
        yield Kind.IO_SUBMIT, self.costs.register_buffer
        look_up(self.buffer(allocation))
        self._buffers.add(allocation)
        self.statistics.buffer_registrations += 1

    def deregister_file(self, name: str) -> Stages:
        """hipFileHandleDeregister, which returns nothing: a file that a job holds stays registered."""
        yield Kind.IO_SUBMIT, self.costs.call + self.kernel.costs.syscall  # the second descriptor is closed
        if name in self.records and not self.held[name]:
            del self.records[name]
            self.given_up.add(name)

    def deregister_buffer(self, allocation: Allocation) -> Stages:
        """hipFileBufDeregister. Raises CallError."""
        yield Kind.IO_SUBMIT, self.costs.call
        if not self.users:
            raise CallError(codes.DRIVER_CLOSING)
        if allocation not in self._buffers:
            raise CallError(codes.MEMORY_NOT_REGISTERED)
        if self.held[allocation]:
            raise CallError(codes.INTERNAL)
        self._buffers.discard(allocation)

    def open_driver(self) -> Stages:
        """hipFileDriverOpen: one user more."""
        yield Kind.IO_SUBMIT, self.costs.call
        self.users += 1

    def close_driver(self) -> Stages:
        """hipFileDriverClose: the last one clears all files and buffers. Raises CallError where it is not open."""
        yield Kind.IO_SUBMIT, self.costs.call + len(self.records) * self.kernel.costs.syscall
        if not self.users:
            raise CallError(codes.DRIVER_CLOSING)
        self.users -= 1
        if not self.users:
            self.given_up |= self.records.keys()
            self.records.clear()
            self._buffers.clear()

    def hold(self, *what: object) -> None:
        """A job begins to use files and a buffer."""
        self.held.update(what)

    def let_go(self, *what: object) -> None:
        """It has ended."""
        self.held.subtract(what)

    def record(self, name: str) -> FileRecord:
        """What registration found out about a file. Raises CallError for one that is not registered."""
        if not self.users:
            raise CallError("EINVAL")
        found = self.records.get(name)
        if found is None:
            raise CallError(codes.NOT_REGISTERED)
        return found

    def buffer(self, allocation: Allocation) -> BufferRecord:
        """What HIP, or the registration, says of a buffer."""
        return BufferRecord(
            address=allocation.vma.first * PAGE_BYTES,
            length=allocation.size,
            memory=_MEMORY.get(allocation.allocator, MemoryType.UNREGISTERED),
            gpu=allocation.gpu,
            registered=allocation in self._buffers,
        )
