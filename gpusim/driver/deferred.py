"""The deferred list of a process: what a munmap leaves to a worker (`kfd_svm.md` 1.7, 2 step 11, 3.5).

munmap itself unmaps pages on the GPUs and frees them; ranges are split and removed by a work item, which needs the SVM
mutex and takes its turn behind whoever waits for it. Until then the ranges stand in the list, and their buffer objects
keep their VRAM: faults on them are dropped and sent again, also those on parts that stay. Attribute calls wait until
the list is empty. Left out: the delay of the work queue, the list for free (no address is used again), and the other
things that the driver defers (adding ranges anew after attribute calls have split them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpusim.driver.driver_spec import DriverCosts
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.svm_range import CPU, SvmRange, exclusively
from gpusim.engine.environment import Environment
from gpusim.engine.record import Chain, Recorder, Snapshot
from gpusim.engine.stages import Do, Stages, run_stages
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind
from gpusim.linux.address_space import VRAM, Vma


class DeferredList:
    """`drop_bo[gpu]` gives the buffer object of a range up.

    `drained` counts the pieces that the worker has removed, `refused` the faults that were dropped before.
    """

    def __init__(
        self,
        process: KfdProcess,
        *,
        env: Environment,
        recorder: Recorder,
        costs: DriverCosts,
        drop_bo: Sequence[Callable[[SvmRange], None]],
        on_cores: Callable[[Stages], Stages],
    ) -> None:
        self._process = process
        self._env = env
        self._recorder = recorder
        self._costs = costs
        self._drop_bo = drop_bo
        self._on_cores = on_cores
        self._list: list[tuple[Vma, int, int]] = []
        self._scheduled = False
        self._path: Snapshot = ([], 0)
        self._since_ps = 0
        self._actor = recorder.actor(f"{process.name}.deferred_work") if recorder.spans else 0
        self.drained = 0
        self.refused = 0

    def add(self, chain: Chain, vma: Vma, first: int, last: int) -> None:
        """Pages first..last have been unmapped; `chain` led here. The worker comes as soon as it gets the mutex."""
        for svm in self._process.ranges.within(first, last):
            svm.deferred = True
            if svm.bo_on != CPU:
                svm.vram_pages = vma.count(svm.first, svm.last, VRAM + svm.bo_on)
        self._list.append((vma, first, last))
        if not self._scheduled:
            self._scheduled = True
            self._path, self._since_ps = chain.snapshot(), self._env.now
            self._process.lock.acquire(self._process.number + 1, self._work)

    def flush(self) -> Stages:
        """What an attribute call waits for; it holds the mutex."""
        while self._list:
            yield from self._remove(*self._list.pop(0))

    def _work(self) -> None:
        """svm_range_deferred_list_work, with the mutex."""
        self._scheduled = False
        chain = Chain(self._recorder, self._actor)
        chain.follow(self._path, self._since_ps)
        chain.spend(Kind.LOCK_WAIT, self._env.now)
        run_stages(
            self._env,
            chain,
            self._on_cores(self.flush()),
            lambda: self._done(chain),
            lambda failure: self._failed(chain, failure),
        )

    def _done(self, chain: Chain) -> None:
        self._process.lock_path = chain.snapshot()
        self._process.lock.release()

    def _failed(self, chain: Chain, failure: SimulatedFailure) -> None:
        self._done(chain)
        self._process.kill(failure.outcome, str(failure))

    def _remove(self, vma: Vma, first: int, last: int) -> Stages:
        for svm in self._process.ranges.within(first, last):
            yield from exclusively(svm, self._take_out(svm, vma, first, last))

    def _take_out(self, svm: SvmRange, vma: Vma, first: int, last: int) -> Stages:
        """Cut first..last out of a range, whose migrate mutex is held: what is left of it can be faulted on again."""
        yield Kind.DRIVER_FIXED, self._costs.range_create

        def gone() -> None:
            process = self._process
            if vma.gone or process.ranges.find(svm.first) is not svm:  # freed meanwhile
                return
            inside = process.split(svm, max(first, svm.first), min(last, svm.last))
            if inside.bo_on != CPU:
                self._drop_bo[inside.bo_on](inside)
            process.remove_range(inside)
            self.drained += 1

        yield Do(gone)
