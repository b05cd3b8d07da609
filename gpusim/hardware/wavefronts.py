"""Wavefronts that walk their steps, fault where a page is not mapped, and share the memory of their GPU.

A wave step yields at most once for memory; a wave that waits for a page yields once more. Waves whose steps cannot
wait are not simulated one by one: see `dispatch`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from gpusim.engine.environment import Lean
from gpusim.engine.record import NO_ROW, Snapshot
from gpusim.hardware.gpuvm import Region
from gpusim.hardware.retry import sends_until
from gpusim.kinds import Kind

if TYPE_CHECKING:
    from gpusim.hardware.dispatch import Dispatch


class Wave:
    """One wavefront slot of a dispatch at work.

    Its critical path is `base` (what released it last, up to `base_ps`) and what it did since: waiting for its own
    re-send, then computing, sharing HBM or crossing the link.
    """

    __slots__ = (
        "_period",
        "_spent",
        "base",
        "base_ps",
        "behind",
        "dispatch",
        "lean",
        "page",
        "region",
        "row",
        "sent_ps",
        "tick_ps",
        "unit",
        "who",
        "write",
    )

    region: Region
    page: int
    write: bool

    def __init__(self, dispatch: Dispatch, unit: int, base: Snapshot, base_ps: int) -> None:
        self.dispatch = dispatch
        self.unit = unit
        self.base = base
        self.row = base[1]
        self.behind = NO_ROW
        self.base_ps = base_ps
        self._spent = [0, 0, 0, 0, 0]  # re-send, translation, compute, HBM, link
        self.sent_ps = 0
        self.tick_ps = 0
        self._period = dispatch.gpu.retry.period_ps
        self.who = dispatch.actor
        self.lean = Lean(dispatch.env, self._life())

    def valid_at(self, time_ps: int) -> None:
        """The page waited for became valid at `time_ps`: go on at the next re-send."""
        tick = self.tick_ps
        period = self._period
        dispatch = self.dispatch
        if tick < 0:  # its queue was stopped, and goes on now
            resume = time_ps
        elif time_ps < tick:
            dispatch.counters.sends += 1
            resume = tick
        else:
            rounds = (time_ps - tick) // period
            dispatch.counters.sends += rounds + 2
            resume = tick + (rounds + 1) * period
        self.base = dispatch.gpu.releasing
        self.base_ps = time_ps
        spent = self._spent
        spent[0] = resume - time_ps
        spent[1] = spent[2] = spent[3] = spent[4] = 0
        self.lean.wake_at(resume)

    def stopped(self, now_ps: int) -> None:
        """Its queue is evicted: it waits without sending."""
        self.sent_ps = now_ps
        self.tick_ps = -1

    def sends_pending(self, now_ps: int) -> int:
        """Sends so far of a wave that still waits."""
        if self.tick_ps < 0:
            return 0
        return sends_until(now_ps, self.tick_ps, self._period)

    def path(self) -> Snapshot:
        """The wave's critical path up to the end of what it has done."""
        sums = self.base[0].copy()
        for kind, length in zip(_SPENT_KINDS, self._spent, strict=True):
            sums[kind] += length
        return sums, self.row

    def _waited(self, now_ps: int) -> None:
        """Record the wait for a page, and the re-send that ended it."""
        recorder = self.dispatch.gpu.recorder
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

    def _life(self) -> Generator[int | None, None, None]:
        d = self.dispatch
        env = d.env
        touches = d.stream.touches
        take = d.take
        fault = d.gpu.retry.fault
        run_free = d.job_class.run_free
        finish_free = d.job_class.finish_free
        lean = self.lean
        resume = lean.resume
        size = d.hbm_bytes
        far = d.far
        added = 0
        looks_up = d.stream.translation_ps is None
        alone = d.alone_ps
        spent = self._spent
        spans = d.gpu.recorder.spans
        clean = True  # no page of the last step was missing
        while True:
            index = take(self, clean)
            if index < 0:
                break
            remote = False
            clean = True
            for operand, first, last in touches(index):
                region = operand.region
                valid = operand.valid
                page = valid.find(0, first, last + 1)
                while page >= 0:
                    clean = False
                    self.region = region
                    self.page = page
                    self.write = operand.write
                    fault(self)
                    yield None
                    if d.dead:
                        return
                    if spans:
                        self._waited(env._now)
                    page = valid.find(0, page, last + 1)
                if valid[first] == far:
                    remote = True
            start = env._now
            if remote:
                d.cross_link(index, resume)
                yield None
                if d.dead:
                    return
                spent[4] += env._now - start
                if spans:
                    self._moved(Kind.ZERO_COPY_LINK, start, env._now, env._now - start)
            else:
                if looks_up:
                    added = d.translate(self.unit, index)
                delay = run_free(size, lean, added)
                if delay is None:
                    yield None
                else:
                    yield delay
                    if not finish_free(lean):
                        yield None
                if d.dead:
                    return
                length = env._now - start
                if length <= alone + added:
                    translating = min(length, added + int(length * d.translating))
                    spent[1] += translating
                    spent[2] += length - translating
                    if spans:
                        self._moved(Kind.COMPUTE, start, env._now, length)
                else:
                    spent[3] += length
                    if spans:
                        self._moved(Kind.HBM, start, env._now, alone + added)
            d.steps_done += 1
        d.retired(self)


_SPENT_KINDS = (Kind.RESEND, Kind.TRANSLATION, Kind.COMPUTE, Kind.HBM, Kind.ZERO_COPY_LINK)
