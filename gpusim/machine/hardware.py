"""Builds GPUs, links and memories from a resolved system."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from gpusim.driver.driver_spec import DriverSpec
from gpusim.driver.events import EventLog
from gpusim.driver.eviction import Eviction
from gpusim.driver.fault_log import FaultLog
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.memory_limit import SystemMemoryLimit
from gpusim.driver.migrate import Migration, MigrationLog
from gpusim.driver.policies import EvictionPolicy, choice
from gpusim.driver.reporting import Reporting
from gpusim.driver.restore import Restore
from gpusim.driver.svm_range import largest_range_pages
from gpusim.driver.table_writer import TableWriter
from gpusim.driver.vram import Vram, zone_device_bytes
from gpusim.driver.watch import Watch
from gpusim.engine.cores import Cores
from gpusim.engine.environment import Environment
from gpusim.engine.flows import Flow, Hop, Network
from gpusim.engine.record import Recorder
from gpusim.hardware.fabric import HOST_MEMORY, Fabric
from gpusim.hardware.fabric_spec import FabricSpec
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpu_spec import GpuSpec, LinkSpec
from gpusim.hardware.xgmi import Xgmi, XgmiSpec
from gpusim.kinds import ON_CORE, Kind
from gpusim.linux.address_space import HostMemory
from gpusim.linux.host_spec import HostSpec
from gpusim.linux.paging import Paging
from gpusim.machine import fault_service, paced
from gpusim.machine.fault_service import FaultService
from gpusim.machine.storage import Storage
from gpusim.runtime.hip import Device, Node
from gpusim.scenario.resolve import ResolvedSystem, build
from gpusim.scenario.schema import Policy
from gpusim.spec import PAGE_BYTES


def random_stream(seed: int, name: str) -> np.random.Generator:
    """A part's own stream of random numbers: what others draw does not change it."""
    digest = hashlib.sha256(name.encode()).digest()
    key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


class ThreadMemory:
    """Host memory as one thread gets it: at its own rate, as long as all have enough.

    `copies`: each byte is read and written, once in the memory that is named and once in that of the first NUMA node.
    """

    def __init__(
        self,
        network: Network,
        fabric: Fabric,
        rate_bytes_per_s: float,
        pace: float,
        *,
        copies: bool = False,
        cores: Cores | None = None,
    ) -> None:
        self._network = network
        self._cores = cores
        self._ways: dict[tuple[int, bool], tuple[tuple[Hop, ...], float]] = {}
        for numa in range(fabric.numa_nodes):
            for write in (False, True):
                hops, left = fabric.from_threads(numa, write=write)
                touched = {HOST_MEMORY: 0.0} if copies else {}
                for node in (0, numa) if copies else (numa,):
                    name = fabric.memory_of(node)
                    touched[name] = touched.get(name, 0.0) + pace
                way = (*touched.items(), *((name, cost * pace) for name, cost in hops))
                self._ways[numa, write] = way, rate_bytes_per_s * left / pace

    def enter(
        self, size_bytes: int, ended: Callable[[Flow], None], *, numa: int = 0, write: bool = False
    ) -> Flow:
        """Move `size_bytes` from, or to, the memory of a NUMA node, then call `ended`."""
        start = partial(self._start, size_bytes, *self._ways[numa, write])
        return start(ended) if self._cores is None else self._cores.move(start, ended)

    def _start(
        self, size_bytes: int, way: tuple[Hop, ...], rate: float, ended: Callable[[Flow], None]
    ) -> Flow:
        return self._network.transfer(way, size_bytes, cap_bytes_per_s=rate, done=ended)


def _done(devices: Sequence[Device], process: KfdProcess) -> int:
    """Wave steps of a process, and accesses of engines for it, that have completed on any GPU."""
    return sum(device.gpu.done_by(process.vms[device.gpu.index]) for device in devices)


class Hardware:
    """What the machine is made of. `workers[i]` is the fault worker of GPU i."""

    def __init__(
        self,
        system: ResolvedSystem,
        *,
        env: Environment,
        recorder: Recorder,
        seed: int,
        grouped: bool,
        events: bool,
        policy: Policy | None = None,
        runnable: Callable[[int], int] | None = None,
    ) -> None:
        """`runnable` bounds how many can want one of so many cores at once; None: never more than there are."""
        policy = policy or Policy()
        self.network = Network(env)
        self.fault_log = FaultLog()
        self.migration_log = MigrationLog()
        self.events = EventLog(on=events)
        paces = recorder.paces
        host_spec = paced.host(build(HostSpec, system.cpu, "cpu"), paces)
        driver = paced.driver(build(DriverSpec, system.driver, "driver"), paces)
        gpus = [
            paced.gpu(build(GpuSpec, tree, f"gpu[{index}]"), paces) for index, tree in enumerate(system.gpus)
        ]
        self.cores: Cores | None = None
        if runnable is not None and runnable(host_spec.cores) > host_spec.cores:
            self.cores = Cores(
                env,
                "host.cores",
                host_spec.cores,
                on_core=ON_CORE,
                by_clock=(Kind.PAGE_CACHE,),
                waiting=Kind.CORE_WAIT,
                paces=recorder.in_stages,
            )
        private = zone_device_bytes([spec.hbm.size for spec in gpus if spec.apu is None], host_spec.memory)
        fabric = system.node.get("fabric")
        self.fabric = Fabric(
            build(FabricSpec, fabric, "node.fabric") if fabric else FabricSpec(peer_efficiency=1.0),
            self.network,
        )
        host = HostMemory(host_spec.memory - private, self.fabric.numa_nodes)
        paging = Paging(
            host_spec, env=env, host=host, far_thread=self.fabric.numa.thread if self.fabric.numa else 1.0
        )
        links = [build(LinkSpec, tree, f"link[{index}]") for index, tree in enumerate(system.links)]
        tree = system.node.get("xgmi")
        self.xgmi = Xgmi(build(XgmiSpec, tree, "node.xgmi") if tree else None, len(gpus), self.network)
        self.workers: list[FaultService] = []
        devices: list[Device] = []
        for index, (spec, link) in enumerate(zip(gpus, links, strict=True)):
            name = f"gpu[{index}]"
            self._add_link(f"{name}.pcie", link)
            worker = fault_service.make(
                f"{name}.fault_worker",
                gpu=spec,
                driver=driver,
                host=host_spec,
                reporting=Reporting(env, recorder, self.fault_log, self.events),
                grouped=grouped,
            )
            gpu = Gpu(
                spec,
                index=index,
                env=env,
                recorder=recorder,
                network=self.network,
                link=f"{name}.pcie",
                link_spec=link,
                interrupt_ps=host_spec.interrupt,
                listener=worker,
                retry=fault_service.retry_unit(driver.switches, spec),
                random=random_stream(seed, f"{name}.retry"),
            )
            gpu.below(self.fabric)
            vram = Vram(name, spec.hbm.size)
            migration = Migration(
                gpu=gpu,
                vram=vram,
                host=host,
                pages=host_spec.pages,
                driver=driver,
                log=self.migration_log,
                events=self.events,
            )
            choose = choice(policy.eviction, random_stream(seed, f"{name}.eviction"))
            eviction = Eviction(vram=vram, migration=migration, choose=choose, events=self.events)
            migration.connect(eviction)
            self.workers.append(worker)
            devices.append(
                Device(
                    gpu,
                    vram,
                    migration,
                    TableWriter(gpu, pte_write_ps=driver.costs.pte_write, by_cpu=link.large_bar),
                    eviction,
                    apu=spec.apu is not None,
                    peer_visible=link.peer_visible,
                )
            )
        for device in devices:
            for other in devices:
                if other is not device:
                    device.gpu.add_peer(other.gpu, self.xgmi, self.fabric)
        watch = Watch(env=env, done=lambda process: _done(devices, process))
        migrations = [device.migration for device in devices]
        for worker, device in zip(self.workers, devices, strict=True):
            gpu = device.gpu
            restore = Restore(
                gpu_index=gpu.index,
                driver=driver,
                paging=paging,
                migrations=migrations,
                same_hive=self.xgmi.same_hive,
                tables=device.tables,
                watch=watch,
                apu=device.apu,
                prefetch=policy.prefetch,
                cores=self.cores,
                interrupt_ps=host_spec.interrupt,
            )
            fault_service.connect(
                worker,
                gpu,
                restore,
                driver=driver,
                paging=paging,
                env=env,
                random=random_stream(seed, f"{gpu.name}.fault_worker"),
            )
        svm = driver.svm
        bandwidth = min(host_spec.bandwidth, host_spec.cores * host_spec.thread_bandwidth)
        nodes = self.fabric.numa_nodes
        for numa in range(nodes):
            self.network.add_link(self.fabric.memory_of(numa), capacity_bytes_per_s=bandwidth / nodes)
        self.storage = Storage(
            system,
            env=env,
            network=self.network,
            fabric=self.fabric,
            host=host,
            host_spec=host_spec,
            paces=paces,
            linked=recorder.spans,
        )
        if self.storage.file_io is not None:
            self.storage.file_io.cores = self.cores
        self.node = Node(
            env=env,
            recorder=recorder,
            host=host,
            pinned=SystemMemoryLimit(host_spec.memory),
            host_spec=host_spec,
            paging=paging,
            events=self.events,
            driver=driver,
            devices=tuple(devices),
            range_pages=largest_range_pages(
                [spec.hbm.size for spec in gpus],
                svm.range_divisor,
                svm.range_min // PAGE_BYTES,
                svm.range_max // PAGE_BYTES,
            ),
            same_hive=self.xgmi.same_hive,
            follows_use=policy.eviction is EvictionPolicy.LRU,
            processes=[],
            host_memory=ThreadMemory(
                self.network,
                self.fabric,
                host_spec.thread_bandwidth,
                recorder.pace(Kind.HOST_MEMORY),
                cores=self.cores,
            ),
            copy_memory=ThreadMemory(
                self.network,
                self.fabric,
                host_spec.copy_bandwidth,
                recorder.pace(Kind.BOUNCE_COPY),
                copies=True,
                cores=self.cores,
            ),
            cores=self.cores,
            file_io=self.storage.file_io,
        )

    def _add_link(self, name: str, link: LinkSpec) -> None:
        down, up = f"{name}.h2d", f"{name}.d2h"
        self.network.add_link(down, capacity_bytes_per_s=link.h2d, reverse=up, coupling=link.coupling)
        self.network.add_link(up, capacity_bytes_per_s=link.d2h, reverse=down, coupling=link.coupling)

    def link_names(self) -> list[str]:
        """All directions of all links."""
        gpus = [f"{device.gpu.name}.pcie.{way}" for device in self.node.devices for way in ("h2d", "d2h")]
        return [*gpus, *self.xgmi.link_names(), *self.fabric.link_names, *self.storage.link_names]
