"""The critical path through recorded spans, and how long a run would have taken with other lengths.

Spans are rows that only link to rows before them, so one pass in order is enough. The last row is the end of the run.
A link to a row that had ended when the span began says that the span could not begin before; a link to one that ended
later says that the span could not end before. What links do not explain (a gap) stays as it was.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusim.engine.contract import Contracted

_BLOCK = 1 << 16


def path(released_by: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Indices of the rows on the critical path, first to last: from the last row back to what released each."""
    view = np.array(released_by, dtype=np.uint32).data
    found = array("q")
    row = len(view)
    while row:
        row -= 1
        found.append(row)
        row = view[row]
    return np.frombuffer(found, dtype=np.int64)[::-1]


def kinds_on(spans: NDArray[Any], rows: NDArray[np.int64], kinds: int) -> list[int]:
    """Picoseconds of each kind on a path; they sum to the time of its end exactly if the path tiles it."""
    sums = [0] * kinds
    for start in range(0, len(rows), _BLOCK):
        block = spans[rows[start : start + _BLOCK]]
        _add(sums, block["kind"], block["end_ps"] - block["start_ps"])
    return sums


def time_by_kind(spans: NDArray[Any], kinds: int) -> tuple[list[int], list[int]]:
    """Picoseconds of all spans of each kind, and of these what was waiting for others; whole numbers."""
    spent, waited = [0] * kinds, [0] * kinds
    for start in range(0, len(spans), _BLOCK):
        block = spans[start : start + _BLOCK]
        kind = block["kind"]
        length = block["end_ps"] - block["start_ps"]
        _add(spent, kind, length)
        _add(waited, kind, np.maximum(length - block["alone_ps"], 0))
    return spent, waited


def _add(sums: list[int], kind: NDArray[np.uint16], length: NDArray[np.int64]) -> None:
    """Exact sums of a block by kind: the halves of the numbers add up to less than 2^53 each, as float64 can hold."""
    low = np.bincount(kind, weights=length & 0x7FFFFFFF, minlength=len(sums))
    high = np.bincount(kind, weights=length >> 31, minlength=len(sums))
    for number, (few, many) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        sums[number] += int(few) + (int(many) << 31)


class Graph:
    """The spans of a run as what each had to wait for.

    `lengths` is what each span took by itself: 0 for one that only waited for another. A span whose `alone_ps` is
    longer than itself is a delay that began with the end of the row it is queued behind.
    """

    def __init__(self, spans: NDArray[Any]) -> None:
        start = spans["start_ps"]
        end = spans["end_ps"]
        ends = np.concatenate((np.zeros(1, np.int64), end))
        links = [np.ascontiguousarray(spans[name]) for name in ("cause", "queued_behind", "released_by")]
        there = [link > 0 for link in links]
        before = [found & (ends[link] <= start) for found, link in zip(there, links, strict=True)]
        after = [found & ~early for found, early in zip(there, before, strict=True)]
        reached = np.zeros(len(spans), np.int64)
        until = np.zeros(len(spans), np.int64)
        for link, early, late in zip(links, before, after, strict=True):
            np.maximum(reached, np.where(early, ends[link], 0), out=reached)
            np.maximum(until, np.where(late, ends[link], 0), out=until)
        gap = start - reached
        length = end - start
        self.waits = (spans["alone_ps"] == 0) & (until > 0)
        lag = np.where(self.waits, np.maximum(end - until, 0), 0)
        self.delays = (spans["alone_ps"] > length) & before[1]
        self.lengths: NDArray[np.int64] = np.where(
            self.waits, 0, np.where(self.delays, spans["alone_ps"], length)
        )
        there = [early | late for early, late in zip(before, after, strict=True)]
        there[0] |= (links[0] == 0) & ~before[1] & ~before[2]  # it began with the run, as far as links say
        there[2] &= (links[2] != links[0]) | (links[0] == 0)  # the same row twice is asked once
        own = [early & ~self.delays for early in before]
        own[0] |= there[0] & (links[0] == 0) & ~self.delays
        own[1] |= self.delays
        del reached, until, length, ends, after

        def base(link: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
            late = there[link][rows] & ~before[link][rows] & (links[link][rows] > 0)
            made = np.where(late, lag[rows], gap[rows])
            return np.where(self.delays[rows], 0, made) if link == 1 else made

        self._contracted = Contracted(links, there, base, own, self.lengths)

    @property
    def nodes(self) -> int:
        """What is left of the spans to time: those that only follow each other are one."""
        return len(self._contracted)

    def makespan(self, lengths: NDArray[np.int64]) -> int:
        """When the last span ends if each takes `lengths` by itself."""
        return self.makespans(lengths, lengths)[0]

    def makespans(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[int, int]:
        """The same for two sets of lengths at once, which is cheaper."""
        return self._contracted.ends(one, other)
