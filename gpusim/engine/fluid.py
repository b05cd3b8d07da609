"""Jobs that share a rate, in virtual time: an arrival or a departure costs O(log n), however many there are.

A pool's virtual time `v` counts the bytes that one unit of weight has moved. A job of weight w and s bytes
that enters at v ends at v + s / w, whatever the rate does in between; so the ends are all there is to keep.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import ceil

from gpusim.engine.work import EPSILON_PS, Call, Work

#: virtual time is taken back to 0 from here on: a float64 then resolves a ten-thousandth of a byte
REBASE_BYTES = 2.0**40


class Pool:
    """Jobs with the same rate per unit of weight. The owner keeps `rate` and settles `v` when it changes.

    `calls` holds who is to be called at which virtual time, and `ends` these times as a heap; a time whose
    jobs were cut stays in the heap and is skipped. A job is a `Work`, or only what is to be called.
    """

    __slots__ = ("calls", "cap", "capped_from_ps", "capped_sum_ps", "ends", "rate", "v", "weight")

    def __init__(self, cap: float) -> None:
        self.cap = cap  # bytes per ps and unit of weight; inf: none
        self.rate = 0.0
        self.capped_from_ps = -1  # since when `rate` is the cap; -1: it is not
        self.capped_sum_ps = 0  # before that
        self.v = 0.0
        self.weight: float = 0.0
        self.ends: list[float] = []
        self.calls: dict[float, Call | list[Call]] = {}

    # What the owner does for its pools.

    def settle(self) -> int:
        """Bring virtual time up to now, which is returned."""
        raise NotImplementedError

    def changed(self) -> None:
        """The weight fell or rose, or a job's end moved."""
        raise NotImplementedError

    def corrected(self, entered: int, moved: float) -> None:
        """`entered` bytes more are to be moved, and `moved` more than the rates say have been."""
        raise NotImplementedError

    def alone_rate(self, weight: float) -> float:
        """Bytes per ps of a job that has the whole path to itself."""
        raise NotImplementedError

    # What the pool does for its owner.

    def add(self, end: float, call: Call) -> None:
        """Have `call` called when virtual time reaches `end`; its weight is the caller's business."""
        there = self.calls.get(end)
        if there is None:
            self.calls[end] = call
            heappush(self.ends, end)
        elif isinstance(there, list):
            there.append(call)
        else:
            self.calls[end] = [there, call]

    def remove(self, end: float, work: Work) -> None:
        """Forget a job that was added for `end`, and its weight."""
        there = self.calls[end]
        if isinstance(there, list):
            there.remove(work)
        if there is work or not there:  # an end at which nobody is left would look like a job
            del self.calls[end]
            if len(self.ends) > 2 * len(self.calls):
                self.ends = list(self.calls)
                heapify(self.ends)
        self._lighten(work.weight)

    def end_ps(self, now_ps: int) -> int | None:
        """When the first job ends at today's rate: a whole picosecond after `now_ps`."""
        ends = self.ends
        calls = self.calls
        if not calls:
            return None
        while ends[0] not in calls:
            heappop(ends)
        wait = (ends[0] - self.v) / self.rate - EPSILON_PS
        return now_ps + (ceil(wait) if wait > 1.0 else 1)

    def take(self, finished: list[Call], now_ps: int) -> float:
        """Move all jobs that have ended at `now_ps`, when the pool was settled, to `finished`.

        Returns the bytes that they would have moved beyond their ends, up to the whole picosecond.
        """
        ends = self.ends
        limit = self.v + self.rate * EPSILON_PS
        beyond = 0.0
        while ends and ends[0] <= limit:
            end = heappop(ends)
            call = self.calls.pop(end, None)
            if call is None:
                continue
            before = self.weight
            if isinstance(call, list):
                for each in call:
                    self._ended(each, now_ps)
                finished += call
            else:
                finished.append(call)
                if isinstance(call, Work):
                    self._ended(call, now_ps)
                else:
                    self.weight -= 1
            beyond += (self.v - end) * (before - self.weight)
        return beyond

    def _ended(self, call: Call, now_ps: int) -> None:
        if isinstance(call, Work):
            call.close(now_ps, call.size_bytes)
            self._lighten(call.weight)
        else:
            self.weight -= 1

    def _lighten(self, weight: float) -> None:
        self.weight -= weight
        if weight > self.weight * 1e6:  # what a heavy job leaves of a float64 is noise: sum up again
            self.weight = 0.0
            for there in self.calls.values():
                for call in there if isinstance(there, list) else (there,):
                    self.weight += call.weight if isinstance(call, Work) else 1

    def rebase(self) -> None:
        """Take virtual time back to 0; not while jobs are being taken out."""
        base = self.v
        calls = self.calls
        self.v = 0.0
        self.ends = []
        self.calls = {}
        for end in sorted(calls):
            there = calls[end]
            for call in there if isinstance(there, list) else (there,):
                self.add(end - base, call)
                if isinstance(call, Work):
                    call.rebased(base, end - base)

    # Time at the cap.

    def time_at_cap(self, now_ps: int) -> int:
        """Picoseconds up to now in which the rate was the cap."""
        since = self.capped_from_ps
        return self.capped_sum_ps + (now_ps - since if since >= 0 else 0)

    def set_capped(self, capped: bool, now_ps: int) -> None:
        """Whether the rate is the cap from now on."""
        since = self.capped_from_ps
        if capped:
            if since < 0:
                self.capped_from_ps = now_ps
        elif since >= 0:
            self.capped_sum_ps += now_ps - since
            self.capped_from_ps = -1


def per_ps(bytes_per_s: float, what: str) -> float:
    """A rate in bytes per ps. Raises ValueError unless it is positive and below 10^15 bytes per second."""
    if not 0 < bytes_per_s < 1e15:  # a byte takes longer than EPSILON_PS
        raise ValueError(f"{what} is more than 0 and below 1e15 bytes per second, not {bytes_per_s}")
    return bytes_per_s / 1e12
