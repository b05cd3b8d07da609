"""A stretch: many wavefronts over steps that cannot wait, as one weighted job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpusim.engine.channel import Job
from gpusim.engine.flows import Flow
from gpusim.engine.record import Snapshot
from gpusim.kinds import Kind

if TYPE_CHECKING:
    from gpusim.hardware.dispatch import Dispatch


class Stretch:
    """Steps first..first+steps-1 of a dispatch, worked off by `weight` wavefronts together.

    It lasts as long as its slowest resource, which gets all of its time: the waves' own rate (compute), HBM shared
    with others, or the CPU link.
    """

    __slots__ = (
        "_base",
        "_capped",
        "_class",
        "_dispatch",
        "_done",
        "_flows",
        "_job",
        "_open",
        "_own_ps",
        "_since",
        "_slots_ps",
        "_start",
        "_step_ps",
        "_ways",
        "first",
        "steps",
        "weight",
    )

    def __init__(
        self,
        dispatch: Dispatch,
        first: int,
        steps: int,
        *,
        weight: int,
        base: Snapshot,
        done: Callable[[Snapshot], None],
    ) -> None:
        self._dispatch = dispatch
        self.first = first
        self.steps = steps
        self.weight = weight
        self._base = base
        self._done = done
        self._start = self._since = dispatch.env.now
        self._slots_ps = 0
        self._class = dispatch.job_class
        self._step_ps = dispatch.step_ps
        self._capped = dispatch.job_class.capped_ps
        local, ways = dispatch.step_parts(first)
        self._open = (local > 0) + len(ways)
        self._flows: list[Flow] = []
        self._job: Job | None = None
        self._own_ps = 0.0
        self._ways: dict[Flow, tuple[tuple[tuple[str, float], ...], float]] = {}
        for path, per_step in ways:
            self._send(path, round(per_step * steps), per_step)
        if local or not self._open:
            self._open = max(self._open, 1)
            size = max(1, round(local * steps))
            self._own_ps = dispatch.job_class.alone_ps(size) / weight
            self._job = dispatch.job_class.enter_group(size, weight, self._job_ended)

    def _send(self, path: tuple[tuple[str, float], ...], size: int, per_step: float) -> None:
        cap = self._dispatch.link_cap(path, per_step) * self.weight
        flow = self._dispatch.gpu.network.transfer(path, size, cap_bytes_per_s=cap, done=self._flow_ended)
        self._ways[flow] = (path, per_step)
        self._flows.append(flow)

    def reweight(self, weight: int) -> None:
        """More or fewer wavefronts work on it from now on."""
        if weight != self.weight:
            self._slots_ps = self._slot_time()
            self._since = self._dispatch.env.now
            self.weight = weight
            self.keep_pace()
            for flow in list(self._flows):
                path, per_step = self._ways[flow]
                left = flow.size_bytes - flow.cut()
                self._flows.remove(flow)
                self._send(path, left, per_step)

    def keep_pace(self) -> None:
        """Its steps take as long as those of the dispatch do now."""
        if self._job is not None:
            self._job.reweight(self.weight * self._step_ps / self._dispatch.step_ps)

    def _slot_time(self) -> int:
        """Picoseconds of all slots together so far."""
        return self._slots_ps + self.weight * (self._dispatch.env.now - self._since)

    def _job_ended(self) -> None:
        self._job = None
        self._part_ended(Kind.HBM)

    def _flow_ended(self, flow: Flow) -> None:
        self._flows.remove(flow)
        self._part_ended(Kind.ZERO_COPY_LINK)

    def _part_ended(self, kind: Kind) -> None:
        self._open -= 1
        if self._open == 0:
            self._done(self._path(kind))

    def _path(self, kind: Kind) -> Snapshot:
        """The critical path at the end of the stretch, whose last part to end was of `kind`."""
        dispatch = self._dispatch
        if not dispatch.recording:
            return self._base
        sums, row = self._base[0].copy(), self._base[1]
        now = dispatch.env.now
        length = now - self._start
        if kind is Kind.ZERO_COPY_LINK:
            parts = [(Kind.ZERO_COPY_LINK, length)]
        else:
            capped = self._class.capped_ps - self._capped
            if 2 * capped >= length:
                alone = min(length, self._slot_time() // min(dispatch.slots, self.steps))
                waiting = round(alone * dispatch.waiting)
                parts = [
                    (Kind.COMPUTE, alone - waiting),
                    (dispatch.waiting_kind, waiting),
                    (Kind.WAVE_SLOTS, length - alone),
                ]
            else:
                parts = [(Kind.HBM, length)]
        start = self._start
        recorder = dispatch.gpu.recorder
        for part, spent in parts:
            sums[part] += spent
            if recorder.spans and spent:
                # with nobody else it would have run at its own rate
                alone = min(spent, round(self._own_ps)) if part is Kind.HBM else spent
                row = recorder.span(
                    dispatch.actor, part, start, start + spent, alone_ps=alone, cause=row, released_by=row
                )
                start += spent
        return sums, row

    def cut(self) -> tuple[int, Snapshot]:
        """End it now: whole steps done, and the path up to now."""
        done = self.steps
        kind = Kind.HBM
        if self._job is not None:
            size = self._job.size_bytes
            done = min(done, self.steps * self._job.cut() // size)
        for flow in self._flows:
            size = max(1, round(self._ways[flow][1] * self.steps))
            left = flow.size_bytes - flow.cut()
            share = self.steps * (size - left) // size
            if share < done or self._job is None:
                kind = Kind.ZERO_COPY_LINK
            done = min(done, share)
        self._flows = []
        self._job = None
        return done, self._path(kind)
