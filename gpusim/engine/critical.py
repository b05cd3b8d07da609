"""The critical path through recorded spans, and how long a run would have taken with other lengths.

Spans are rows that only link to rows before them, so one pass in order is enough. The last row is the end of the run.
A link to a row that had ended when the span began says that the span could not begin before; a link to one that ended
later says that the span could not end before. What links do not explain (a gap) stays as it was.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NEVER = -(1 << 62)
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
        self._start = spans["start_ps"]
        end = spans["end_ps"]
        ends = np.concatenate((np.zeros(1, np.int64), end))
        self._links = [
            np.ascontiguousarray(spans[name]) for name in ("cause", "queued_behind", "released_by")
        ]
        there = [link > 0 for link in self._links]
        before = [found & (ends[link] <= self._start) for found, link in zip(there, self._links, strict=True)]
        after = [found & ~early for found, early in zip(there, before, strict=True)]
        reached = np.zeros(len(spans), np.int64)
        until = np.zeros(len(spans), np.int64)
        for link, early, late in zip(self._links, before, after, strict=True):
            np.maximum(reached, np.where(early, ends[link], 0), out=reached)
            np.maximum(until, np.where(late, ends[link], 0), out=until)
        self._before, self._after = before, after
        self._gap = self._start - reached
        length = end - self._start
        self.waits = (spans["alone_ps"] == 0) & (until > 0)
        self._lag = np.where(self.waits, np.maximum(end - until, 0), 0)
        self.delays = (spans["alone_ps"] > length) & before[1]
        self.lengths: NDArray[np.int64] = np.where(
            self.waits, 0, np.where(self.delays, spans["alone_ps"], length)
        )

    def makespan(self, lengths: NDArray[np.int64]) -> int:
        """When the last span ends if each takes `lengths` by itself."""
        end = array("q", [0])
        append = end.append
        for block in self._blocks(lengths):
            for cause, behind, by, cause_ps, behind_ps, by_ps in zip(*block, strict=True):
                time = end[cause] + cause_ps
                if by_ps != _NEVER:
                    other = end[by] + by_ps
                    time = max(time, other)
                if behind_ps != _NEVER:
                    other = end[behind] + behind_ps
                    time = max(time, other)
                append(time)
        return end[-1]

    def _blocks(self, lengths: NDArray[np.int64]) -> Iterator[list[list[int]]]:
        """Links and what is added to the end of each, in blocks of rows as Python numbers."""
        for first in range(0, len(lengths), _BLOCK):
            part = slice(first, first + _BLOCK)
            own, delayed = lengths[part], self.delays[part]
            added = self._gap[part] + np.where(delayed, 0, own)
            weights = [
                np.where(early[part], added, np.where(late[part], self._lag[part], _NEVER))
                for early, late in zip(self._before, self._after, strict=True)
            ]
            weights[1] = np.where(delayed, own, weights[1])
            links = [link[part] for link in self._links]
            # the same row twice is asked once; no row at all is the beginning of the run
            weights[2] = np.where((links[2] == links[0]) & (links[0] > 0), _NEVER, weights[2])
            early = [before[part] for before in self._before]
            free = (links[0] == 0) & ~early[1] & ~early[2]
            weights[0] = np.where(free, added, weights[0])
            yield [column.tolist() for column in (*links, *weights)]
