"""Wavefronts that walk their steps, fault where a page is not mapped, and share the memory of their GPU.

A wave step yields at most once for memory; a wave that waits for a page yields once more. Waves whose steps cannot
wait are not simulated one by one: see `dispatch`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from gpusim.engine.environment import Lean
from gpusim.engine.record import NO_ROW, Snapshot
from gpusim.hardware.gpuvm import HOST, Region
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
        "dispatch",
        "lean",
        "page",
        "region",
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
        """The wave's critical path up to now."""
        sums = self.base[0].copy()
        spent = self._spent
        sums[Kind.RESEND] += spent[0]
        sums[Kind.TRANSLATION] += spent[1]
        sums[Kind.COMPUTE] += spent[2]
        sums[Kind.HBM] += spent[3]
        sums[Kind.ZERO_COPY_LINK] += spent[4]
        row = self.base[1]
        recorder = self.dispatch.gpu.recorder
        if recorder.spans:
            start = self.base_ps
            for kind, length in zip(_SPENT_KINDS, spent, strict=True):
                if length:
                    row = recorder.span(
                        self.who,
                        kind,
                        start,
                        start + length,
                        cause=row,
                        queued_behind=NO_ROW,
                        released_by=row,
                    )
                    start += length
            self.base = (sums, row)
            self.base_ps = start
            self._spent = [0, 0, 0, 0, 0]
        return sums, row

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
        added = 0
        looks_up = d.stream.translation_ps is None
        alone = d.alone_ps
        spent = self._spent
        clean = True  # no page of the last step was missing
        while True:
            index = take(self, clean)
            if index < 0:
                break
            remote = False
            clean = True
            for operand, first, last in touches(index):
                region = operand.region
                valid = region.valid
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
                    page = valid.find(0, page, last + 1)
                if valid[first] == HOST:
                    remote = True
            start = env._now
            if remote:
                d.cross_link(index, resume)
                yield None
                if d.dead:
                    return
                spent[4] += env._now - start
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
                spent[2 if length <= alone + added else 3] += length
            d.steps_done += 1
        d.retired(self)


_SPENT_KINDS = (Kind.RESEND, Kind.TRANSLATION, Kind.COMPUTE, Kind.HBM, Kind.ZERO_COPY_LINK)
