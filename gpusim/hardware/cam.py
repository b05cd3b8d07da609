"""What keeps one waiting address from being reported again and again: the retry CAM, or the fault FIFO's own table.

A page that has a slot has one vector on its way to the driver, or in its hands; other sends to it are absorbed. A page
without a slot tries at each of its sends. A slot is freed by the driver's acknowledgement; one that is never
acknowledged hides later faults on its page (`kfd_svm.md` 1.3).
"""

from __future__ import annotations

from collections.abc import Callable

from gpusim.engine.environment import Environment, Timer
from gpusim.hardware.interrupt import Vector
from gpusim.hardware.senders import Senders


class RetryCam:
    """`slots` addresses at once. `emit` is told each vector at the time at which it is sent.

    With `timers` a page that is still missing after its acknowledgement sends again by itself; else by command only.
    """

    def __init__(
        self,
        slots: int,
        *,
        period_ps: int,
        timers: bool,
        env: Environment,
        emit: Callable[[Vector], None],
    ) -> None:
        self._env = env
        self._emit = emit
        self._slots = slots
        self._timers = timers
        self._outside = Senders(period_ps, until_told=not timers)
        self._slot_of: set[tuple[int, int]] = set()  # address and process
        self._claim: Timer | None = None
        self._claim_ps = 0

    def offer(self, vector: Vector) -> None:
        """A wavefront sends an access for the first time."""
        if vector.key in self._slot_of:
            return  # absorbed
        if len(self._slot_of) < self._slots:
            self._take(vector)
        else:
            self._outside.add(vector)

    def acknowledge(self, vector: Vector) -> None:
        """The driver frees the slot; a page that is still missing sends again at its next tick."""
        self._slot_of.discard(vector.key)
        if vector.waits and self._timers:
            self._outside.add(vector)
        self._arm()

    def _take(self, vector: Vector) -> None:
        self._slot_of.add(vector.key)
        self._emit(vector)

    def _arm(self) -> None:
        """Wake up when somebody without a slot sends next."""
        if len(self._slot_of) >= self._slots:
            return
        now = self._env.now
        while True:
            due = self._outside.next_after(now)
            if due is None:
                return
            if due[1].key not in self._slot_of:
                break
            self._outside.remove(due[2])
        if self._claim is not None:
            if self._claim_ps <= due[0]:
                return
            self._claim.cancel()
        self._claim_ps = due[0]
        self._claim = self._env.call_at(due[0], self._claimed)

    def _claimed(self) -> None:
        self._claim = None
        now = self._env.now
        due = self._outside.next_after(now - 1)
        if due is not None and due[0] == now and len(self._slot_of) < self._slots:
            self._outside.remove(due[2])
            if due[1].key not in self._slot_of:
                self._take(due[1])
        self._arm()
