"""Wavefronts that walk their steps, fault where a page is not mapped, and share the memory of their GPU.

A wave step yields at most once for memory; a wave that waits for a page yields once more. Waves whose steps cannot
wait are not simulated one by one: see `dispatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from gpusim.engine.environment import Lean
from gpusim.engine.record import NO_ROW, Snapshot
from gpusim.hardware.access import AccessKind, Touch
from gpusim.hardware.gpuvm import INVALID, Waiter
from gpusim.hardware.retry import Sender, sends_until
from gpusim.kinds import Kind

if TYPE_CHECKING:
    from gpusim.hardware.dispatch import Dispatch


class Wave(Sender):
    """One wavefront slot of a dispatch at work.

    Its critical path is `base` (what released it last, up to `base_ps`) and what it did since: waiting for its own
    re-send, then computing, sharing HBM or crossing the link.
    """

    __slots__ = (
        "_asked",
        "_begun",
        "_from",
        "_place",
        "_process",
        "_touches",
        "base",
        "base_ps",
        "compute_ps",
        "dispatch",
        "hbm_ps",
        "index",
        "link_ps",
        "memory_class",
        "row",
        "size_bytes",
        "start_ps",
        "unit",
        "waited_ps",
        "who",
    )

    def __init__(self, dispatch: Dispatch, unit: int, base: Snapshot, base_ps: int) -> None:
        self.dispatch = dispatch
        self.unit = unit
        self.base = base
        self.row = base[1]
        self.behind = NO_ROW
        self.base_ps = base_ps
        self.start_ps = base_ps  # up to here it waited for its re-send
        self.waited_ps = self.compute_ps = self.hbm_ps = self.link_ps = 0  # and what it did since
        self.sent_ps = 0
        self.tick_ps = 0
        self.who = dispatch.actor
        # the step in hand: what it touches, and how far it has found pages valid
        self.index = -1
        self._touches: Sequence[Touch] = ()
        self._place = 0
        self._from = 0
        self._asked = False  # it waits for a page
        self._begun = False  # its memory part has begun, ahead of time
        self.memory_class = dispatch.job_class
        self.size_bytes = dispatch.hbm_bytes
        self._process: Lean | None = None

    @property
    def lean(self) -> Lean:
        """The wave as a process; one whose steps all run ahead does without."""
        if self._process is None:
            self._process = Lean(self.dispatch.env, self._life())
        return self._process

    @property
    def access(self) -> AccessKind:
        """What the access that waits would do."""
        return self._touches[self._place][0].access

    # -- pages -----------------------------------------------------------------------------------------------------

    def _missing(self) -> bool:
        """Look for the next page of the step that is not valid, from where the last look ended."""
        touches = self._touches
        place = self._place
        start = self._from
        while True:
            operand, _, last = touches[place]
            region = operand.region
            page = operand.valid.find(INVALID, start, last + 1)
            if page >= 0:
                self.region = region
                self.page = page
                self.write = operand.write
                self._place = place
                self._from = page
                return True
            place += 1
            if place == len(touches):
                self._place = place - 1
                self._from = last + 1
                return False
            start = touches[place][1]

    def _remote(self) -> bool:
        """Does part of the step lie behind a link?"""
        far = self.dispatch.far
        return any(operand.valid[first] >= far for operand, first, _ in self._touches)

    # -- a wait that ends ------------------------------------------------------------------------------------------

    def valid_at(self, time_ps: int) -> None:
        """The page waited for became valid at `time_ps`, or is to be looked for again: go on at the next re-send."""
        self.valid_together((self,), time_ps, -1)

    @staticmethod
    def valid_together(waves: Sequence[Waiter], time_ps: int, last: int) -> None:
        """`valid_at` for many, in one loop: this and `due` are what a step of a first touch costs."""
        dispatch = None
        sends = 0
        for wave in waves:
            if not isinstance(wave, Wave):
                wave.valid_at(time_ps)
                continue
            if wave.dispatch is not dispatch:
                if dispatch is not None:
                    dispatch.counters.sends += sends
                sends = 0
                dispatch = wave.dispatch
                period = dispatch.gpu.retry.period_ps
                releasing = dispatch.gpu.releasing
                ahead = dispatch.runs_ahead
                far = dispatch.far
                free_ps = dispatch.free_ps
                job_class = dispatch.job_class
            tick = wave.tick_ps
            if time_ps >= tick >= 0:
                rounds = (time_ps - tick) // period
                sends += rounds + 2
                resume = tick + (rounds + 1) * period
            elif tick >= 0:
                sends += 1
                resume = tick
            else:  # its queue was stopped, and goes on now
                resume = time_ps
            wave.base = releasing
            wave.base_ps = time_ps
            wave.start_ps = resume
            wave.waited_ps = wave.compute_ps = wave.hbm_ps = wave.link_ps = 0
            if ahead:
                touches = wave._touches
                if len(touches) == 1:
                    operand, first, end = touches[0]
                    valid = operand.valid
                    if end <= last and wave.region.writable is None:
                        local = valid[first] < far
                    else:
                        local = valid.find(INVALID, wave._from, end + 1) < 0 and valid[first] < far
                else:
                    local = wave._all_local()
                if local and job_class.run_ahead(wave, resume, free_ps):
                    continue
            wave.lean.wake_at(resume)
        if dispatch is not None:
            dispatch.counters.sends += sends

    def _all_local(self) -> bool:
        """Are all pages of the step valid, and none behind a link?"""
        return not self._remote() and all(
            operand.valid.find(INVALID, first, last + 1) < 0 for operand, first, last in self._touches
        )

    # -- a step whose memory part is known ahead: one event, at its end ---------------------------------------------

    def begin(self) -> None:
        """Take the first step."""
        if self._take(True):
            if self._missing():
                self._asked = True
                self.dispatch.fault(self)
            else:
                self.lean.resume()
        else:
            self.dispatch.retired(self)

    def _take(self, clean: bool) -> bool:
        """Go on to the next step, if there is one; `clean` says that the last one found all pages valid."""
        dispatch = self.dispatch
        self.index = index = dispatch.take(self, clean)
        if index < 0:
            return False
        self._touches = touches = dispatch.touches(index)
        self._place = 0
        self._from = touches[0][1]
        return True

    def due(self, now: int) -> None:
        """The step has ended; take the next one, up to its first page that is missing."""
        dispatch = self.dispatch
        memory = dispatch.memory
        memory.moved += self.size_bytes
        if now >= memory.turn_ps:
            memory.settle(now)
        if dispatch.dead:
            return
        start = self.start_ps
        if dispatch.waiting:
            self.waited_ps = int((now - start) * dispatch.waiting)
        self.compute_ps = now - start - self.waited_ps
        if dispatch.spans:
            self._go_on(start)
            self._computed(start, now, self.waited_ps)
        dispatch.steps_done += 1
        self.index = index = dispatch.take(self, False)
        if index < 0:
            dispatch.retired(self)
            return
        self._touches = touches = dispatch.touches(index)
        operand, first, last = touches[0]
        region = operand.region
        valid = operand.valid
        page = first if valid[first] == INVALID else valid.find(INVALID, first, last + 1)
        self._place = 0
        if page >= 0:
            self.region = region
            self._from = self.page = page
            self.write = operand.write
            self._asked = True
            dispatch.fault(self)
            return
        self._from = first
        if self._missing():
            self._asked = True
            dispatch.fault(self)
        else:
            self._asked = False
            self.lean.resume()

    def not_begun(self) -> None:
        """Look again when the re-send comes: pages may have gone meanwhile."""
        self._place = 0
        self._from = self._touches[0][1]
        self.lean.wake_at(self.start_ps)

    def shares(self) -> Callable[[], None]:
        """The memory part has begun and will end at another time than foreseen."""
        self._begun = True
        return self.lean.resume

    def stopped(self, now_ps: int) -> None:
        """Its queue is evicted: it waits without sending."""
        self.sent_ps = now_ps
        self.tick_ps = -1

    def sends_pending(self, now_ps: int) -> int:
        """Sends so far of a wave that still waits."""
        if self.tick_ps < 0:
            return 0
        return sends_until(now_ps, self.tick_ps, self.dispatch.gpu.retry.period_ps)

    def path(self) -> Snapshot:
        """The wave's critical path up to the end of what it has done."""
        sums = self.base[0].copy()
        sums[Kind.RESEND] += self.start_ps - self.base_ps
        sums[self.dispatch.waiting_kind] += self.waited_ps
        sums[Kind.COMPUTE] += self.compute_ps
        sums[Kind.HBM] += self.hbm_ps
        sums[Kind.ZERO_COPY_LINK] += self.link_ps
        return sums, self.row

    def _go_on(self, now_ps: int) -> None:
        """The wait for a page ended at `now_ps` with a re-send: record both."""
        self._asked = False
        recorder = self.dispatch.gpu.recorder
        if not recorder.spans:
            return
        served = self.base[1]
        wait = recorder.span(
            self.who,
            Kind.FAULT_QUEUE,
            self.sent_ps,
            self.base_ps,
            alone_ps=0,
            cause=self.row,
            queued_behind=self.behind,
            released_by=served,
        )
        self.row = recorder.span(self.who, Kind.RESEND, self.base_ps, now_ps, cause=wait, released_by=served)

    def _moved(self, kind: Kind, start_ps: int, now_ps: int, alone_ps: int) -> None:
        """Record the memory part of a step."""
        self.row = self.dispatch.gpu.recorder.span(
            self.who, kind, start_ps, now_ps, alone_ps=alone_ps, cause=self.row, released_by=self.row
        )

    def _computed(self, start_ps: int, now_ps: int, waited_ps: int) -> None:
        """Record a step at the wave's own rate: first what it waited for, then the rest."""
        if waited_ps:
            kind = self.dispatch.waiting_kind
            self._moved(kind, start_ps, start_ps + waited_ps, waited_ps)
            start_ps += waited_ps
        self._moved(Kind.COMPUTE, start_ps, now_ps, now_ps - start_ps)

    def _goes_on(self) -> bool:
        return not self.dispatch.dead

    def _life(self) -> Generator[int | None, None, None]:
        """From the step in hand on."""
        d = self.dispatch
        env = d.env
        take = self._take
        fault = d.fault
        missing = self._missing
        run_free = d.job_class.run_free
        finish_free = d.job_class.finish_free
        lean = self.lean
        resume = lean.resume
        size = d.hbm_bytes
        added = 0
        looks_up = d.stream.translation_ps is None
        alone = d.alone_ps
        spans = d.gpu.recorder.spans
        while self._goes_on():
            clean = not self._asked  # no page of this step was missing
            if self._asked:
                self._go_on(self.start_ps)
            while not self._begun and missing():
                clean = False
                self._asked = True
                fault(self)
                # on from here, it may be with another step: those that ran ahead do not come by
                yield None
                if d.dead:
                    return
                if self._asked:
                    self._go_on(self.start_ps)
            start = env._now
            if self._begun:  # ahead of time, until others came to share the memory
                self._begun = False
                start = self.start_ps
                self.hbm_ps += env._now - start
                if spans:
                    self._moved(Kind.HBM, start, env._now, alone)
            elif self._remote():
                d.cross_link(self.index, resume)
                yield None
                if d.dead:
                    return
                self.link_ps += env._now - start
                if spans:
                    self._moved(Kind.ZERO_COPY_LINK, start, env._now, env._now - start)
            else:
                if looks_up:
                    added = d.translate(self.unit, self.index)
                delay = run_free(size, lean, added)
                if delay is None:
                    yield None
                else:
                    yield delay
                    if not finish_free(lean):
                        yield None
                if (
                    added
                ):  # a wavefront that shares the bandwidth waits for its translations as one that does not
                    left = start + d.free_ps + added - env._now
                    if left > 0:
                        yield left
                if d.dead:
                    return
                length = env._now - start
                if length <= alone + added:
                    waiting = min(length, added + int(length * d.waiting))
                    self.waited_ps += waiting
                    self.compute_ps += length - waiting
                    if spans:
                        self._computed(start, env._now, waiting)
                else:
                    self.hbm_ps += length
                    if spans:
                        self._moved(Kind.HBM, start, env._now, alone + added)
            d.steps_done += 1
            if not take(clean):
                d.retired(self)
                return
