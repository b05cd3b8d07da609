"""HIP as one process sees it: allocations, streams and events. Copies, prefetch and launches are beside it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gpusim.driver.attributes import UNDEFINED
from gpusim.driver.driver_spec import DriverSpec
from gpusim.driver.events import EventLog
from gpusim.driver.eviction import Eviction
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.memory_limit import SystemMemoryLimit
from gpusim.driver.migrate import Migration
from gpusim.driver.placement import SameHive
from gpusim.driver.svm_range import CPU
from gpusim.driver.table_writer import TableWriter
from gpusim.driver.vram import Vram
from gpusim.engine.cores import Cores
from gpusim.engine.environment import Environment
from gpusim.engine.flows import Flow
from gpusim.engine.mutex import Mutex
from gpusim.engine.record import Chain, Recorder
from gpusim.engine.stages import Stages
from gpusim.errors import SimulatedFailure
from gpusim.hardware.coherence import SharedLines
from gpusim.hardware.flights import Flights
from gpusim.hardware.gpu import Gpu
from gpusim.linux.address_space import HostMemory, Vma
from gpusim.linux.file import File
from gpusim.linux.file_io import FileIo
from gpusim.linux.host_spec import HostSpec
from gpusim.linux.paging import Paging
from gpusim.runtime.allocation import Allocation, Allocator, FileMapping
from gpusim.runtime.operation import Operation, Stream

Steps = Generator[Any, Any, None]  # what a host thread runs


class Thread(Protocol):
    """A host thread that calls HIP."""

    chain: Chain

    def stages(self, stages: Stages) -> Steps:
        """Spend the time of the stages."""
        ...

    def wait_for(self, operation: Operation) -> Steps:
        """Wait for the end of an operation."""
        ...

    def lock(self, mutex: Mutex, process: KfdProcess) -> Steps:
        """Wait for a process's SVM mutex."""
        ...

    def side_by_side(self, bodies: Sequence[Callable[[Thread], Steps]]) -> Steps:
        """Run each on a thread of its own, and wait for all."""
        ...


class MemoryPort(Protocol):
    """Host memory for threads that stream it, each at its own rate as long as there is bandwidth."""

    def enter(
        self, size_bytes: int, ended: Callable[[Flow], None], *, numa: int = 0, write: bool = False
    ) -> Flow:
        """Move `size_bytes` from, or to, the memory of a NUMA node, then call `ended`."""
        ...


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU with what the driver keeps for it."""

    gpu: Gpu
    vram: Vram
    migration: Migration
    tables: TableWriter
    eviction: Eviction
    peer_visible: bool = True  # other devices reach all of its VRAM
    apu: bool = False  # its driver prefers host memory (apu_prefer_gtt)


@dataclass(frozen=True, slots=True)
class Node:
    """What all processes share."""

    env: Environment
    recorder: Recorder
    host: HostMemory
    pinned: SystemMemoryLimit
    host_spec: HostSpec
    paging: Paging
    events: EventLog
    driver: DriverSpec
    devices: tuple[Device, ...]
    range_pages: int  # the largest registered range
    same_hive: SameHive
    follows_use: bool  # an eviction policy wants to know what wavefronts use
    processes: list[KfdProcess]  # all of the node
    host_memory: MemoryPort
    copy_memory: MemoryPort  # the same for bytes that a thread copies, which it reads and writes
    cores: Cores | None = None  # None where threads and workers can never outnumber them
    file_io: FileIo | None = None  # None where the CPU profile has no numbers for it

    def on_cores(self, stages: Stages) -> Stages:
        """Stages of a thread, which has to have a core for its work."""
        return stages if self.cores is None else self.cores.shared(stages)


@dataclass(frozen=True, slots=True)
class Declared:
    """A buffer that the program declares."""

    size: int
    allocator: Allocator
    gpu: str
    align: int | None
    huge_pages: bool = False  # transparent huge pages where they fit
    madvise: bool = False  # the program has to ask for them
    file: str | None = None  # that is mapped
    mapping: FileMapping = FileMapping.READ_ONLY
    numa: int = -1  # the NUMA node to which it is bound


class Hip:
    """The HIP state of one process. `visible` are its GPUs in its own numbering."""

    def __init__(
        self,
        *,
        node: Node,
        kfd: KfdProcess,
        visible: tuple[Device, ...],
        declared: Mapping[str, Declared],
        files: Mapping[str, File] | None = None,
        sdma: bool = True,
        peer_sdma: bool = True,
        locks_from: int | None = None,
    ) -> None:
        self.node = node
        self.env = node.env
        self.kfd = kfd
        self.visible = visible
        self._declared = declared
        self.sdma = sdma  # do copy engines copy, or kernels?
        self.peer_sdma = peer_sdma  # and between GPUs?
        self.locks_from = locks_from  # pageable copies of so many bytes are not staged; None: all are
        self.files: Mapping[str, File] = files or {}
        self.flights = Flights(node.env)
        self.lines: dict[Vma, SharedLines] = {}  # of buffers that CPU threads and kernels update by atomics
        self._live: dict[str, Allocation] = {}
        self._held: dict[Allocation, None] = {}  # what takes memory: also what is being allocated or freed
        self._claimed: set[str] = set()
        self._streams: dict[str, Stream] = {}
        self._events: dict[str, Operation] = {}

    # -- names -----------------------------------------------------------------------------------------------------

    def device(self, name: str) -> Device:
        """`gpu0`, `gpu1`, ... as this process sees them."""
        number = int(name.removeprefix("gpu"))
        if number >= len(self.visible):
            raise SimulatedFailure(
                "hip_error",
                f"hipErrorInvalidDevice: {name} of {self.kfd.name}, which sees {len(self.visible)} GPUs",
            )
        return self.visible[number]

    def location(self, name: str) -> int:
        """The number of a GPU in the node, or CPU."""
        if name == "undefined":
            return UNDEFINED
        return CPU if name == "cpu" else self.device(name).gpu.index

    def declared(self, name: str) -> Declared:
        return self._declared[name]

    def declared_size(self, name: str) -> int:
        return self._declared[name].size

    def claim(self, name: str) -> bool:
        """Begin to allocate a buffer; False if it is allocated, or another thread is at it."""
        if name in self._live or name in self._claimed:
            return False
        self._claimed.add(name)
        return True

    def unclaim(self, name: str) -> None:
        """The allocation has succeeded or failed."""
        self._claimed.discard(name)

    def allocation(self, name: str) -> Allocation:
        """The live buffer of a name. Raises SimulatedFailure when it is not allocated now."""
        found = self._live.get(name)
        if found is None:
            raise SimulatedFailure(
                "hip_error", f"hipErrorInvalidValue: buffer {name!r} of {self.kfd.name} is not allocated here"
            )
        return found

    @property
    def live(self) -> list[Allocation]:
        """All that is allocated now."""
        return list(self._live.values())

    def add(self, allocation: Allocation) -> None:
        self._live[allocation.name] = allocation

    def forget(self, name: str) -> Allocation:
        return self._live.pop(name)

    def hold(self, allocation: Allocation) -> None:
        """From now on it takes memory."""
        self._held[allocation] = None

    def let_go(self, allocation: Allocation) -> None:
        """Its memory has been given back."""
        del self._held[allocation]

    def take_all(self) -> list[Allocation]:
        """All that takes memory, which is no longer live."""
        taken = list(self._held)
        self._held.clear()
        self._live.clear()
        return taken

    # -- streams and events ----------------------------------------------------------------------------------------

    def stream(self, name: str | None) -> Stream:
        """A stream by name; None is the process's null stream."""
        key = name or "null"
        found = self._streams.get(key)
        if found is None:
            found = self._streams[key] = Stream(self.env, key, self.node.recorder)
        return found

    @property
    def has_queues(self) -> bool:
        """A queue comes with the first use of a stream, and stays."""
        return bool(self._streams)

    def submit(self, thread: Thread, operation: Operation, stream: str | None) -> Operation:
        """Put an operation into a stream."""
        self.stream(stream).submit(operation, thread.chain.snapshot())
        return operation

    def record(self, thread: Thread, event: str, stream: str | None) -> None:
        """hipEventRecord."""
        marker = Operation(lambda path, done: done(path))
        self._events[event] = marker
        self.submit(thread, marker, stream)

    def event(self, name: str) -> Operation:
        """The last record of an event; one that was never recorded is complete, as in HIP."""
        found = self._events.get(name)
        if found is None:
            found = Operation(lambda path, done: done(path))
            found.done = True
        return found

    def wait_in_stream(self, thread: Thread, event: Operation, stream: str) -> None:
        """hipStreamWaitEvent: later work of the stream waits for the event."""
        env = self.env

        def begin(path: Any, done: Any) -> None:
            since = env.now
            event.when_done(lambda: done(event.path if event.end_ps > since else path))

        self.submit(thread, Operation(begin), stream)

    def outstanding(self, stream: str | None) -> list[Operation]:
        """The last operation of a stream, or of all streams, as far as there is one."""
        streams = [self.stream(stream)] if stream is not None else list(self._streams.values())
        return [found.last for found in streams if found.last is not None]

    def die(self) -> None:
        """The process has died: its queues are destroyed, and nothing of its streams goes on."""
        for stream in self._streams.values():
            stream.dead = True
        self.flights.cut()
