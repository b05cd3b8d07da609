"""The lock of a GPU under which AIS pins and unpins buffers: very many very short turns, first come, first served."""

from __future__ import annotations

from gpusim.engine.timeline import TURN_BITS, Timeline


class PinLock:
    """A `Server` of one lane that tells its timeline of its turns bin by bin, not one by one.

    `wanted` says whether the last turn had to wait; `row` is the span of the last turn, where spans are recorded.
    """

    __slots__ = (
        "_busy_ps",
        "_first_ps",
        "_turn_ps",
        "_turns",
        "_use",
        "free_ps",
        "name",
        "row",
        "wanted",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.free_ps = 0
        self.row = 0
        self.wanted = False
        self._use = Timeline(name)
        self._first_ps = 0  # of the turns that are not credited
        self._turn_ps = 0  # from here on is another bin
        self._busy_ps = 0
        self._turns = 0

    def take(self, at_ps: int, length_ps: int) -> int:
        """A turn at `at_ps` or later; returns its start. Ask in the order of `at_ps`, as far as that matters."""
        start = self.free_ps
        if start > at_ps:
            self.wanted = True
        else:
            start = at_ps
            self.wanted = False
        if start >= self._turn_ps:
            self._credit()
            self._first_ps = start
            self._turn_ps = start + (start >> TURN_BITS) + 1000
        self.free_ps = start + length_ps
        self._busy_ps += length_ps
        self._turns += 1
        return start

    @property
    def turns(self) -> int:
        """How many there were."""
        return self._use.amount + self._turns

    def _credit(self) -> None:
        if self._turns:
            self._use.add(self._first_ps, max(self._first_ps, self.free_ps), self._turns, self._busy_ps)
            self._busy_ps = self._turns = 0

    @property
    def use(self) -> Timeline:
        """When it was held, and the number of turns."""
        self._credit()
        return self._use
