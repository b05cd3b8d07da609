"""A fault worker that takes vectors one by one: from a soft ring, or from ring 1 through the software filter.

Beside serving faults it drops vectors: those sent before an unmap (stale), those of a range that was restored less than
2 ms ago, those whose page is mapped by now. Each costs it time. With `throttle: merge` it looks at all vectors that
wait, serves those of one granule once and several granules under one lock, and keeps those of a range that was just
restored until they can be served.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from gpusim.driver.fault_server import FaultServer
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.merge import MergedRestore
from gpusim.driver.reporting import Reporting
from gpusim.driver.restore import Plan, Serves
from gpusim.driver.svm_range import SvmRange
from gpusim.driver.waiting import Granule
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import Region
from gpusim.hardware.interrupt import Vector
from gpusim.kinds import Kind

if TYPE_CHECKING:
    from gpusim.driver.fault_pipeline import FaultPipeline


class Source(Protocol):
    """Where a worker's vectors come from."""

    decode_ps: int  # what reading one costs this worker

    def next_ps(self, now: int) -> int | None:
        """When the next vector can be read; None while none is on its way."""
        ...

    def take(self, now: int) -> list[Vector]:
        """Read a pass of vectors."""
        ...

    def drops(self, vector: Vector) -> bool:
        """Is this one not worth handling?"""
        ...

    def passed(self) -> None:
        """The pass is over."""
        ...

    def settle(self, now: int) -> None:
        """Pages become valid now: who has sent until then is in the ring."""
        ...

    def waiting(self) -> list[Vector]:
        """Vectors that lie in the ring, oldest first."""
        ...

    def remove(self, vectors: list[Vector]) -> None:
        """Take vectors out of the ring."""
        ...


class VectorWorker(FaultServer):
    """See the module."""

    def __init__(
        self, reporting: Reporting, *, pipeline: FaultPipeline, source: Source, name: str, cost_ps: int
    ) -> None:
        super().__init__(reporting, name=name, cost_ps=cost_ps)
        self._pipeline = pipeline
        self._source = source
        self._batch: deque[Vector] = deque()
        self._held: list[tuple[int, int, Vector]] = []  # throttle: merge; until when, order
        self._order = 0
        self._mates: list[Vector] = []
        self._merge = 0
        self._vector_ps = 0

    def serve_with(self, gpu: Gpu, restore: Serves, *, merge: int, vector_ps: int, restore_ps: int) -> None:
        """Wire the service; `merge` granules go under one lock, 0: each alone. `restore_ps` is then paid once."""
        self._gpu = gpu
        self._period = gpu.retry.period_ps
        self._restore = restore
        self._merge = merge
        self._vector_ps = vector_ps
        self._merged: MergedRestore | None = None
        if merge:
            self._merged = MergedRestore(restore, self.map_now, restore_ps)
            self._restore = self._merged

    def map_now(self, region: Region, plan: Plan) -> None:
        """The PTEs of a granule that is served beside another fault become valid."""
        self._gpu.releasing = self.chain.snapshot()
        plan.map(region, self._env.now)
        plan.close(self._env.now, self.chain.row)

    def arrived(self) -> None:
        """A vector has come, or is on its way sooner than those known."""
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        self._arm()

    def _arm(self) -> None:
        if self._busy or self._armed is not None:
            return
        free = max(self._free_ps, self._env.now)
        if self._batch:
            start: int | None = free
        else:
            start = self._source.next_ps(free)
            if self._held and (start is None or self._held[0][0] < start):
                start = max(free, self._held[0][0])
        if start is not None:
            self._armed = self._env.call_at(start, self._begin)

    def _begin(self) -> None:
        self._armed = None
        now = at = self._env.now
        if not self._batch:
            if self._held and self._held[0][0] <= now:
                self._batch.append(heappop(self._held)[2])
            else:
                self._batch.extend(self._source.take(now))
        vector: Vector | None = None
        while self._batch:
            vector = self._batch.popleft()
            at += self._source.decode_ps
            if not self._source.drops(vector):
                break
            vector = None
        if at > now:
            self.use.add(now, at, 0)
        if vector is None:
            self._end_pass(at)
        elif at > now:
            chosen = vector
            self._busy = True
            self._env.call_at(at, lambda: self._handle(chosen))
        else:
            self._handle(vector)

    def _end_pass(self, at: int) -> None:
        self._free_ps = at
        self._source.passed()
        self._arm()

    def _handle(self, vector: Vector) -> None:
        """svm_range_restore_pages, up to where it knows whether there is something to do."""
        self._busy = True
        now = self._env.now
        pipeline = self._pipeline
        process = pipeline.processes[vector.region.vm]
        if pipeline.is_stale(vector, process):
            self._drop(vector, success=not vector.waits)
        elif not vector.waits or process.dead:
            self._drop(vector)
        elif self._restore.window_end(svm := process.ranges.find(vector.virtual)) > now:
            self._skip(vector, process, svm)
        else:
            if self._merge:
                self._gather(vector, process)
            granule = Granule(vector.virtual, vector.region, process)
            granule.faults[vector.page] = vector
            self._serve(granule)

    def _skip(self, vector: Vector, process: KfdProcess, svm: SvmRange | None) -> None:
        """Its range has been restored less than 2 ms ago: drop it, or keep it until that is over."""
        self._pipeline.count(process, "skipped_recent")
        if self._merge:
            self._order += 1
            heappush(self._held, (self._restore.window_end(svm), self._order, vector))
            self._spend_on(vector, answer=False)
        else:
            self._drop(vector, success=False)

    def _drop(self, vector: Vector, *, success: bool = True) -> None:
        """Look, and throw away."""
        self._spend_on(vector, answer=True, success=success)

    def _spend_on(self, vector: Vector, *, answer: bool, success: bool = True) -> None:
        now = self._env.now
        end = now + self._cost
        self.use.add(now, end, 0)
        self._free_ps = end

        def dropped() -> None:
            if answer:
                if self._pipeline.commands:
                    self._catch_up(vector, 0)
                    self.chain.spend(Kind.DUPLICATES, self._env.now)
                    self._gpu.releasing = self.chain.snapshot()
                self._pipeline.answer(vector, success=success)
            self._next()

        self._env.call_at(end, dropped)

    def _next(self) -> None:
        self._busy = False
        if not self._batch:
            self._source.passed()
        self._arm()

    def _gather(self, vector: Vector, process: KfdProcess) -> None:
        """Vectors of the same process that can be served together with this one."""
        shift = self._restore.unit_pages.bit_length() - 1
        granules: dict[int, int] = {vector.virtual >> shift: vector.virtual}
        mates: list[Vector] = []
        for other in [*self._batch, *self._source.waiting()]:
            if other.pasid != vector.pasid:
                continue
            key = other.virtual >> shift
            if key not in granules:
                if len(granules) >= self._merge or not other.waits:
                    continue
                if self._restore.window_end(process.ranges.find(other.virtual)) > self._env.now:
                    continue
                granules[key] = other.virtual
            mates.append(other)
        gone = set(map(id, mates))
        self._batch = deque(item for item in self._batch if id(item) not in gone)
        self._source.remove(mates)
        self._mates = mates
        firsts = list(granules.values())[1:]
        regions = {mate.virtual: mate.region for mate in mates}
        assert self._merged is not None
        self._merged.others = [(page, regions[page]) for page in firsts]

    # -- hooks of the base -----------------------------------------------------------------------------------------

    def _mapped(self) -> None:
        self._source.settle(self._env.now)
        super()._mapped()

    def _throw_away(self, granule: Granule) -> None:
        vector = granule.first()
        assert isinstance(vector, Vector)
        self.chain.spend(Kind.DUPLICATES, self._env.now)
        self._answer_mates()
        self._drop(vector)

    def _too_soon(self, granule: Granule, svm: SvmRange | None) -> None:
        vector = granule.first()
        assert isinstance(vector, Vector)
        self._answer_mates()
        self._skip(vector, granule.process, svm)

    def _again(self, granule: Granule) -> None:
        vector = granule.first()
        assert isinstance(vector, Vector)
        self._answer_mates()
        self._drop(vector, success=False)

    def _answered(self, granule: Granule, plan: Plan) -> int:
        vector = granule.first()
        assert isinstance(vector, Vector)
        self._pipeline.answer(vector, success=True, mapped_ps=self._env.now)
        answered = self._answer_mates()
        if not self._batch:
            self._source.passed()
        return round(answered * self._vector_ps / self._cost) if answered and self._cost else 0

    def _answer_mates(self) -> int:
        """Vectors that were served along are answered; the others go back to where they were. How many were."""
        mates, self._mates = self._mates, []
        left = [mate for mate in mates if mate.waits]
        self._batch.extendleft(reversed(left))
        for mate in mates:
            if not mate.waits:
                self._pipeline.answer(mate, success=True)
        return len(mates) - len(left)
