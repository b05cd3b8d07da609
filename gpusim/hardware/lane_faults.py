"""A wavefront that waits for several pages at once, because the lanes of one instruction hit several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpusim.engine.record import NO_ROW, Snapshot
from gpusim.hardware.access import AccessKind, Instruction, Operand
from gpusim.hardware.gpuvm import INVALID, Waiter
from gpusim.hardware.lanes import LaneAccess
from gpusim.hardware.retry import Sender, first_send_after, sends_until
from gpusim.hardware.wavefronts import Wave


class LaneFault(Sender):
    """The lanes of one instruction that wait for one page: a retry fault of its own, sent again by a timer of its own.

    When it finds the page its lanes are replayed; the wavefront goes on when none of the instruction's lanes wait.
    """

    __slots__ = (
        "_access",
        "_kind",
        "_others",
        "_period",
        "_wave",
        "operand",
        "released",
        "released_ps",
    )

    def __init__(
        self, wave: LaneWave, access: LaneAccess, operand: Operand, page: int, others: list[LaneFault]
    ) -> None:
        self._wave = wave
        self._access = access
        self._others = others
        self._period = wave.dispatch.gpu.retry.period_ps
        self.operand = operand
        self.region = operand.region
        self.page = page
        self.write = operand.write
        self._kind = operand.access
        self.behind = NO_ROW
        self.sent_ps = 0
        self.tick_ps = 0
        self.released: Snapshot = wave.base
        self.released_ps = 0

    @property
    def access(self) -> AccessKind:
        return self._kind

    def send(self) -> None:
        """The access finds no valid PTE."""
        self._wave.dispatch.gpu.retry.fault(self)

    def path(self) -> Snapshot:
        """The critical path that led to the instruction."""
        return self._wave.path()

    def stopped(self, now_ps: int) -> None:
        """The wavefront's queue is evicted: it waits without sending."""
        self.sent_ps = now_ps
        self.tick_ps = -1

    def sends_pending(self, now_ps: int) -> int:
        """Sends so far of lanes that still wait."""
        return 0 if self.tick_ps < 0 else sends_until(now_ps, self.tick_ps, self._period)

    def valid_at(self, time_ps: int) -> None:
        """The page became valid at `time_ps`: its lanes are replayed at the next re-send."""
        dispatch = self._wave.dispatch
        resume = time_ps
        if self.tick_ps >= 0:
            dispatch.counters.sends += sends_until(time_ps, self.tick_ps, self._period)
            resume = first_send_after(time_ps, self.tick_ps, self._period)
        self.released = dispatch.gpu.releasing
        self.released_ps = time_ps
        dispatch.env.call_at(resume, self._resent)

    @staticmethod
    def valid_together(waiters: Sequence[Waiter], time_ps: int, last: int) -> None:
        """`valid_at` for many, of any kind."""
        for waiter in waiters:
            waiter.valid_at(time_ps)

    def _resent(self) -> None:
        wave = self._wave
        if wave.dispatch.dead:
            return
        if self.operand.valid[self.page] == INVALID:
            self.send()  # it has gone again
            return
        self._access.replay(self.page)
        self._others.remove(self)
        if not self._others:
            wave.served(self.released, self.released_ps)


def send_lanes(wave: Wave) -> None:
    """What a dispatch calls when an instruction of a `LaneWave` cannot be served whole."""
    assert isinstance(wave, LaneWave)
    wave.send()


class LaneWave(Wave):
    """A wavefront whose instructions access a page a lane.

    It issues the instructions of a step one after the other; each is over when all of its lanes have been served.
    """

    __slots__ = ("_instructions", "_waiting")

    def _take(self, clean: bool) -> bool:
        if not super()._take(clean):
            return False
        self._waiting: list[LaneFault] = []
        self._instructions: Iterator[Instruction] = self.dispatch.stream.instructions(self.index)
        return True

    def _missing(self) -> bool:
        """Issue instructions until lanes of one have to wait."""
        for operand, pages in self._instructions:
            valid = operand.valid
            access = LaneAccess(pages)
            waiting: list[LaneFault] = []
            for page in access.issue(lambda page, valid=valid: valid[page] == INVALID):  # type: ignore[misc]
                waiting.append(LaneFault(self, access, operand, page, waiting))
            self._waiting = waiting
            if waiting:
                return True
        return super()._missing()

    def send(self) -> None:
        """The lanes of the instruction in hand that found no valid PTE send their accesses."""
        if not self._waiting:  # an operand that all lanes walk side by side
            self.dispatch.gpu.retry.fault(self)
            return
        self.sent_ps = self.dispatch.env.now
        for fault in list(self._waiting):
            fault.send()
            if self.dispatch.dead:
                return

    def served(self, base: Snapshot, base_ps: int) -> None:
        """The last lanes that waited have been replayed now; `base` is the path of what let them, at `base_ps`."""
        self.base = base
        self.base_ps = base_ps
        self.start_ps = self.dispatch.env.now
        self.waited_ps = self.compute_ps = self.hbm_ps = self.link_ps = 0
        self.lean.resume()
