"""The fault worker with every send simulated: the reference for the closed forms of `fault_queue`.

A page that is not in the CAM sends at each of its ticks until a slot is free; its vector then reaches the ring after
the delivery time. The worker takes vectors in order: it drops those of a range that was restored less than 2 ms ago
(the page sends again), throws those away whose page is mapped by now, and serves the others.
"""

from __future__ import annotations

from collections import deque

from gpusim.driver.fault_server import FaultServer
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.reporting import Reporting
from gpusim.driver.restore import Plan, Restore
from gpusim.driver.svm_range import SvmRange
from gpusim.driver.waiting import Granule
from gpusim.engine.record import Snapshot
from gpusim.engine.timeline import Timeline
from gpusim.hardware.access import AccessKind, Client
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import INVALID
from gpusim.hardware.retry import Fault, first_send_after
from gpusim.kinds import Kind


class Vector:
    """An interrupt vector: a copy of the fault, which outlives its wavefront's wait."""

    __slots__ = (
        "access",
        "behind",
        "client",
        "old",
        "page",
        "process",
        "region",
        "sent_ps",
        "snapshot",
        "tick_ps",
        "write",
    )

    def __init__(self, fault: Fault, process: KfdProcess) -> None:
        self.region = fault.region
        self.page = fault.page
        self.write = fault.write
        self.client: Client = fault.client
        self.access: AccessKind = fault.access
        self.sent_ps = fault.sent_ps
        self.tick_ps = fault.tick_ps
        self.snapshot = fault.path()
        self.behind = fault.behind
        self.process = process
        self.old = False  # its process has unmapped memory since it came to the ring

    def path(self) -> Snapshot:
        return self.snapshot

    @property
    def found(self) -> bool:
        """Would the access find its PTE now?"""
        return self.region.seen(self.write)[self.page] != INVALID

    @property
    def virtual(self) -> int:
        """The virtual page number."""
        return self.region.first_page + self.page


class StepwiseWorker(FaultServer):
    """See the module."""

    def __init__(self, reporting: Reporting, *, name: str, cost_ps: int) -> None:
        super().__init__(reporting, name=name, cost_ps=cost_ps)
        self._ring: deque[Vector] = deque()
        self._in_cam: set[Vector] = set()
        self._known: set[tuple[int, int]] = set()  # pages that are in the CAM or try to get there

    def connect(self, gpu: Gpu, restore: Restore) -> None:
        """Wire it to its GPU."""
        self._gpu = gpu
        self._restore = restore
        self._period = gpu.retry.period_ps

    def retry_fault(self, fault: Fault) -> None:
        """An access was sent for the first time; the CAM may know its page."""
        vector = Vector(fault, self.processes[fault.region.vm])
        key = (vector.process.number, vector.virtual)
        if key not in self._known:
            self._known.add(key)
            self._send(vector)

    def drop(self, process: KfdProcess) -> None:
        """The process has died; its vectors are thrown away as they come up."""

    def _resolve(self, vector: Vector) -> None:
        self._in_cam.discard(vector)
        self._known.discard((vector.process.number, vector.virtual))

    def _send(self, vector: Vector) -> None:
        if vector.found or vector.region.vm.dead:
            self._resolve(vector)
            return
        now = self._env.now
        if len(self._in_cam) < self._gpu.spec.retry.cam_entries:
            self._in_cam.add(vector)
            self._env.call_at(now + self._gpu.delivery_ps, lambda: self._arrived(vector))
        else:
            self._env.call_at(first_send_after(now, vector.tick_ps, self._period), lambda: self._send(vector))

    def _arrived(self, vector: Vector) -> None:
        self._ring.append(vector)
        if not self._busy:
            self._arm()

    def _arm(self) -> None:
        """Take the next vector from the ring, once the worker is free."""
        if self._busy or not self._ring or self._armed is not None:
            return
        self._armed = self._env.call_at(max(self._free_ps, self._env.now), self._begin)

    def _begin(self) -> None:
        self._armed = None
        vector = self._ring.popleft()
        process = vector.process
        if vector.old:
            vector.old = False
            self._stale[process.number] += 1
            self._look_and_drop(vector, again=not vector.found)
        elif vector.found or process.dead:
            self.thrown[process.number] = self.thrown.get(process.number, 0) + 1
            self._look_and_drop(vector, again=False)
        elif self._restore.window_end(process.ranges.find(vector.virtual)) > self._env.now:
            self._skipped[process.number] = self._skipped.get(process.number, 0) + 1
            self._look_and_drop(vector, again=True)
        else:
            granule = Granule(vector.virtual, vector.region, process)
            granule.faults[vector.page] = vector
            self._serve(granule)

    def _look_and_drop(self, vector: Vector, *, again: bool) -> None:
        end = self._env.now + self._cost
        self.use.add(self._env.now, end, 0)
        self._free_ps = end
        self._busy = True

        def dropped() -> None:
            self._busy = False
            if again:
                self._in_cam.discard(vector)
                tick = first_send_after(self._env.now, vector.tick_ps, self._period)
                self._env.call_at(tick, lambda: self._send(vector))
            else:
                self._resolve(vector)
            self._arm()

        self._env.call_at(end, dropped)

    def unmapped(self, process: KfdProcess) -> None:
        """Addresses of a process go away: vectors that lie in the ring are not to be trusted."""
        for vector in self._ring:
            vector.old = vector.old or vector.process is process

    def uses(self) -> list[Timeline]:
        """Busy time of the worker."""
        return [self.use]

    def _again(self, granule: Granule) -> None:
        vector = granule.first()
        assert isinstance(vector, Vector)
        self._look_and_drop(vector, again=True)

    def _too_soon(self, granule: Granule, svm: SvmRange | None) -> None:
        number = granule.process.number
        self._skipped[number] = self._skipped.get(number, 0) + 1
        self._again(granule)

    def _throw_away(self, granule: Granule) -> None:
        self.chain.spend(Kind.DUPLICATES, self._env.now)
        vector = granule.first()
        assert isinstance(vector, Vector)
        number = vector.process.number
        self.thrown[number] = self.thrown.get(number, 0) + 1
        self._look_and_drop(vector, again=False)

    def _answered(self, granule: Granule, plan: Plan) -> int:
        vector = granule.first()
        assert isinstance(vector, Vector)
        self._resolve(vector)
        return 0
