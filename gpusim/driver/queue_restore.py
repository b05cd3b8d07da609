"""An invalidation stops the queues of a process, and a worker maps again and lets them go on.

So it is with XNACK off, for ranges that are always mapped, and for registered memory (user pointers). The first
eviction stops all queues and starts the restore work, which runs 1 ms later (svm_range_restore_work, `kfd_svm.md` 3.5).
It maps every part that was invalidated, where its pages lie now; what HMM finds missing is allocated or read from swap.
Where that fails, or another invalidation came meanwhile, it starts again 1 ms later.
"""

from __future__ import annotations

from collections.abc import Callable

from gpusim.driver.driver_spec import DriverCosts
from gpusim.driver.events import EventLog, EvictionTrigger
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.page_tables import map_as_it_lies
from gpusim.driver.table_writer import TableWriter
from gpusim.engine.cores import Cores
from gpusim.engine.environment import Environment
from gpusim.engine.record import Chain, Recorder, Snapshot
from gpusim.engine.stages import Stages, run_stages
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind
from gpusim.linux.address_space import Vma
from gpusim.linux.paging import Paging

#: attempts without success after which nothing can be expected of another one
MOST_ATTEMPTS = 100


class QueueRestore:
    """The restore work of one process. `released` is told the path of the worker before queues go on."""

    def __init__(
        self,
        process: KfdProcess,
        *,
        env: Environment,
        recorder: Recorder,
        costs: DriverCosts,
        tables: TableWriter,
        paging: Paging,
        events: EventLog,
        released: Callable[[Snapshot], None],
        cores: Cores | None = None,
    ) -> None:
        self._cores = cores
        self._process = process
        self._env = env
        self._recorder = recorder
        self._costs = costs
        self._tables = tables
        self._paging = paging
        self._events = events
        self._released = released
        self._invalid: list[tuple[Vma, int, int]] = []
        self._scheduled = False
        self._attempts = 0
        self._path: Snapshot = ([], 0)
        self._since_ps = 0
        self._actor = recorder.actor(f"{process.name}.restore_work") if recorder.spans else 0

    def evict(
        self,
        chain: Chain,
        vma: Vma,
        first: int,
        last: int,
        trigger: EvictionTrigger = EvictionTrigger.SVM,
    ) -> None:
        """Pages first..last are invalid from now on; `chain` led here."""
        self._invalid.append((vma, first, last))
        process, now = self._process, self._env.now
        if not process.stopped:
            process.stop_queues()
            for gpu in process.vms:
                if process.gpus >> gpu & 1:
                    self._events.queue_eviction(now, process.number, gpu, trigger)
        if not self._scheduled:
            self._path, self._since_ps = chain.snapshot(), now
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled = True
        self._env.call_at(self._env.now + self._costs.restore_delay, self._work)

    def _work(self) -> None:
        process = self._process
        if process.dead:
            return
        process.lock.acquire(process.number + 1, self._locked)

    def _locked(self) -> None:
        env = self._env
        chain = Chain(self._recorder, self._actor)
        chain.follow(self._path, self._since_ps)
        chain.spend(Kind.QUEUES_STOPPED, env.now)
        parts, self._invalid = self._invalid, []
        self._scheduled = False
        run_stages(
            env,
            chain,
            self._stages(parts) if self._cores is None else self._cores.shared(self._stages(parts)),
            lambda: self._done(chain, parts),
            lambda failure: self._failed(chain, failure, parts),
        )

    def _stages(self, parts: list[tuple[Vma, int, int]]) -> Stages:
        """svm_range_validate_and_map of every invalid part."""
        process = self._process
        for vma, first, last in parts:
            for start, end, rights in vma.parts(first, last):
                if rights is None or not rights.read or vma.gone:
                    continue
                what = f"{process.name}: restore of {vma.name}"
                yield from self._paging.fault_in(vma, start, end, what, write=rights.write, trap=False)
                yield Kind.HMM_WALK, self._paging.hmm_walk_ps(vma, start, end)
                yield from self._tables.stages(end - start + 1)

    def _map(self, vma: Vma, first: int, last: int, by: int) -> None:
        if vma.gone:
            return
        for start, end, rights in vma.parts(first, last):
            if rights is None or not rights.read:
                continue
            for region in self._process.regions_of(vma):
                map_as_it_lies(region, vma, start, end, self._env.now, writable=rights.write)
        for svm in self._process.ranges.within(first, last):
            svm.validated_ps = self._env.now
            svm.validated_by = by
            svm.mapped = True

    def _done(self, chain: Chain, parts: list[tuple[Vma, int, int]]) -> None:
        process = self._process
        self._attempts = 0
        path = chain.snapshot()
        process.lock_path = path
        self._released(path)
        for vma, first, last in parts:
            self._map(vma, first, last, path[1])
        if self._scheduled or self._invalid:  # evicted again meanwhile: the next round lets them go on
            process.lock.release()
            return
        self._told(rescheduled=False)
        if not process.dead:
            process.start_queues(self._env.now)
        process.lock.release()

    def _failed(self, chain: Chain, failure: SimulatedFailure, parts: list[tuple[Vma, int, int]]) -> None:
        """HMM could not give it pages: the work is put off, again and again."""
        process = self._process
        process.lock_path = self._path = chain.snapshot()
        self._since_ps = self._env.now
        process.lock.release()
        self._attempts += 1
        self._told(rescheduled=True)
        if self._attempts > MOST_ATTEMPTS:
            process.kill(
                "livelock",
                f"the restore work of {process.name} has failed {self._attempts} times, once a "
                f"{self._costs.restore_delay // 10**9} ms, and its queues stay stopped: {failure}",
            )
            return
        self._invalid = parts + self._invalid
        if not self._scheduled:
            self._schedule()

    def _told(self, *, rescheduled: bool) -> None:
        process = self._process
        for gpu in process.vms:
            if process.gpus >> gpu & 1:
                self._events.queue_restore(self._env.now, process.number, gpu, rescheduled=rescheduled)
