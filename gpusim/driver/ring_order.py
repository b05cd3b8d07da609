"""In which order the fault worker meets the vectors of pages that wait, and what it does with those it cannot serve.

The CAM holds `cam` pages; each of them has one vector in the ring, in the order in which they got their slots. A page
without a slot sends again each period, until one is free: as they all do, who gets it is drawn. A vector whose granule
has been served meanwhile is thrown away when the worker comes to it, and frees its slot only then; one of a range that
was restored less than 2 ms ago, or that lay in the ring when its process unmapped memory, is dropped, and its page
sends again; a page without a slot costs the worker nothing
once it is mapped. Source: `kfd_svm.md` 1.3-1.5.

While something can be served, vector after vector is worked off, without events. While nothing can, they go round
and round: only their number is counted then. If all have a slot they keep their order; if more wait than the CAM holds,
nothing is known after one turn but that each of them is as likely as any other to be in a given place of the ring: the
first `blurred` places are drawn when the worker comes to them.

Left out: that a freed slot stays empty until the next re-send of any of those without one.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from gpusim.driver.waiting import Granule

_FEW: Final = 1024


class RingOrder:
    """`draws` are random numbers in [0, 1), used one after the other; looking at a vector costs the worker `cost_ps`.

    The ring is `_head`, `_blurred` unknown vectors, and `_ring`. `_outside` has one entry for each page that has no
    place there or none that is known.
    """

    def __init__(
        self,
        cam: int,
        *,
        cost_ps: int,
        delivery_ps: int,
        thrown: dict[int, int],
        draws: list[float],
    ) -> None:
        self._cam = cam
        self._cost = cost_ps
        self._delivery = delivery_ps
        self._draws = draws
        self._drew = 0
        self._head: Granule | None = None
        self._blurred = 0
        self._ring: deque[Granule] = deque()
        self._outside: list[Granule] = []
        self._turn = 0  # counts stretches in which nothing could be served
        self._due: dict[int, float] = {}  # vectors in the ring that will be thrown away, by process number
        self._old: dict[
            int, int
        ] = {}  # process number: how many vectors from here on are older than its last munmap
        self.stale: dict[int, int] = {}  # vectors dropped because they were, by process number
        self.spent_ps = 0  # time of the worker on vectors that it did not serve
        self.thrown = thrown  # vectors of mapped pages, by process number
        self.skipped: dict[int, float] = {}  # vectors dropped by the recent-restore rule, by process number

    def sent(self, granule: Granule) -> None:
        """One more page of `granule` waits."""
        if len(self._ring) + self._blurred + (self._head is not None) < self._cam:
            self._ring.append(granule)
            granule.slots += 1
        else:
            self._outside.append(granule)

    def meet(self, at_ps: int) -> tuple[int, Granule | None]:
        """From `at_ps` on, work off what cannot be served up to the first vector that can.

        Returns when the worker comes to it; None if there is none.
        """
        cost = self._cost
        at = at_ps
        while True:
            granule = self._head
            if granule is None:
                granule = self._next()
                if granule is None:
                    break
            if granule.served or granule.gone:
                if granule.served:
                    self._threw(granule.process.number)
                    at += cost
                self.take()
                continue
            arrived = granule.first().sent_ps + self._delivery
            if arrived > at:
                self.spent_ps += at - at_ps
                at = at_ps = arrived
            group = granule.group
            number = granule.process.number
            if self._old and number in self._old:
                self.stale[number] = self.stale.get(number, 0) + 1
            elif group is None or group.ready_ps <= at:
                break
            else:
                self.skipped[number] = self.skipped.get(number, 0.0) + 1.0
            at += cost
            if self._old:
                self._older(1)
            granule.slots -= 1
            self._head = None
            if self._outside:
                self._outside.append(granule)
                self._fill()
            else:
                self.sent(granule)
        self.spent_ps += at - at_ps
        return at, granule

    def unmapped(self, number: int, now_ps: int) -> None:
        """A process unmaps memory: those of its vectors that lie in the ring now are not to be trusted."""
        count = (self._head is not None) + self._blurred + len(self._ring)
        for granule in reversed(self._ring):
            if granule.served or granule.first().sent_ps + self._delivery <= now_ps:
                break
            count -= 1  # on its way
        if count:
            self._old[number] = count

    def _older(self, vectors: int) -> None:
        """So many vectors have been met."""
        for number, count in list(self._old.items()):
            if count > vectors:
                self._old[number] = count - vectors
            else:
                del self._old[number]

    def take(self) -> None:
        """The worker takes the first vector."""
        if self._old:
            self._older(1)
        if self._head is not None:
            self._head.slots -= 1
            self._head = None
        self._fill()

    def served(self, granule: Granule) -> None:
        """Its pages are mapped: its other vectors are thrown away when the worker meets them."""
        granule.served = True
        granule.turn = self._turn
        if self._blurred and self._outside:
            granule.share = self._blurred / len(self._outside)
            due = (len(granule.faults) - 1 - granule.slots) * granule.share
            number = granule.process.number
            self._due[number] = self._due.get(number, 0.0) + due

    def go_round(self, vectors: int) -> int:
        """Nothing could be served for a while: the worker met `vectors`.

        Returns how many of them were not dropped for the 2 ms rule: thrown away, or stale.
        """
        old = max(self._old.values(), default=0)
        for number, count in self._old.items():
            self.stale[number] = self.stale.get(number, 0) + min(vectors, count)
        self._older(vectors)
        return max(self._go(vectors), min(vectors, old))

    def _go(self, vectors: int) -> int:
        self._turn += 1
        if self._head is not None:
            self._ring.appendleft(self._head)
            self._head = None
        if self._outside:
            if vectors < self._blurred + len(self._ring):
                return self._go_on(vectors)
            return self._blur(vectors)
        known = len(self._ring)
        kept = [granule for granule in self._ring if not self._ends(granule)]
        thrown = min(vectors, known - len(kept))
        self._ring = deque(kept)
        if kept:
            self._ring.rotate(-((vectors - thrown) % len(kept)))
        return thrown

    def _blur(self, vectors: int) -> int:
        """A turn and more: who was in the ring is outside now, or in it again."""
        ring, outside = self._ring, self._outside
        self._blurred = min(self._blurred + len(ring), self._cam)
        thrown = 0
        for granule in ring:
            granule.slots -= 1
            if self._ends(granule):
                thrown += 1
            else:
                outside.append(granule)
        ring.clear()
        self._blurred = min(self._blurred, len(outside))
        for number, due in self._due.items():
            count = min(vectors - thrown, int(due))
            self.thrown[number] = self.thrown.get(number, 0) + count
            thrown += count
        self._due.clear()
        return thrown

    def _go_on(self, vectors: int) -> int:
        """Less than a turn."""
        ring = self._ring
        thrown = 0
        if not ring:
            return 0  # unknown places remain unknown
        for _ in range(vectors):
            if self._blurred:
                self._blurred -= 1
            else:
                granule = ring.popleft()
                granule.slots -= 1
                if self._ends(granule):
                    thrown += 1
                else:
                    self._outside.append(granule)
            self._place()
        return thrown

    def _ends(self, granule: Granule) -> bool:
        """Is a vector thrown away when the worker meets it?"""
        if granule.served:
            self._threw(granule.process.number)
        return granule.served or granule.gone

    def first_ready(self, at_ps: int) -> None:
        """All vectors are on their way or wait for their next send: those that can be served then come first."""
        ring = self._ring
        ready = [granule for granule in ring if granule.group is None or granule.group.ready_ps <= at_ps]
        if len(ready) < len(ring):
            chosen = set(map(id, ready))
            self._ring = deque([*ready, *(granule for granule in ring if id(granule) not in chosen)])

    def tidy(self, waiting: int) -> None:
        """Forget entries that mean nothing any more, now and then: `waiting` pages still do."""
        if len(self._ring) + len(self._outside) > 2 * waiting + self._cam + _FEW:
            self._ring = deque(granule for granule in self._ring if not granule.gone)
            self._outside = [granule for granule in self._outside if not (granule.served or granule.gone)]
            self._blurred = min(self._blurred, len(self._outside))
            while len(self._outside) > self._blurred and len(self._ring) + self._blurred < self._cam:
                self._place()

    def _threw(self, number: int) -> None:
        if self._old and number in self._old:  # that is what the driver looks at first
            self.stale[number] = self.stale.get(number, 0) + 1
            return
        self.thrown[number] = self.thrown.get(number, 0) + 1

    def _next(self) -> Granule | None:
        """The vector behind the one that was taken."""
        outside = self._outside
        while self._blurred:
            if not outside:
                self._blurred = 0
                break
            granule = self._drawn()
            if granule.gone:
                continue
            if granule.served and (granule.turn < self._turn or self._draw() >= granule.share):
                continue  # it was outside when it was mapped, or has been thrown away
            self._blurred -= 1
            granule.slots += 1
            self._head = granule
            return granule
        if not self._ring:
            self._fill()
        self._head = self._ring.popleft() if self._ring else None
        return self._head

    def _draw(self) -> float:
        self._drew = drew = self._drew + 1 if self._drew + 1 < len(self._draws) else 0
        return self._draws[drew]

    def _drawn(self) -> Granule:
        """Any page of those outside; it is taken out."""
        outside = self._outside
        index = int(self._draw() * len(outside))
        granule = outside[index]
        last = outside.pop()
        if index < len(outside):
            outside[index] = last
        return granule

    def _fill(self) -> None:
        """A slot is free: one of the pages that have none gets it."""
        if self._blurred:
            if self._blurred < len(self._outside):
                if self._ring:
                    self._place()
                else:
                    self._blurred += 1
        else:
            self._place()

    def _place(self) -> None:
        while self._outside:
            granule = self._drawn()
            if not (granule.served or granule.gone):
                self._ring.append(granule)
                granule.slots += 1
                return
