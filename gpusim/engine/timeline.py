"""How busy something was over time, in a fixed number of equal bins, however long the run.

Sums are whole numbers and exact: the bins always add up to what was put in.
"""

from __future__ import annotations

#: who sums up what it tells a timeline does so for a 2^-TURN_BITS of the time that has passed: two bins or so
TURN_BITS = 7


class Timeline:
    """Busy picoseconds and an amount (bytes, requests) per bin of simulated time.

    The bins start 1 ns wide. When time runs past the last one, neighbours are merged and every bin is twice
    as wide; so adding a short interval costs O(1), amortised, and the memory is that of `bins` pairs of
    numbers.

    `busy_ps` and `amount` are the totals of all bins. A bin of a k-lane server holds up to k times its width.
    """

    __slots__ = ("_amounts", "_busy", "amount", "bins", "busy_ps", "name", "width_ps")

    def __init__(self, name: str, bins: int = 512) -> None:
        if bins < 2 or bins % 2:
            raise ValueError(f"bins must be even and at least 2, not {bins}")
        self.name = name
        self.bins = bins
        self.width_ps = 1000
        self.busy_ps = 0
        self.amount = 0
        self._busy = [0] * bins
        self._amounts = [0] * bins

    def add(self, start_ps: int, end_ps: int, amount: int = 0, busy_ps: int | None = None) -> None:
        """Spread `amount` and `busy_ps` (default: the whole interval) evenly over `start_ps` to `end_ps`.

        An empty interval puts all into the bin of its instant. Raises ValueError if the interval is not in
        order.
        """
        if not 0 <= start_ps <= end_ps:
            raise ValueError(f"not an interval of simulated time: {start_ps} to {end_ps}")
        busy = end_ps - start_ps if busy_ps is None else busy_ps
        self.busy_ps += busy
        self.amount += amount
        last_ps = end_ps - 1 if end_ps > start_ps else end_ps
        if last_ps >= self.width_ps * self.bins:
            self._widen(last_ps)
        width = self.width_ps
        index = start_ps // width
        last = last_ps // width
        if index == last:
            self._busy[index] += busy
            self._amounts[index] += amount
            return
        length = end_ps - start_ps
        busy_done = amount_done = 0
        while index < last:
            passed = (index + 1) * width - start_ps
            busy_now = busy * passed // length
            amount_now = amount * passed // length
            self._busy[index] += busy_now - busy_done
            self._amounts[index] += amount_now - amount_done
            busy_done = busy_now
            amount_done = amount_now
            index += 1
        self._busy[last] += busy - busy_done
        self._amounts[last] += amount - amount_done

    def _widen(self, last_ps: int) -> None:
        padding = [0] * (self.bins // 2)
        while last_ps >= self.width_ps * self.bins:
            self.width_ps *= 2
            self._busy = [a + b for a, b in zip(self._busy[::2], self._busy[1::2], strict=True)] + padding
            self._amounts = [
                a + b for a, b in zip(self._amounts[::2], self._amounts[1::2], strict=True)
            ] + padding

    def bin_end_ps(self, at_ps: int) -> int:
        """The first instant after `at_ps` that lies in another bin."""
        return (at_ps // self.width_ps + 1) * self.width_ps

    def busy_fraction(self, span_ps: int, lanes: int = 1) -> float:
        """The share of `span_ps` (the run, from time 0) during which it was busy; 0 for an empty run."""
        return min(1.0, self.busy_ps / (span_ps * lanes)) if span_ps > 0 else 0.0

    def rows(self) -> list[tuple[int, int, int]]:
        """`(start_ps, busy_ps, amount)` of each bin, up to the last that holds something."""
        rows = [
            (index * self.width_ps, busy, amount)
            for index, (busy, amount) in enumerate(zip(self._busy, self._amounts, strict=True))
        ]
        while rows and rows[-1][1:] == (0, 0):
            rows.pop()
        return rows


class Meter:
    """Integrates a flow, whose rate changes now and then, into a `Timeline`.

    It is told of changes of the rate, not of jobs, and touches the timeline when a bin has ended.
    """

    __slots__ = ("_busy", "_credited_ps", "_last_ps", "_turn_ps", "moved", "rate", "share", "timeline")

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.rate = 0.0  # amount per ps
        self.share = 0.0  # of the capacity, in use
        self.moved = 0.0  # amount that the timeline has not got yet; the owner may correct it
        self._busy = 0.0  # the same of busy ps
        self._last_ps = 0  # up to here the sums are true
        self._credited_ps = 0  # up to here the timeline is
        self._turn_ps = timeline.bin_end_ps(0)

    def set(self, now_ps: int, rate: float, share: float) -> None:
        """From now on it moves `rate` per ps, using `share` of the capacity."""
        if rate != self.rate or share != self.share:
            self._advance(now_ps)
            self.rate = rate
            self.share = share

    def settle(self, now_ps: int, total: int | None = None) -> Timeline:
        """The timeline, brought up to now; an idle owner knows the exact `total` that was moved."""
        if total is None:
            self._advance(now_ps)
        else:  # what is left belongs to the time when it worked, not to the time up to now
            until = max(self._last_ps, self._credited_ps)
            self._credit(until)
            self._advance(now_ps)
            beyond = total - self.timeline.amount
            if beyond:
                self.timeline.add(max(0, until - 1), until, beyond, 0)
            self.moved = 0.0
        self._credit(now_ps)
        return self.timeline

    def took(self, amount: float, busy_ps: float) -> None:
        """It moved so much, and was busy for so long, since the last credit: for an owner that sets no rate."""
        self.moved += amount
        self._busy += busy_ps

    def credit(self, until_ps: int) -> None:
        """Tell the timeline of what was taken up to now."""
        self._credit(until_ps)

    def _advance(self, now_ps: int) -> None:
        last = self._last_ps
        stretch = now_ps - last
        self._last_ps = now_ps
        if now_ps >= self._turn_ps:  # what came before this stretch belongs to the bins before
            self._credit(last)
            self.moved += self.rate * stretch
            self._busy += self.share * stretch
            self._credit(now_ps)
            self._turn_ps = self.timeline.bin_end_ps(now_ps)
        else:
            self.moved += self.rate * stretch
            self._busy += self.share * stretch

    def _credit(self, until_ps: int) -> None:
        amount = int(self.moved)
        busy = int(self._busy)
        if amount or busy:
            self.timeline.add(self._credited_ps, until_ps, amount, busy)
            self.moved -= amount
            self._busy -= busy
        self._credited_ps = until_ps
