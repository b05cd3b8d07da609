"""The fault worker of one GPU: serves retry faults strictly one at a time (`kfd_svm.md` 1.5).

It holds the SVM mutex of the process from the look-up to the end of the mapping.
"""

from __future__ import annotations

from collections import Counter
from operator import itemgetter, sub

from gpusim.driver.events import EventLog
from gpusim.driver.fatal_fault import kill_for_fault
from gpusim.driver.fault_log import PIECES, FaultLog
from gpusim.driver.fault_queue import FaultQueue, Granule
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.placement import Refusal
from gpusim.driver.restore import Plan, Restore
from gpusim.engine.environment import Environment, Timer
from gpusim.engine.record import NO_ROW, Chain, Recorder, Snapshot
from gpusim.engine.stages import run_stages
from gpusim.engine.timeline import Timeline
from gpusim.errors import SimulatedFailure
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import Region, Vm
from gpusim.hardware.retry import Fault, first_send_after
from gpusim.kinds import Kind

_pieces = itemgetter(*map(int, PIECES))
_DELIVERY = PIECES.index(Kind.FAULT_DELIVERY)
_SKIP = PIECES.index(Kind.RECENT_SKIP)
_QUEUE = PIECES.index(Kind.FAULT_QUEUE)
_LOCK = PIECES.index(Kind.LOCK_WAIT)
_RESEND = PIECES.index(Kind.RESEND)


class FaultWorker:
    """The listener of a GPU's fault interrupts, and the worker behind them.

    `connect` gives it the GPU and what serves a fault; without it no fault can be raised.
    """

    def __init__(
        self,
        *,
        env: Environment,
        recorder: Recorder,
        log: FaultLog,
        events: EventLog,
        name: str,
        cost_ps: int,
    ) -> None:
        self._env = env
        self._log = log
        self._recorder = recorder
        self._number = recorder.actor(name) + 1
        self.chain = Chain(recorder, self._number - 1)
        self._cost = cost_ps
        self.events = events
        self._stale: Counter[int] = Counter()
        self.processes: dict[Vm, KfdProcess] = {}
        self._busy = False
        self._armed: Timer | None = None
        self._free_ps = 0
        self._throwing_ps = 0
        self._was_busy = False
        self.use = Timeline(name)
        self.thrown: dict[int, int] = {}  # vectors of mapped pages that it looked at, by process number

    def connect(self, gpu: Gpu, restore: Restore, queue: FaultQueue) -> None:
        """Wire it to its GPU."""
        self._gpu = gpu
        self._restore = restore
        self.queue = queue
        self._arrive = queue.arrive
        self._period = gpu.retry.period_ps

    def attach(self, vm: Vm, process: KfdProcess) -> None:
        """Faults of `vm` belong to `process`."""
        self.processes[vm] = process

    # -- the interrupt's side --------------------------------------------------------------------------------------

    def retry_fault(self, fault: Fault) -> None:
        """An access was sent for the first time."""
        if self._arrive(fault) and not self._busy:
            self._arm()
        elif self._recorder.spans:
            fault.behind = self.chain.row

    def fatal_fault(self, region: Region, page: int, write: bool) -> None:
        """XNACK is off: the access kills its process."""
        kill_for_fault(self.processes[region.vm], self._gpu.name, region, page, write=write)

    def drop(self, process: KfdProcess) -> None:
        """The process has died."""
        self.queue.drop(process)

    # -- the worker's side -----------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Start on the next fault when the worker gets to it."""
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        for granule in self.queue.throw_away():
            number = granule.process.number
            self.thrown[number] = self.thrown.get(number, 0) + 1
            self._free_ps += self._cost
        start = self.queue.next_start(self._free_ps, self._env.now, self._was_busy)
        if start is not None:
            self._armed = self._env.call_at(start, self._begin)

    def _begin(self) -> None:
        self._armed = None
        now = self._env.now
        if self._free_ps > self._throwing_ps:  # duplicates of the last granule, as far as time has passed
            self.use.add(self._throwing_ps, min(self._free_ps, now), 0)
            self._throwing_ps = self._free_ps
        dropping = self.queue.charge(self._free_ps, now, self._was_busy)
        if dropping:
            self.use.add(self._free_ps, now, 0, dropping)
        granule = self.queue.pick(now)
        if granule is None:
            self._arm()
            return
        self._serve(granule)

    def _serve(self, granule: Granule) -> None:
        """Look its first vector up, and take the mutex of its process."""
        self._busy = True
        now = self._env.now
        process = granule.process
        found = granule.open()
        if process.dead or found is None:
            self._throw_away(granule)
            return
        page, fault = found
        svm = process.ranges.find(granule.region.first_page + page)
        window = self._restore.window_end(svm)
        self._catch_up(fault, window, 0 if svm is None else svm.validated_by)
        process.lock.acquire(self._number, lambda: self._granted(granule, process, window, now))

    def _throw_away(self, granule: Granule) -> None:
        """All its pages have become valid meanwhile: look, and drop."""
        end = self._env.now + self._cost * self.queue.dismiss(granule)
        self.chain.spend(Kind.DUPLICATES, end)
        self._free_ps = end
        self._busy = False
        self._was_busy = True
        self._arm()

    def _catch_up(self, fault: Fault, window_ps: int, validated_by: int = NO_ROW) -> None:
        """Bring the worker's path up to now: what was it that let it start on this fault only now?

        The window that ends at `window_ps` began with the span `validated_by`.
        """
        now = self._env.now
        chain = self.chain
        if fault.sent_ps >= chain.time_ps:  # it had nothing to do before
            free = chain.row
            chain.follow(fault.path(), fault.sent_ps)
            chain.meet(Kind.FAULT_DELIVERY, free)
            chain.spend(Kind.FAULT_DELIVERY, now)
            return
        if self._recorder.spans:
            chain.meet(Kind.FAULT_QUEUE, fault.path()[1])
        if window_ps > chain.time_ps:  # `window_ps` has passed by now
            since = now - window_ps + self._restore.skip_ps if validated_by else None
            chain.spend(Kind.RECENT_SKIP, now, alone_ps=since, behind=validated_by)
        elif now > fault.sent_ps + self._gpu.delivery_ps:
            chain.spend(Kind.DUPLICATES, now)
        else:
            chain.spend(Kind.DUPLICATES, min(self._free_ps, now))
            chain.spend(Kind.FAULT_DELIVERY, now)

    def _granted(self, granule: Granule, process: KfdProcess, window_ps: int, asked_ps: int) -> None:
        env = self._env
        now = env.now
        chain = self.chain
        if process.lock_path is not None:
            if now > asked_ps:
                chain.released(Kind.LOCK_WAIT, process.lock_path, now)
            else:
                chain.meet(Kind.LOCK_WAIT, process.lock_path[1])
        found = granule.open()
        if process.dead or found is None:
            process.lock_path = chain.snapshot()
            process.lock.release()
            self._throw_away(granule)
            return
        page, _ = found
        virtual = granule.region.first_page + page
        vma = process.mm.find(virtual)
        fault = granule.faults[page]
        refusal = self._restore.examine(process, vma, virtual, fault.write, fault.sent_ps)
        if refusal is not None:
            if refusal.fatal:
                self._failed(granule, process, _fatal(self._gpu.name, virtual, refusal))
            else:
                self._dropped(granule, process, virtual)
            return
        assert vma is not None
        if self.events.on:
            self.events.fault_start(now, process.number, virtual, self._gpu.index, write=fault.write)
        plan = Plan()
        before = chain.sums.copy() if self._recorder.on else None
        stages = self._restore.stages(process, vma, virtual, plan)
        run_stages(
            env,
            chain,
            stages,
            lambda: self._mapped(granule, process, plan, page, (window_ps, asked_ps, now), before),
            lambda failure: self._failed(granule, process, failure, plan),
        )

    def _failed(
        self, granule: Granule, process: KfdProcess, failure: SimulatedFailure, plan: Plan | None = None
    ) -> None:
        """The fault cannot be served: the next re-send is fatal for its process."""
        granule.gone = True
        if plan is not None:
            plan.close(None)
        self._gpu.retry.counters_of(granule.region.vm).failed += 1
        process.lock_path = self.chain.snapshot()
        process.lock.release()
        process.kill(failure.outcome, str(failure))
        self._busy = False
        self._free_ps = self._env.now
        self._arm()

    def _mapped(
        self,
        granule: Granule,
        process: KfdProcess,
        plan: Plan,
        page: int,
        times: tuple[int, int, int],
        before: list[int] | None,
    ) -> None:
        """The PTEs are valid from now on."""
        env, chain, gpu = self._env, self.chain, self._gpu
        now = env.now
        region = granule.region
        fault = granule.faults[page]
        waiters = 0
        path = chain.snapshot()
        if self.events.on:  # also of a restore that was raced
            at = region.first_page + page
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
        self.thrown[process.number] = self.thrown.get(process.number, 0) + extra
        gpu.retry.counters_of(region.vm).serviced += 1
        self.use.add(times[1], now, 1)
        if before is not None:
            self._record(process, region.first_page + page, fault, plan, waiters, times, before)
        self._done(process, path)
        self._throwing_ps = now
        self._free_ps = now + extra * self._cost
        self._was_busy = True
        self._busy = False
        self._arm()

    def _done(self, process: KfdProcess, path: Snapshot) -> None:
        """Let the SVM mutex go."""
        process.lock_path = path
        process.lock.release()

    def _dropped(self, granule: Granule, process: KfdProcess, page: int) -> None:
        """A stale fault, or one whose range is about to go: nothing is done, the access is sent again."""
        now = self._env.now
        for other in granule.faults:
            process.resent[self._gpu.index, granule.region.first_page + other] = now
        self._stale[process.number] += 1
        self._done(process, self.chain.snapshot())
        self._again(granule)

    def _again(self, granule: Granule) -> None:
        """Its pages wait for the worker again."""
        count = len(granule.faults)
        self.queue.served(granule, None, self._env.now)
        self._free_ps = self._env.now + count * self._cost
        self._was_busy = True
        self._busy = False
        self._arm()

    def _answered(self, granule: Granule, plan: Plan) -> int:
        """Take what was answered out; returns how many vectors the worker will have to throw away."""
        return self.queue.served(granule, plan.svm, self._env.now)

    def skipped_by(self, process: KfdProcess) -> int:
        """Vectors of a process that the recent-restore rule dropped."""
        return round(self.queue.skipped.get(process.number, 0.0))

    def fates(self, process: KfdProcess, sends: int, pending: int) -> dict[str, int]:
        """What became of the sends of a process, beside those that were served or are pending."""
        return {"skipped_recent": self.skipped_by(process), "stale": self._stale[process.number]}

    def interrupts_of(self, process: KfdProcess) -> tuple[int, int]:
        """Vectors of a process that reached the driver, and the CPU time of interrupts spent on them."""
        served = sum(
            self._gpu.retry.counters_of(vm).serviced
            for vm, owner in self.processes.items()
            if owner is process
        )
        vectors = served + self.skipped_by(process) + self.thrown.get(process.number, 0)
        return vectors, vectors * self._gpu.interrupt_ps

    def unmapped(self, process: KfdProcess) -> None:
        """Addresses of a process go away: faults that wait are not to be trusted, and have to be sent again."""
        if self._waiting():
            process.checkpoint(self._gpu.index, self._env.now)

    def _waiting(self) -> int:
        """How many pages wait for the worker."""
        return len(self.queue)

    def uses(self) -> list[Timeline]:
        """Busy time of the worker."""
        return [self.use]

    def _record(
        self,
        process: KfdProcess,
        page: int,
        fault: Fault,
        plan: Plan,
        waiters: int,
        times: tuple[int, int, int],
        before: list[int],
    ) -> None:
        """One row of the fault table; its pieces tile the time from the first send to the replay."""
        window, started, granted = times
        mapped = self._env.now
        replayed = first_send_after(mapped, fault.tick_ps, self._period)
        delivered = min(fault.sent_ps + self._gpu.delivery_ps, started)
        skip = max(0, min(window, started) - delivered)
        after = self.chain.sums
        pieces = list(map(sub, _pieces(after), _pieces(before)))
        pieces[_DELIVERY] += delivered - fault.sent_ps
        pieces[_SKIP] += skip
        pieces[_QUEUE] += started - delivered - skip
        pieces[_LOCK] += granted - started
        pieces[_RESEND] += replayed - mapped
        self._log.add(
            self._gpu.index,
            process.number,
            write=fault.write,
            migrated=plan.migrated,
            numbers=(
                page,
                plan.last - plan.first + 1,
                waiters,
                fault.sent_ps,
                started,
                mapped,
                replayed,
            ),
            pieces=pieces,
        )


def _fatal(gpu: str, page: int, refusal: Refusal) -> SimulatedFailure:
    """What kills a process whose fault the driver refuses: the poisoned PTE makes the next retry fatal."""
    at = f"memory access fault by {gpu} on address {page * 4096:#x}"
    if refusal is Refusal.NO_RANGE:
        return SimulatedFailure("vm_fault", f"{at}: nothing is mapped there any more; it was freed too early")
    _, _, why = refusal.value.partition(": ")
    return SimulatedFailure("vm_fault", f"{at}: {why} ({refusal.value.split(':')[0]})")
