"""Making room in a full VRAM: TTM evicts whole buffer objects of SVM ranges, oldest first (`kfd_svm.md` 3.4).

Whoever allocates picks victims and waits for their eviction fences. Behind a fence a worker holds the victim range's
migrate mutex and moves its pages to RAM; GPUs that had them mapped lose the mapping, and a wavefront that needs one
faults again. hipMalloc memory never leaves. Pages that CPU threads hold are tried three times; then the driver gives
the memory away all the same, where this model still saves them. Left out: the delay of the work queue, and the eviction
of whole processes, which only graphics could cause.
"""

from __future__ import annotations

from collections.abc import Callable

from gpusim.driver.events import EventLog
from gpusim.driver.migrate import Migration, Trigger
from gpusim.driver.policies import Choice
from gpusim.driver.svm_range import SvmRange, exclusively
from gpusim.driver.tries import empty
from gpusim.driver.vram import SvmBo, Vram
from gpusim.engine.stages import Stages, Transfer, Until
from gpusim.kinds import Kind
from gpusim.linux.address_space import VRAM


class Eviction:
    """The evictions of one GPU's VRAM."""

    def __init__(self, *, vram: Vram, migration: Migration, choose: Choice, events: EventLog) -> None:
        self._events = events
        self._vram = vram
        self._migration = migration
        self._choose = choose

    def make_room(self, pages: int) -> Stages:
        """Evict until `pages` are free. The limit has admitted them, so that enough can go."""
        vram = self._vram
        while vram.free < pages:
            victim = self._choose(bo for bo in vram.bos if not bo.evicting)
            if victim is not None:
                yield from _as_eviction(self._evict(victim))
            else:  # others have all in hand
                yield Transfer(Kind.EVICTION, next(iter(vram.bos)).when_gone)

    def _evict(self, bo: SvmBo) -> Stages:
        """svm_range_evict_svm_bo_worker."""
        bo.evicting = True
        while bo.ranges:
            svm = next(iter(bo.ranges))
            yield from exclusively(svm, self._leave(bo, svm))

    def _leave(self, bo: SvmBo, svm: SvmRange) -> Stages:
        process = bo.process
        if svm not in bo.ranges:  # its last page left, or its process died, while this waited
            return
        vma = process.mm.find(svm.first)
        if vma is not None:
            migration, trigger = self._migration, Trigger.TTM_EVICTION
            if not (yield from empty(migration, process, vma, svm, trigger, self._events)):
                process.remark(
                    f"The eviction of {vma.name} failed in three tries, since CPU threads had faulted on "
                    f"{svm.vram_pages} pages of it. The driver gives their memory away; here they are saved."
                )
                vma.held -= set(vma.held_at(svm.first, svm.last, VRAM + svm.bo_on))
                yield from migration.to_ram(process, vma, svm, svm.first, svm.last, trigger)
        self._migration.drop_bo(svm)  # pages or not: what it held is discarded


def _transfer_as_eviction(stage: Transfer) -> Transfer:
    def start(done: Callable[[], None]) -> None:
        stage.start(done)
        made.alone_ps = stage.alone_ps

    beside = None if stage.beside is None else (int(Kind.EVICTION), stage.beside[1])
    made = Transfer(Kind.EVICTION, start, beside)
    return made


def _as_eviction(stages: Stages) -> Stages:
    """Whoever waits for an eviction spends all of its time on that."""
    reached = 0
    try:
        stage = next(stages)
        while True:
            if isinstance(stage, tuple):
                reached = yield Kind.EVICTION, sum(stage[1::2])
            elif isinstance(stage, Until):
                reached = yield Until(Kind.EVICTION, stage.end_ps, stage.behind, stage.alone_ps)
            elif isinstance(stage, Transfer):
                reached = yield _transfer_as_eviction(stage)
            else:
                reached = yield stage
            stage = stages.send(reached)
    except StopIteration:
        return
