"""How busy the copy engines of a GPU are: each of them is busy or idle, however many copies share them."""

from __future__ import annotations

from heapq import heappop, heappush

from gpusim.engine.timeline import Timeline


class EngineUse:
    """`lanes` engines that copies of programs and jobs of the driver take; all of them at work are 100 %.

    More copies than engines take turns packet by packet, and a job gets its turn between two packets: then the engines
    are as busy as before. Copies begin and end now; jobs are told of when they are booked, now or ahead of time.
    """

    __slots__ = ("_busy", "_edges", "_lanes", "_since_ps", "_timeline", "copies")

    def __init__(self, name: str, lanes: int) -> None:
        self._timeline = Timeline(name)
        self._lanes = lanes
        self._busy = 0  # copies and jobs that want an engine now
        self._since_ps = 0  # the timeline knows what was before
        self._edges: list[tuple[int, int]] = []  # when jobs begin (1) and end (-1), a heap
        self.copies = 0  # under way

    def copy_begins(self, now_ps: int) -> None:
        """A copy wants an engine from now on."""
        self._advance(now_ps)
        self._busy += 1
        self.copies += 1

    def copy_ends(self, now_ps: int, begun_ps: int, size_bytes: int) -> None:
        """A copy has moved `size_bytes` since `begun_ps`."""
        self._advance(now_ps)
        self._busy -= 1
        self.copies -= 1
        self._timeline.add(begun_ps, now_ps, size_bytes, 0)

    def job(self, now_ps: int, start_ps: int, end_ps: int, size_bytes: int) -> None:
        """A job of the driver has an engine from `start_ps` to `end_ps`, neither before now."""
        self._advance(now_ps)
        self._timeline.add(start_ps, end_ps, size_bytes, 0)
        if end_ps > start_ps:
            heappush(self._edges, (start_ps, 1))
            heappush(self._edges, (end_ps, -1))

    def until(self, end_ps: int) -> Timeline:
        """The timeline, brought up to the end of the run: what began later is not in it."""
        self._advance(end_ps)
        return self._timeline

    def _advance(self, now_ps: int) -> None:
        edges = self._edges
        while edges and edges[0][0] <= now_ps:
            at, change = heappop(edges)
            self._passed(at)
            self._busy += change
        self._passed(now_ps)

    def _passed(self, at_ps: int) -> None:
        since = self._since_ps
        if at_ps > since:
            busy = self._busy
            if busy:
                lanes = self._lanes
                self._timeline.add(since, at_ps, 0, (at_ps - since) * min(busy, lanes) // lanes)
            self._since_ps = at_ps
