"""In which order the fault worker meets the pages that wait, while the 2 ms rule drops none of them.

The CAM holds `cam` pages; each of them has one vector in the ring, in the order in which they got their slots. A page
without a slot sends again each period, until one is free: as they all do, who gets it is drawn. A vector whose granule
has been served meanwhile is thrown away when the worker comes to it, and frees its slot only then; a page without a
slot costs the worker nothing once it is mapped. Source: `kfd_svm.md` 1.3-1.5.

Left out: that a freed slot stays empty until the next re-send of any of those without one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusim.driver.fault_queue import Granule

_FEW = 1024


class RingOrder:
    """`draw` gives random numbers in [0, 1)."""

    def __init__(self, cam: int, draw: Callable[[], float]) -> None:
        self._cam = cam
        self._draw = draw
        self._ring: deque[Granule] = deque()  # one entry a vector
        self._outside: list[Granule] = []  # one entry a page without a slot

    def sent(self, granule: Granule) -> None:
        """One more page of `granule` waits."""
        if len(self._ring) < self._cam:
            self._ring.append(granule)
        else:
            self._outside.append(granule)

    def throw_away(self) -> list[Granule]:
        """Take out the vectors of served granules that lie ahead of the next one that can be served."""
        ring = self._ring
        thrown = []
        while ring and (ring[0].served or ring[0].gone):
            granule = ring.popleft()
            if granule.served:
                thrown.append(granule)
            self._fill()
        return thrown

    def first(self) -> Granule | None:
        """The granule of the first vector, after `throw_away`."""
        return self._ring[0] if self._ring else None

    def take(self) -> None:
        """The worker takes the first vector."""
        self._ring.popleft()
        self._fill()

    def tidy(self, waiting: int) -> None:
        """Forget entries that mean nothing any more, now and then: `waiting` pages still do."""
        if len(self._ring) + len(self._outside) > 2 * waiting + self._cam + _FEW:
            self._ring = deque(granule for granule in self._ring if not granule.gone)
            self._outside = [granule for granule in self._outside if not (granule.served or granule.gone)]
            while self._outside and len(self._ring) < self._cam:
                self._fill()

    def _fill(self) -> None:
        """A slot is free: one of the pages that have none gets it."""
        outside = self._outside
        while outside:
            index = int(self._draw() * len(outside))
            granule = outside[index]
            last = outside.pop()
            if index < len(outside):
                outside[index] = last
            if not (granule.served or granule.gone):
                self._ring.append(granule)
                return
