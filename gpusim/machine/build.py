"""From a scenario to a machine that runs its programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gpusim.driver.ats_notifier import AtsNotifier
from gpusim.driver.ats_service import AtsService
from gpusim.driver.deferred import DeferredList
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.notifier import SvmNotifier
from gpusim.driver.queue_restore import QueueRestore
from gpusim.engine.environment import Environment
from gpusim.engine.record import Mode, Recorder, Snapshot
from gpusim.engine.stages import Stages
from gpusim.hardware.gpuvm import Vm
from gpusim.kinds import Kind
from gpusim.machine import paced
from gpusim.machine.hardware import Hardware
from gpusim.machine.hipfiles import HipFiles
from gpusim.machine.runnable import most_runnable
from gpusim.machine.visible import copy_engines, locks_from, visible_devices
from gpusim.machine.xnack import xnack_at_start
from gpusim.rundata import StepData
from gpusim.runtime.allocation import Allocator, FileMapping
from gpusim.runtime.hip import Declared, Hip
from gpusim.runtime.teardown import detach, teardown
from gpusim.scenario.resolve import ResolvedSystem, resolve
from gpusim.scenario.schema import Process, Scenario
from gpusim.scenario.words import EngineMode, HugePages, OnError
from gpusim.workload.kernels import Kernels
from gpusim.workload.process import ProgramProcess, Ranks
from gpusim.workload.steps import Step


class Machine:
    """A machine with its programs, before time zero. `start()` lets the programs begin."""

    def __init__(
        self,
        scenario: Scenario,
        record: Mode,
        paces: Sequence[float] | None = None,
        *,
        events: bool = False,
    ) -> None:
        """`paces` are those of a what-if, by kind: see `Recorder`. `events`: keep what KFD tells its listeners."""
        self.scenario = scenario
        self.system: ResolvedSystem = resolve(scenario)
        self.env = Environment()
        self.recorder = Recorder(record, len(Kind), paces, paced.BY_PARTS)
        grouped = scenario.engine.mode is EngineMode.GROUPED
        self.hardware = Hardware(
            self.system,
            env=self.env,
            recorder=self.recorder,
            seed=scenario.seed,
            grouped=grouped,
            policy=scenario.policy,
            events=events,
            runnable=lambda cores: most_runnable(scenario, gpus=len(self.system.gpus), cores=cores),
        )
        self.hipfiles = HipFiles(scenario, self.hardware, env=self.env, recorder=self.recorder)
        self.steps: list[StepData] = []
        folder = scenario.source.parent if scenario.source is not None else Path()
        kernels = Kernels(scenario.kernels, grouped=grouped, seed=scenario.seed, folder=folder)
        ranks: dict[str, Ranks] = {}
        self.processes = [
            self._process(number, process, kernels, ranks.setdefault(process.name, Ranks()))
            for number, process in enumerate(scenario.processes)
        ]

    def start(self) -> None:
        """Let all programs begin at time zero."""
        file_io = self.hardware.node.file_io
        if file_io is not None:
            file_io.writeback.wanted = lambda: not all(process.finished for process in self.processes)
        for process in self.processes:
            process.start()

    def _process(self, number: int, process: Process, kernels: Kernels, ranks: Ranks) -> ProgramProcess:
        node = self.hardware.node
        label = process.label
        self.hardware.fault_log.processes.append(label)
        visible = visible_devices(node.devices, process.env)
        start = xnack_at_start(
            process.env,
            [(device.gpu.name, device.gpu.spec) for device in visible],
            node.driver.noretry,
        )
        xnack = start.enabled
        vms = {
            device.gpu.index: Vm(
                f"{label}@{device.gpu.name}",
                number + 1,
                retry=xnack,
                gpu=device.gpu.index,
                unified=device.gpu.spec.apu is not None,
                gpus=len(node.devices),
                numa_nodes=self.hardware.fabric.numa_nodes,
            )
            for device in node.devices
        }
        kfd = KfdProcess(
            label,
            env=self.env,
            vms=vms,
            xnack=xnack,
            number=number,
            gpus=sum(1 << device.gpu.index for device in visible),
            kill=lambda outcome, error: program.kill(outcome, error),  # noqa: PLW0108 - not made yet
        )
        self._connect_notifier(kfd)
        kfd.deferred = DeferredList(
            kfd,
            env=self.env,
            recorder=self.recorder,
            costs=node.driver.costs,
            drop_bo=[device.migration.drop_bo for device in node.devices],
            on_cores=node.on_cores,
        )
        kfd.xnack_refused = start.refused
        kfd.limit = node.pinned
        node.processes.append(kfd)
        for worker, device in zip(self.hardware.workers, node.devices, strict=True):
            worker.attach(vms[device.gpu.index], kfd)
            kfd.unmap_listeners.append(worker.unmapped)
        declared = {
            name: Declared(
                size=buffer.size,
                allocator=Allocator(buffer.allocator.value),
                gpu=buffer.gpu or "gpu0",
                align=buffer.align,
                huge_pages=buffer.huge_pages in (HugePages.ALWAYS, HugePages.MADVISE),
                madvise=buffer.huge_pages is HugePages.MADVISE,
                file=buffer.file,
                mapping=buffer.mapping or FileMapping.READ_ONLY,
                numa=-1 if buffer.numa is None else buffer.numa,
            )
            for name, buffer in process.buffers.items()
        }
        hip = Hip(
            node=node,
            kfd=kfd,
            visible=visible,
            declared=declared,
            files=self.hardware.storage.files(process),
            sdma=copy_engines(process.env)[0],
            peer_sdma=copy_engines(process.env)[1],
            locks_from=locks_from(process.env),
        )
        later = set(_allocated_by_steps(step for steps in process.threads.values() for step in steps))
        program = ProgramProcess(
            label,
            number=number,
            suffix="" if process.count == 1 else f"[{process.rank}]",
            env=self.env,
            recorder=self.recorder,
            hip=hip,
            files=self.hipfiles.of(process, number, hip),
            kernels=kernels,
            threads=process.threads,
            at_start=[name for name in declared if name not in later],
            ranks=ranks,
            goes_on=process.on_error is OnError.CONTINUE,
            report=self.steps.append,
            killed=self._killed,
            find=self._named,
        )
        return program

    def _connect_notifier(self, kfd: KfdProcess) -> None:
        """What Linux tells the driver, and the worker that maps again with XNACK off."""
        node = self.hardware.node

        def released(path: Snapshot) -> None:
            for device in node.devices:
                device.gpu.releasing = path

        services = {
            device.gpu.index: worker
            for device, worker in zip(node.devices, self.hardware.workers, strict=True)
            if isinstance(worker, AtsService)
        }
        if len(services) == len(node.devices):
            kfd.notifier = AtsNotifier(kfd, services)
            return
        costs, events = node.driver.costs, node.events
        queues = QueueRestore(
            kfd,
            env=self.env,
            recorder=self.recorder,
            costs=costs,
            tables=node.devices[0].tables,
            paging=node.paging,
            events=events,
            released=released,
            cores=self.hardware.cores,
        )
        translations = {device.gpu.index: device.gpu.translation for device in node.devices}
        kfd.notifier = SvmNotifier(kfd, costs=costs, events=events, translations=translations, queues=queues)

    def _named(self, name: str) -> list[ProgramProcess]:
        """All ranks of a process, or one as `name[rank]`."""
        return [
            program
            for program, process in zip(self.processes, self.scenario.processes, strict=True)
            if name in (process.name, process.label)
        ]

    def _killed(self, program: ProgramProcess) -> Stages:
        """A process has died: the hardware forgets it, and the kernel takes its memory back."""
        kfd = program.hip.kfd
        if program.outcome == "vm_fault":
            self.hardware.events.vm_fault(self.env.now, program.number)
        for worker, device in zip(self.hardware.workers, self.hardware.node.devices, strict=True):
            worker.drop(kfd)
            device.gpu.kill(kfd.vms[device.gpu.index])
        self.hipfiles.ais.forget(kfd.number)
        return teardown(program.hip, detach(program.hip))


def _allocated_by_steps(steps: Iterable[Step]) -> Iterable[str]:
    """Buffers that some `alloc` step names."""
    for step in steps:
        if step.verb == "alloc":
            yield getattr(step.args, "buffer")  # noqa: B009
        yield from _allocated_by_steps(getattr(step.args, "steps", ()))
        for branch in getattr(step.args, "branches", ()):
            yield from _allocated_by_steps(branch)
