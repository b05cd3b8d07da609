"""Faults of an APU that translates CPU addresses by ATS and PRI (`apu: ats_pri`, `kfd_svm.md` 5.3).

An access whose page the ATC does not hold asks the IOMMU. A page that the CPU has is answered by the walk. For one that
it does not have, the device sends a page request; a work item of the kernel handles it like a CPU fault, page by page,
and the device asks again. No page is migrated, and no GPU page table is written. Left out: PASID tags beyond the
device's credits, and execute rights.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from gpusim.driver.fatal_fault import kill_for_fault
from gpusim.driver.fault_log import PIECES, FaultLog
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.restore import is_svm
from gpusim.engine.environment import Environment
from gpusim.engine.record import Chain, Recorder, Snapshot
from gpusim.engine.stages import Stages, run_stages
from gpusim.engine.timeline import Timeline
from gpusim.errors import SimulatedFailure
from gpusim.hardware.atc import Atc
from gpusim.hardware.ats_spec import AtsSpec
from gpusim.hardware.commanded import CommandedRetry
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import HUGE, Region, Vm, host_state
from gpusim.hardware.interrupt import Vector
from gpusim.hardware.iommu import Iommu
from gpusim.hardware.retry import Fault
from gpusim.kinds import Kind
from gpusim.linux.address_space import HUGE_PAGES, RAM, Vma
from gpusim.linux.paging import Paging


@dataclass(slots=True)
class _Worker:
    """One CPU that works on page requests."""

    chain: Chain
    busy: bool = False


@dataclass(slots=True)
class _Request:
    """A page that waits for its translation; `logged_ps` is when its page request stood in the log."""

    vector: Vector
    process: KfdProcess
    logged_ps: int = 0
    started_ps: int = 0
    pieces: list[int] = field(default_factory=list)


class AtsService:
    """The listener of one APU. `connect` wires it to the GPU and to Linux."""

    def __init__(
        self, *, env: Environment, recorder: Recorder, log: FaultLog, name: str, interrupt_ps: int
    ) -> None:
        self._env = env
        self._recorder = recorder
        self._log = log
        self._name = name
        self._interrupt_ps = interrupt_ps
        self.processes: dict[Vm, KfdProcess] = {}
        self._asked: dict[tuple[int, int], _Request] = {}
        self._queue: deque[_Request] = deque()
        self._counts: dict[int, Counter[str]] = {}
        self.use = Timeline(name)
        self.interrupts = Timeline(name.replace("fault_worker", "interrupts"))
        self._reading = False

    def connect(self, gpu: Gpu, spec: AtsSpec, paging: Paging) -> None:
        """Wire it."""
        self._gpu = gpu
        self._spec = spec
        self._paging = paging
        self.invalidate_ps = spec.invalidate
        self.atc = Atc(spec)
        self.iommu = Iommu(spec, env=self._env, name=gpu.name, interrupt=self._interrupt)
        retry = gpu.retry
        assert isinstance(retry, CommandedRetry)
        retry.connect(spec.complete + spec.request + spec.walk)
        self._retry = retry
        self._workers = [
            _Worker(Chain(self._recorder, self._recorder.actor(self._name))) for _ in range(spec.workers)
        ]

    def attach(self, vm: Vm, process: KfdProcess) -> None:
        """Accesses of `vm` belong to `process`."""
        self.processes[vm] = process

    # -- the device's side -----------------------------------------------------------------------------------------

    def retry_fault(self, fault: Fault) -> None:
        """An access finds no translation: ask the IOMMU, unless its page is asked for already."""
        process = self.processes[fault.region.vm]
        vector = Vector(fault, process.number)
        if vector.key in self._asked:
            return
        request = self._asked[vector.key] = _Request(vector, process)
        self.iommu.translate(lambda: self._answered(request))

    def _answered(self, request: _Request) -> None:
        """The walk of the CPU page table has ended."""
        vector, process = request.vector, request.process
        vma = process.mm.find(vector.virtual)
        if process.dead:
            return
        if vma is None or not is_svm(vma) or vma.rights(vector.virtual) is None:
            self._refuse(request, "nothing is mapped there")
        elif vma.in_memory(vector.virtual):
            chain = Chain(self._recorder, self._workers[0].chain.who)
            chain.follow(vector.path(), vector.sent_ps)
            chain.spend(Kind.TRANSLATION, self._env.now)
            self._counts.setdefault(process.number, Counter())["translated"] += 1
            self._fill(vector.region, vector.page, vma, chain.snapshot())
            del self._asked[vector.key]
            counters = self._gpu.retry.counters_of(vector.region.vm)
            before = counters.sends
            self._retry.replay(vector.region, vector.page, after_ps=0)
            counters.sends = before  # a translation is no fault
        else:
            self.iommu.request_page(lambda: self._logged(request), lambda: self._overflowed(request))

    def _fill(self, region: Region, page: int, vma: Vma, path: Snapshot) -> None:
        """The ATC takes the translation, as large as CPU page tables allow."""
        self._gpu.releasing = path
        shift = self._size_of(vma, region.first_page + page)
        first, last = self.atc.fill(region, page, shift)
        region.map(first, last, host_state(vma.memory_node), self._env.now, shift)

    def _size_of(self, vma: Vma, virtual: int) -> int:
        """log2 of the pages of the translation: a huge page, 32 KiB that happen to be contiguous, or one page."""
        block = virtual // HUGE_PAGES - vma.first // HUGE_PAGES
        if vma.huge is not None and vma.huge[block]:
            return HUGE
        start = virtual - virtual % 8
        whole = vma.first <= start and start + 7 <= vma.last and vma.count(start, start + 7, RAM) == 8
        if whole and (start // 8 * 2654435761 & 0xFFFFFFFF) < self._spec.contiguous * (1 << 32):
            return 3
        return 0

    def _refuse(self, request: _Request, why: str) -> None:
        """INVALID response: the access is fatal."""
        vector = request.vector
        self._gpu.retry.counters_of(vector.region.vm).failed += 1
        address = vector.virtual * 4096
        request.process.kill(
            "vm_fault", f"memory access fault by {self._gpu.name} on address {address:#x}: {why}"
        )

    def _overflowed(self, request: _Request) -> None:
        """The log was full: the IOMMU answers success by itself, and the device asks again."""
        self.count(request.process, "overflowed")
        self.iommu.completed()
        again = self._env.now + self._spec.complete
        self._env.call_at(again, lambda: self.iommu.translate(lambda: self._answered(request)))

    # -- Linux's side ----------------------------------------------------------------------------------------------

    def _interrupt(self) -> None:
        """The log is no longer empty: the IOMMU thread wakes up and reads it."""
        if self._reading:
            return
        self._reading = True
        now = self._env.now
        self.interrupts.add(now, now + self._interrupt_ps, 1)
        self._env.call_at(now + self._interrupt_ps + self._spec.poll, self._read)

    def _read(self) -> None:
        if len(self.iommu.log) == 0:
            self._reading = False
            return
        self.iommu.log.pop()()
        now = self._env.now
        self.interrupts.add(now - self._spec.poll, now, 0)
        self._env.call_at(now + self._spec.poll, self._read)

    def _logged(self, request: _Request) -> None:
        request.logged_ps = self._env.now
        self.count(request.process, "vectors")
        self._queue.append(request)
        self._next()

    def _next(self) -> None:
        worker = next((worker for worker in self._workers if not worker.busy), None)
        if worker is None or not self._queue:
            return
        request = self._queue.popleft()
        worker.busy = True
        now = self._env.now
        request.started_ps = now
        chain = worker.chain
        if request.logged_ps >= chain.time_ps:
            chain.follow(request.vector.path(), request.vector.sent_ps)
            chain.spend(Kind.FAULT_DELIVERY, now)
        before = chain.sums.copy()
        run_stages(
            self._env,
            chain,
            self._handle(request),
            lambda: self._handled(worker, request, before),
            lambda failure: self._failed(worker, request, failure),
        )

    def _handle(self, request: _Request) -> Stages:
        """One work item: like a fault of a CPU thread, on one page."""
        yield Kind.DRIVER_FIXED, self._spec.work
        process, virtual = request.process, request.vector.virtual
        vma = process.mm.find(virtual)
        rights = vma.rights(virtual) if vma is not None else None
        if vma is None or rights is None or not rights.read or (request.vector.write and not rights.write):
            raise SimulatedFailure(
                "vm_fault",
                f"memory access fault by {self._gpu.name} on address {virtual * 4096:#x}: "
                "the VMA does not allow it (PRI response INVALID)",
            )
        what = f"{process.name}: GPU touch of {vma.name}"
        yield from self._paging.fault_in(vma, virtual, virtual, what, write=request.vector.write, trap=True)

    def _handled(self, worker: _Worker, request: _Request, before: list[int]) -> None:
        now = self._env.now
        vector, process = request.vector, request.process
        self.use.add(request.started_ps, now, 1)
        worker.busy = False
        self.iommu.completed()
        self._asked.pop(vector.key, None)
        vma = process.mm.find(vector.virtual)
        if not process.dead and vma is not None:
            self._fill(vector.region, vector.page, vma, worker.chain.snapshot())
            self._gpu.retry.counters_of(vector.region.vm).serviced += 1
            self._record(request, worker.chain, before)
            self._retry.replay(vector.region, vector.page)
        self._next()

    def _failed(self, worker: _Worker, request: _Request, failure: SimulatedFailure) -> None:
        worker.busy = False
        self.iommu.completed()
        self._asked.pop(request.vector.key, None)
        self._gpu.retry.counters_of(request.vector.region.vm).failed += 1
        request.process.kill(failure.outcome, str(failure))
        self._next()

    def _record(self, request: _Request, chain: Chain, before: list[int]) -> None:
        now = self._env.now
        vector = request.vector
        resend = self._retry.command_ps
        spent = {kind: chain.sums[kind] - before[kind] for kind in PIECES}
        spent[Kind.FAULT_DELIVERY] = request.logged_ps - vector.sent_ps
        spent[Kind.FAULT_QUEUE] = request.started_ps - request.logged_ps
        spent[Kind.RESEND] = resend
        if not self._recorder.on:
            return
        self._log.add(
            self._gpu.index,
            request.process.number,
            client=vector.client,
            access=vector.access,
            write=vector.write,
            migrated=False,
            numbers=(vector.virtual, 1, 1, vector.sent_ps, request.started_ps, now, now + resend),
            pieces=[spent[kind] for kind in PIECES],
        )

    # -- the rest of a fault service -------------------------------------------------------------------------------

    def count(self, process: KfdProcess, fate: str) -> None:
        """One more page request of a process met a fate."""
        self._counts.setdefault(process.number, Counter())[fate] += 1

    def fatal_fault(self, region: Region, page: int, write: bool) -> None:
        """XNACK is off: the access kills its process."""
        kill_for_fault(self.processes[region.vm], self._gpu.name, region, page, write=write)

    def drop(self, process: KfdProcess) -> None:
        """The process has died: what it asked for is not waited for any more."""
        self._asked = {key: value for key, value in self._asked.items() if value.process is not process}

    def unmapped(self, process: KfdProcess) -> None:
        """Addresses of a process go away: the notifier has told the ATC."""

    def fates(self, process: KfdProcess, sends: int, pending: int) -> dict[str, int]:
        """Page requests that found the log full."""
        return {"overflowed": self._counts.get(process.number, Counter())["overflowed"]}

    def interrupts_of(self, process: KfdProcess) -> tuple[int, int]:
        """Page requests that were read from the log, and the CPU time of the IOMMU thread for them."""
        mine = self._counts.get(process.number, Counter())["vectors"]
        whole = sum(counts["vectors"] for counts in self._counts.values())
        return mine, self.interrupts.busy_ps * mine // whole if whole else 0

    def counters(self) -> dict[str, int]:
        """What the ATC, the IOMMU and its log have seen."""
        names = {0: "4k", 3: "32k", 9: "2m"}
        return {
            "ats_requests": self.iommu.requests,
            "ats_found": sum(counts["translated"] for counts in self._counts.values()),
            "page_requests": self.iommu.page_requests,
            "ppr_log_peak": self.iommu.log.peak,
            "ppr_log_lost": sum(counts["overflowed"] for counts in self._counts.values()),
            **{f"atc_fills_{name}": self.atc.fills[shift] for shift, name in names.items()},
            "atc_evictions": self.atc.evictions,
            "atc_invalidations": self.atc.invalidations,
        }

    def uses(self) -> list[Timeline]:
        """Busy time of the workers, of the IOMMU thread, and of ATS requests."""
        return [self.use, self.interrupts, self.iommu.use]
