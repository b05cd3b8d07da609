"""One memory instruction of a wavefront whose lanes hit several pages: which lanes are served, and who is replayed.

Each lane whose page is there goes ahead at once. For every other page one access waits, with the mask of its lanes; a
re-send that finds the page replays those lanes and no others. A page that has gone again in between sends on. So a
store or an atomic of a lane is done exactly once, whatever is mapped and evicted meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


class LaneAccess:
    """Lane i accesses `pages[i]`. `pending` and `served` are masks of lanes; `execute` is told each lane once."""

    __slots__ = ("_execute", "_lanes_of", "pending", "served")

    def __init__(self, pages: Sequence[int], execute: Callable[[int], None] | None = None) -> None:
        lanes_of: dict[int, int] = {}
        for lane, page in enumerate(pages):
            lanes_of[page] = lanes_of.get(page, 0) | 1 << lane
        self._lanes_of = lanes_of
        self._execute = execute
        self.pending = (1 << len(pages)) - 1
        self.served = 0

    @property
    def done(self) -> bool:
        """Have all lanes been served?"""
        return not self.pending

    def waiting(self) -> dict[int, int]:
        """Page -> lanes that wait for it, in the order of the lanes."""
        return {page: left for page, lanes in self._lanes_of.items() if (left := lanes & self.pending)}

    def issue(self, missing: Callable[[int], bool]) -> dict[int, int]:
        """The first send of all lanes; returns what `waiting` returns then."""
        for page, lanes in self._lanes_of.items():
            if not missing(page):
                self._serve(lanes)
        return self.waiting()

    def replay(self, page: int) -> int:
        """A re-send finds `page`: its lanes that still wait are served. Returns them."""
        lanes = self._lanes_of[page] & self.pending
        self._serve(lanes)
        return lanes

    def _serve(self, lanes: int) -> None:
        lanes &= self.pending
        self.pending &= ~lanes
        self.served |= lanes
        if self._execute is not None:
            for lane in lanes_in(lanes):
                self._execute(lane)


def lanes_in(mask: int) -> Iterable[int]:
    """The numbers of the lanes of a mask, from the lowest."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
