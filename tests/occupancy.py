"""How many are inside something, on average: the left side of Little's law, measured by itself."""

from __future__ import annotations


class Occupancy:
    """Counts who comes and goes, and integrates how many are inside over time.

    `arrived` and `left` count them; `sojourn_ps` is the sum of the stays that have ended, as their owners report
    them; `inside_ps` is the integral of the number inside. In a run that ends empty the two are equal.
    """

    __slots__ = ("_last_ps", "arrived", "inside", "inside_ps", "left", "most", "sojourn_ps")

    def __init__(self) -> None:
        self.arrived = 0
        self.left = 0
        self.inside = 0
        self.most = 0
        self.inside_ps = 0
        self.sojourn_ps = 0
        self._last_ps = 0

    def enter(self, now_ps: int) -> None:
        """One comes."""
        inside = self.inside
        self.inside_ps += inside * (now_ps - self._last_ps)
        self._last_ps = now_ps
        self.arrived += 1
        self.inside = inside = inside + 1
        self.most = max(self.most, inside)

    def leave(self, now_ps: int, since_ps: int) -> None:
        """One goes that came at `since_ps`."""
        self.inside_ps += self.inside * (now_ps - self._last_ps)
        self._last_ps = now_ps
        self.inside -= 1
        self.left += 1
        self.sojourn_ps += now_ps - since_ps

    def mean(self, span_ps: int) -> float:
        """The time average of the number inside over `span_ps` from time 0."""
        return self.inside_ps / span_ps if span_ps else 0.0
