"""The fault worker of one GPU: serves retry faults strictly one at a time (`kfd_svm.md` 1.5), by the fault queue."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.driver.fault_queue import FaultQueue
from gpusim.driver.fault_server import FaultServer
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.restore import Plan, Restore
from gpusim.driver.svm_range import SvmRange
from gpusim.driver.waiting import Granule
from gpusim.engine.timeline import Timeline
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.retry import Fault
from gpusim.kinds import Kind


class FaultWorker(FaultServer):
    """The listener of a GPU's fault interrupts, and the worker behind them.

    `connect` gives it the GPU and what serves a fault; without it no fault can be raised.
    """

    _when_begun: Callable[[], None]

    def connect(self, gpu: Gpu, restore: Restore, queue: FaultQueue) -> None:
        """Wire it to its GPU."""
        self._gpu = gpu
        self._restore = restore
        self.queue = queue
        self._period = gpu.retry.period_ps
        self._when_begun = self._begin

    # -- the interrupt's side --------------------------------------------------------------------------------------

    def retry_fault(self, fault: Fault) -> None:
        """An access was sent for the first time."""
        if self.queue.arrive(fault) and not self._busy:
            self._arm()
        elif self._recorder.spans:
            fault.behind = self.chain.row

    def drop(self, process: KfdProcess) -> None:
        """The process has died."""
        self.queue.drop(process)

    def unmapped(self, process: KfdProcess) -> None:
        """Addresses of a process go away: faults that wait are not to be trusted, and have to be sent again."""
        self.queue.unmapped(process)

    # -- the worker's side -----------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Start on the next fault when the worker gets to it."""
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        start = self.queue.next_start(self._env._now)
        if start is not None:
            self._armed = self._env.call_at(start, self._when_begun)

    def _begin(self) -> None:
        self._armed = None
        now = self._env._now
        granule = self.queue.pick(now)
        if granule is None:
            self._arm()
            return
        spent = self.queue.spent_ps()
        spent = min(spent, now - self._free_ps)
        if spent > 0:
            self.use.add(self._free_ps, now, 0, spent)
            self._free_ps += spent
        self._serve(granule)

    def _finish(self, vectors: int) -> None:
        self.queue.busy_until(self._env._now + vectors * self._cost)
        super()._finish(vectors)

    def _throw_away(self, granule: Granule) -> None:
        number = granule.process.number
        self.thrown[number] = self.thrown.get(number, 0) + 1
        self.chain.spend(Kind.DUPLICATES, self._env._now + self._cost)
        self.queue.mapped_by_others(granule)
        self._finish(1)

    def _too_soon(self, granule: Granule, svm: SvmRange | None) -> None:
        self.queue.too_soon(granule)
        self._again(granule)

    def _again(self, granule: Granule) -> None:
        page = granule.region.first_page + next(iter(granule.faults))
        self.queue.again(granule, granule.process.ranges.find(page))
        self._finish(1)

    def _answered(self, granule: Granule, plan: Plan) -> int:
        self.queue.served(granule, plan.svm, plan.last - plan.first + 1)
        return 0

    def fates(self, process: KfdProcess, sends: int, pending: int) -> dict[str, int]:
        """What became of the sends of a process, beside those that were served or are pending."""
        stale = self._stale[process.number] + self.queue.stale_by(process.number)
        return {"skipped_recent": self.skipped_by(process), "stale": stale}

    def skipped_by(self, process: KfdProcess) -> int:
        """Vectors of a process that the recent-restore rule dropped."""
        return self.queue.skipped_by(process.number)

    def uses(self) -> list[Timeline]:
        """Busy time of the worker."""
        return [self.use]
