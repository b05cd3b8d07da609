"""Serving one retry fault: what every kind of fault worker does with a vector that it does not drop.

It holds the SVM mutex of the process from the look-up to the end of the mapping (`kfd_svm.md` 1.5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from gpusim.driver.fatal_fault import kill_for_fault, refused
from gpusim.driver.fault_log import PIECES
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.reporting import Reporting
from gpusim.driver.restore import Plan, Serves
from gpusim.driver.svm_range import SvmRange
from gpusim.driver.waiting import Granule
from gpusim.engine.environment import Timer
from gpusim.engine.record import NO_ROW, Chain, Snapshot
from gpusim.engine.stages import run_stages
from gpusim.engine.timeline import Timeline
from gpusim.errors import SimulatedFailure
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import Region, Vm
from gpusim.hardware.retry import Fault, first_send_after
from gpusim.kinds import Kind

_KINDS: Final = [int(kind) for kind in PIECES]
# places of pieces
_DELIVERY: Final = PIECES.index(Kind.FAULT_DELIVERY)
_SKIP: Final = PIECES.index(Kind.RECENT_SKIP)
_QUEUE: Final = PIECES.index(Kind.FAULT_QUEUE)
_LOCK: Final = PIECES.index(Kind.LOCK_WAIT)
_RESEND: Final = PIECES.index(Kind.RESEND)
# and kinds as plain numbers: to look up a member of an enum takes as long as much of a stage
_DUPLICATES: Final = int(Kind.DUPLICATES)
_FAULT_DELIVERY: Final = int(Kind.FAULT_DELIVERY)
_FAULT_QUEUE: Final = int(Kind.FAULT_QUEUE)
_RECENT_SKIP: Final = int(Kind.RECENT_SKIP)
_LOCK_WAIT: Final = int(Kind.LOCK_WAIT)


class FaultServer(ABC):
    """Serves faults one at a time; what it works on next is its child's business."""

    _gpu: Gpu
    _restore: Serves
    _period: int
    # the fault in hand: when the worker took it up, and got the mutex; the window that it had waited for
    _granule: Granule
    _process: KfdProcess
    _page: int
    _fault: Fault
    _before: list[int]
    _asked_ps: int
    _granted_ps: int
    _window_ps: int

    def __init__(self, reporting: Reporting, *, name: str, cost_ps: int) -> None:
        self._env, recorder, self._log, self.events = reporting
        self._recorder = recorder
        self._number = recorder.actor(name) + 1
        self.chain = Chain(recorder, self._number - 1)
        self._cost = cost_ps
        self._stale: Counter[int] = Counter()
        self._skipped: dict[int, int] = {}
        self.processes: dict[Vm, KfdProcess] = {}
        self._busy = False
        self._armed: Timer | None = None
        self._free_ps = 0
        self._plan: Plan | None = None
        self._when_granted: Callable[[], None] = self._granted
        self._when_mapped: Callable[[], None] = self._mapped
        self._when_failed: Callable[[SimulatedFailure], None] = self._failed
        self.use = Timeline(name)
        self.thrown: dict[int, int] = {}  # vectors of mapped pages that it looked at, by process number

    def attach(self, vm: Vm, process: KfdProcess) -> None:
        """Faults of `vm` belong to `process`."""
        self.processes[vm] = process

    def fatal_fault(self, region: Region, page: int, write: bool) -> None:
        """XNACK is off: the access kills its process."""
        kill_for_fault(self.processes[region.vm], self._gpu.name, region, page, write=write)

    @abstractmethod
    def _arm(self) -> None:
        """Start on the next vector when there is one."""

    @abstractmethod
    def _throw_away(self, granule: Granule) -> None:
        """All its pages have become valid meanwhile: look, and drop."""

    @abstractmethod
    def _again(self, granule: Granule) -> None:
        """The vector in hand could not be served now: its page sends again."""

    @abstractmethod
    def _answered(self, granule: Granule, plan: Plan) -> int:
        """Take what was answered out; returns how many vectors the worker looks at for that."""

    def _too_soon(self, granule: Granule, svm: SvmRange | None) -> None:
        """Its range has been restored less than 2 ms ago."""
        self._again(granule)

    def _serve(self, granule: Granule) -> None:
        """Look its first vector up, and take the mutex of its process."""
        self._busy = True
        self._asked_ps = now = self._env._now
        self._granule = granule
        self._process = process = granule.process
        found = granule.open()
        if process.dead or found is None:
            self._throw_away(granule)
            return
        page, fault = found
        svm = process.ranges.find(granule.region.first_page + page)
        self._window_ps = window = self._restore.window_end(svm)
        self._catch_up(fault, window, 0 if svm is None else svm.validated_by)
        if window > now:
            self._too_soon(granule, svm)
        else:
            process.lock.acquire(self._number, self._when_granted)

    def _catch_up(self, fault: Fault, window_ps: int, validated_by: int = NO_ROW) -> None:
        """Bring the worker's path up to now: what was it that let it start on this fault only now?

        The window that ends at `window_ps` began with the span `validated_by`.
        """
        now = self._env.now
        chain = self.chain
        if fault.sent_ps >= chain.time_ps:  # it had nothing to do before
            free = chain.row
            chain.follow(fault.path(), fault.sent_ps)
            chain.meet(_FAULT_DELIVERY, free)
            if window_ps <= fault.sent_ps + self._gpu.delivery_ps:
                chain.spend(_FAULT_DELIVERY, now)
                return
        elif self._recorder.spans:
            chain.meet(_FAULT_QUEUE, fault.path()[1])
        if window_ps > chain.time_ps:  # `window_ps` has passed by now
            since = now - window_ps + self._restore.skip_ps if validated_by else None
            chain.spend(_RECENT_SKIP, now, alone_ps=since, behind=validated_by)
        elif now > fault.sent_ps + self._gpu.delivery_ps:
            chain.spend(_DUPLICATES, now)
        else:
            chain.spend(_DUPLICATES, min(self._free_ps, now))
            chain.spend(_FAULT_DELIVERY, now)

    def _granted(self) -> None:
        """The mutex is taken: examine the fault, and serve it."""
        granule, process, chain = self._granule, self._process, self.chain
        self._granted_ps = now = self._env._now
        if process.lock_path is not None:
            if now > self._asked_ps:
                chain.released(_LOCK_WAIT, process.lock_path, now)
            else:
                chain.meet(_LOCK_WAIT, process.lock_path[1])
        found = granule.open()
        if process.dead or found is None:
            self._done(process, chain.snapshot())
            self._throw_away(granule)
            return
        self._page, self._fault = page, fault = found
        virtual = granule.region.first_page + page
        vma = process.mm.find(virtual)
        refusal = self._restore.examine(process, vma, virtual, fault.write, fault.sent_ps)
        if refusal is not None and not refusal.fatal:
            self._dropped(granule, process, page)
            return
        svm = process.ranges.find(virtual)
        # step 12 comes with the mutex held, and goes by when the worker took the vector up: a fault that waited while
        # its range was restored for somebody else is always too soon
        if now > self._asked_ps and self._restore.window_end(svm) > self._asked_ps:
            self._done(process, chain.snapshot())
            self._too_soon(granule, svm)
            return
        if refusal is not None:
            self._failed(refused(self._gpu.name, virtual, refusal))
            return
        assert vma is not None
        if self.events.on:
            self.events.fault_start(now, process.number, virtual, self._gpu.index, write=fault.write)
        self._plan = plan = Plan()
        if self._recorder.on:
            self._before = chain.sums.copy()
        stages = self._restore.stages(process, vma, virtual, plan)
        run_stages(self._env, chain, stages, self._when_mapped, self._when_failed)

    def _failed(self, failure: SimulatedFailure) -> None:
        """The fault cannot be served, and its PTE is poisoned: the next re-send is fatal for its process.

        Left out: that a PTE which is written again before that saves it.
        """
        granule, process, plan = self._granule, self._process, self._plan
        granule.gone = True
        if plan is not None:
            plan.close(None)
        self._gpu.retry.counters_of(granule.region.vm).failed += 1
        self._done(process, self.chain.snapshot())
        now = self._env.now
        again = min(first_send_after(now, self._fault.tick_ps, self._period), now + self._period)
        self._env.call_at(again, partial(self._resent_to_poison, process, failure))
        self._finish(0)

    def _resent_to_poison(self, process: KfdProcess, failure: SimulatedFailure) -> None:
        """The access finds the poisoned PTE: a fault without retry."""
        if not process.dead:
            process.kill(failure.outcome, str(failure))

    def _mapped(self) -> None:
        """The PTEs are valid from now on."""
        granule, process, plan, gpu = self._granule, self._process, self._plan, self._gpu
        assert plan is not None
        now = self._env._now
        region = granule.region
        waiters = 0
        path = self.chain.snapshot()
        if self.events.on:  # also of a restore that was raced
            at = region.first_page + self._page
            self.events.fault_end(now, process.number, at, gpu.index, migrated=plan.migrated)
        if plan.raced and not process.dead:  # -EAGAIN: whoever invalidated it wins
            plan.close(None)
            self._done(process, path)
            self._again(granule)
            return
        if not process.dead:
            gpu.releasing = path
            waiters = plan.map(region, now)
        plan.close(now, path[1])
        extra = self._answered(granule, plan)
        if extra:
            self.thrown[process.number] = self.thrown.get(process.number, 0) + extra
        gpu.retry.counters_of(region.vm).serviced += 1
        self.use.add(self._asked_ps, now, 1)
        if self._recorder.on:
            self._record(plan, waiters)
        self._done(process, path)
        self._finish(extra)

    def _finish(self, vectors: int) -> None:
        """The worker is free again when it has looked at so many vectors more."""
        self._free_ps = self._env._now + vectors * self._cost
        self._busy = False
        self._plan = None
        self._arm()

    def _done(self, process: KfdProcess, path: Snapshot) -> None:
        """Let the SVM mutex go."""
        process.lock_path = path
        process.lock.release()

    def _dropped(self, granule: Granule, process: KfdProcess, page: int) -> None:
        """A stale fault, or one whose range is about to go: nothing is done, the access is sent again."""
        process.resent[self._gpu.index, granule.region.first_page + page] = self._env._now
        granule.put_last(page)
        self._stale[process.number] += 1
        self._done(process, self.chain.snapshot())
        self._again(granule)

    def _record(self, plan: Plan, waiters: int) -> None:
        """One row of the fault table; its pieces tile the time from the first send to the replay."""
        fault, started, gpu = self._fault, self._asked_ps, self._gpu
        mapped = self._env._now
        replayed = first_send_after(mapped, fault.tick_ps, self._period)
        delivered = fault.sent_ps + gpu.delivery_ps
        delivered = min(delivered, started)
        skip = (self._window_ps if self._window_ps < started else started) - delivered
        skip = max(skip, 0)
        sums, before = self.chain.sums, self._before
        pieces = [sums[kind] - before[kind] for kind in _KINDS]
        pieces[_DELIVERY] += delivered - fault.sent_ps
        pieces[_SKIP] += skip
        pieces[_QUEUE] += started - delivered - skip
        pieces[_LOCK] += self._granted_ps - started
        pieces[_RESEND] += replayed - mapped
        self._log.add(
            gpu.index,
            self._process.number,
            client=fault.client,
            access=fault.access,
            write=fault.write,
            migrated=plan.migrated,
            numbers=(
                self._granule.region.first_page + self._page,
                plan.last - plan.first + 1,
                waiters,
                fault.sent_ps,
                started,
                mapped,
                replayed,
            ),
            pieces=pieces,
        )

    def skipped_by(self, process: KfdProcess) -> int:
        """Vectors of a process that the recent-restore rule dropped."""
        return self._skipped.get(process.number, 0)

    def fates(self, process: KfdProcess, sends: int, pending: int) -> dict[str, int]:
        """What became of the sends of a process, beside those that were served or are pending."""
        return {"skipped_recent": self.skipped_by(process), "stale": self._stale[process.number]}

    def counters(self) -> dict[str, int]:
        """Counters of rings are kept where vectors are simulated one by one."""
        return {}

    def interrupts_of(self, process: KfdProcess) -> tuple[int, int]:
        """Vectors of a process that reached the driver, and the CPU time of interrupts spent on them."""
        served = sum(
            self._gpu.retry.counters_of(vm).serviced
            for vm, owner in self.processes.items()
            if owner is process
        )
        vectors = served + self.skipped_by(process) + self.thrown.get(process.number, 0)
        return vectors, vectors * self._gpu.interrupt_ps
