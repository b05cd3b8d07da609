"""Retry faults of one GPU with every vector simulated that reaches the driver.

From the send to the worker: what absorbs repeated sends (CAM, software filter, the FIFO's own table), the rings, the
interrupt handler, and one worker or one for each VMID. It is used where a switch asks for what the closed forms of
`fault_queue` do not cover; sends that the hardware absorbs or loses are still counted by arithmetic only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gpusim.driver.driver_spec import DriverSpec
from gpusim.driver.fatal_fault import kill_for_fault
from gpusim.driver.interrupt_handler import InterruptHandler
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.reporting import Reporting
from gpusim.driver.restore import Restore
from gpusim.driver.retry_filter import Verdict
from gpusim.driver.ring_sources import FilteredRing, SoftRing
from gpusim.driver.switches import Ack, Dedup, Replay, Service, Throttle
from gpusim.driver.vector_worker import Source, VectorWorker
from gpusim.engine.environment import Environment
from gpusim.engine.timeline import Timeline
from gpusim.hardware.cam import RetryCam
from gpusim.hardware.commanded import CommandedRetry
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import Region, Vm
from gpusim.hardware.interrupt import Vector
from gpusim.hardware.retry import Fault


class FaultPipeline:
    """The listener of a GPU's fault interrupts. `connect` wires it to the GPU and to what serves a fault."""

    def __init__(
        self,
        reporting: Reporting,
        *,
        name: str,
        driver: DriverSpec,
        interrupt_ps: int,
    ) -> None:
        self._reporting = reporting
        self._env = reporting.env
        self._name = name
        self._driver = driver
        self._spec = driver.interrupts
        self._interrupt_ps = interrupt_ps
        switches = driver.switches
        self._filtering = switches.dedup is Dedup.FILTER
        self._own_table = switches.dedup is Dedup.ADDRESS_VMID
        self._always = switches.ack is Ack.ALWAYS
        self._each_vmid = switches.service is Service.PER_VMID
        self._merge = self._spec.merge if switches.throttle is Throttle.MERGE else 0
        self.commands = switches.replay is Replay.FAULT_DONE_COMMAND
        self.processes: dict[Vm, KfdProcess] = {}
        self._counts: dict[int, Counter[str]] = {}
        self._admitted: Counter[int] = Counter()
        self._workers: dict[int, VectorWorker] = {}
        self._soft: dict[int, SoftRing] = {}
        self._checkpoint_ps: dict[int, int] = {}

    def connect(self, gpu: Gpu, restore: Restore) -> None:
        """Wire it to its GPU."""
        self._gpu = gpu
        self._restore = restore
        if self.commands:
            assert isinstance(gpu.retry, CommandedRetry)
            gpu.retry.connect(self._spec.command)
        self.handler = InterruptHandler(
            self._spec,
            interrupt_ps=self._interrupt_ps,
            env=self._env,
            name=f"{gpu.name}.interrupts",
            deliver=self._deliver,
            lost=self._lost,
        )
        self.cam = RetryCam(
            self._spec.ring0 if self._own_table else gpu.spec.retry.cam_entries,
            period_ps=gpu.spec.retry.period,
            timers=not self.commands,
            env=self._env,
            emit=self._emit,
        )
        self._ring1: FilteredRing | None = None
        if self._filtering:
            self._ring1 = FilteredRing(
                self._spec,
                period_ps=gpu.spec.retry.period,
                delivery_ps=gpu.delivery_ps,
                dropped=self._filtered,
                admitted=self._came,
            )
            if self._each_vmid:
                self._reader = RingReader(self._ring1, self._env, self._deliver)
            else:
                self._worker(0, self._ring1)

    def attach(self, vm: Vm, process: KfdProcess) -> None:
        """Faults of `vm` belong to `process`."""
        self.processes[vm] = process

    # -- the hardware's side ---------------------------------------------------------------------------------------

    def retry_fault(self, fault: Fault) -> None:
        """An access was sent for the first time."""
        process = self.processes[fault.region.vm]
        vector = Vector(fault, process.number)
        if self.commands:
            vector.tick_ps = self._env.now + self._gpu.spec.retry.period
        if self._ring1 is None:
            self.cam.offer(vector)
            return
        self._ring1.offer(vector)
        if self._each_vmid:
            self._reader.arrived()
        else:
            self._workers[0].arrived()

    def _emit(self, vector: Vector) -> None:
        arrives = self._env.now + self._gpu.spec.retry.delivery
        vector.time_ps = arrives
        self._env.call_at(arrives, lambda: self._arrived(vector))

    def _arrived(self, vector: Vector) -> None:
        self._came(vector)
        self.handler.arrived(vector)

    def _came(self, vector: Vector) -> None:
        self._admitted[vector.pasid] += 1

    def _lost(self, vector: Vector) -> None:
        """A ring was full. The CAM keeps the slot of what was lost: nobody will ever acknowledge it."""
        self._counts.setdefault(vector.pasid, Counter())["overflowed"] += 1

    def _deliver(self, vector: Vector) -> bool:
        """Copy a vector to the soft ring of its worker. The FIFO of the white paper keeps it while that is full."""
        number = vector.vmid if self._each_vmid else 0
        soft = self._soft.get(number)
        if soft is None:
            soft = self._soft[number] = SoftRing(self._spec.soft_ring, self._freed)
            self._worker(number, soft)
        if self._own_table and soft.ring.room <= 0:
            return False
        for lost in soft.ring.push(vector):
            self._lost(lost)
        self._workers[number].arrived()
        return True

    def _freed(self) -> None:
        if self._own_table:
            self._env.call_at(self._env.now, self.handler.retry)

    def _worker(self, number: int, source: Source) -> None:
        worker = VectorWorker(
            self._reporting,
            pipeline=self,
            source=source,
            name=f"{self._name}[{number}]" if self._each_vmid else self._name,
            cost_ps=self._driver.costs.skip,
        )
        worker.processes = self.processes
        worker.serve_with(
            self._gpu,
            self._restore,
            merge=self._merge,
            vector_ps=self._spec.vector,
            restore_ps=self._driver.costs.restore,
        )
        self._workers[number] = worker

    # -- what workers ask and say ----------------------------------------------------------------------------------

    def answer(self, vector: Vector, *, success: bool, mapped_ps: int | None = None) -> None:
        """The driver is done with a vector. Without success it was dropped, and its page is still missing."""
        if self._ring1 is not None:
            if mapped_ps is not None:
                self._ring1.forget_mapped()
        elif success or self._always:
            self.cam.acknowledge(vector)
        if self.commands:
            retry = self._gpu.retry
            assert isinstance(retry, CommandedRetry)
            if mapped_ps is not None:
                vector.tick_ps = mapped_ps + self._spec.command
            retry.replay(vector.region, vector.page)

    def is_stale(self, vector: Vector, process: KfdProcess) -> bool:
        """Was it sent before the last unmap of its process? Then it is dropped, and the access sends again."""
        checkpoint = self._checkpoint_ps.get(process.number)
        if checkpoint is None:
            return False
        if vector.time_ps > checkpoint:
            del self._checkpoint_ps[process.number]  # the first that is newer ends it
            return False
        self.count(process, "stale")
        if self._ring1 is not None:
            self._ring1.again(vector)
        return True

    def unmapped(self, process: KfdProcess) -> None:
        """Addresses of a process go away: faults that are in the rings now are not to be trusted."""
        rings = [soft.ring for soft in self._soft.values()]
        if self._ring1 is not None:
            rings = [self._ring1.ring]
        newest = [vector.time_ps for ring in rings if (vector := ring.newest()) is not None]
        if newest:
            self._checkpoint_ps[process.number] = max(newest)

    def count(self, process: KfdProcess, fate: str) -> None:
        """One more vector of a process met a fate."""
        self._counts.setdefault(process.number, Counter())[fate] += 1

    def _filtered(self, vector: Vector, verdict: Verdict) -> None:
        fate = "stale" if verdict is Verdict.STALE else "filtered"
        self._counts.setdefault(vector.pasid, Counter())[fate] += 1

    # -- the rest of a fault service -------------------------------------------------------------------------------

    def fatal_fault(self, region: Region, page: int, write: bool) -> None:
        """XNACK is off: the access kills its process."""
        kill_for_fault(self.processes[region.vm], self._gpu.name, region, page, write=write)

    def drop(self, process: KfdProcess) -> None:
        """The process has died; its vectors are thrown away as they come up."""

    def fates(self, process: KfdProcess, sends: int, pending: int) -> dict[str, int]:
        """What became of the sends of a process, beside those that were served or are pending."""
        found = dict(self._counts.get(process.number, Counter()))
        if self._ring1 is not None:  # each send comes to the ring, or finds it full
            found["overflowed"] = max(0, sends - pending - self._admitted[process.number])
        return {name: found.get(name, 0) for name in ("filtered", "stale", "overflowed", "skipped_recent")}

    def interrupts_of(self, process: KfdProcess) -> tuple[int, int]:
        """Vectors of a process that reached the driver, and the CPU time of interrupts spent on them."""
        vectors = self._admitted[process.number]
        if self._ring1 is not None:  # read by a work item; each pass begins with an interrupt
            return vectors, vectors * self._interrupt_ps // self._spec.per_pass + vectors * self._spec.vector
        whole = self._admitted.total()
        return vectors, self.handler.use.busy_ps * vectors // whole if whole else 0

    def counters(self) -> dict[str, int]:
        """Interrupts, and of each ring in use its peak and what was lost there."""
        found = {"interrupts": self.handler.interrupts}
        rings = {"ring0": [self.handler.ring], "soft_ring": [soft.ring for soft in self._soft.values()]}
        if self._ring1 is not None:
            del rings["ring0"], found["interrupts"]
            rings["ring1"] = [self._ring1.ring]  # senders do not come to a full one
        for name, parts in rings.items():
            if parts:
                found[f"{name}_peak"] = max(ring.peak for ring in parts)
                if name != "ring1":
                    found[f"{name}_lost"] = sum(ring.lost for ring in parts)
        return found

    def uses(self) -> list[Timeline]:
        """Busy time of its workers, and of the interrupt handler."""
        return [*(worker.use for worker in self._workers.values()), self.handler.use]


class RingReader:
    """Ring 1 read by a work item that only filters, and hands on to the worker of a VMID."""

    def __init__(self, ring: FilteredRing, env: Environment, deliver: Callable[[Vector], bool]) -> None:
        self._ring = ring
        self._env = env
        self._deliver = deliver
        self._busy = False
        self._armed: object = None

    def arrived(self) -> None:
        """A vector is on its way."""
        if self._busy:
            return
        start = self._ring.next_ps(self._env.now)
        if start is not None:
            self._busy = True
            self._env.call_at(start, self._read)

    def _read(self) -> None:
        taken = self._ring.take(self._env.now)
        end = self._env.now + len(taken) * self._ring.decode_ps
        passing = [vector for vector in taken if not self._ring.drops(vector)]

        def handed_on() -> None:
            for vector in passing:
                self._deliver(vector)
            self._ring.passed()
            self._busy = False
            self.arrived()

        self._env.call_at(end, handed_on)
