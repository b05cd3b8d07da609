"""A graph of rows that wait for rows before them, made small once, so that timing it anew again and again is cheap.

What nobody reads goes. Rows one after another, where nothing else reads those between, become one node. What is left
is timed node by node; what a row takes by itself adds to its node's.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 15
_ROUNDS = 64  # of taking away rows that nobody reads
_NEVER = -(1 << 62)


Base = Callable[[int, NDArray[np.int64]], NDArray[np.int64]]


class Contracted:
    """`links[i]` are row numbers from 1 (0: the beginning of the run), used where `there[i]`.

    A row ends when the latest of its links has ended, plus what `base(i, rows)` gives for chosen rows (indices), plus
    what it takes itself where `own[i]`. Arrays have one entry a row; rows only link to rows before them.
    """

    def __init__(
        self,
        links: Sequence[NDArray[np.uint32]],
        there: Sequence[NDArray[np.bool_]],
        base: Base,
        own: Sequence[NDArray[np.bool_]],
        lengths: NDArray[np.int64],
    ) -> None:
        rows = len(lengths)
        self._lengths = lengths
        readers = _readers(links, there, rows)
        alive = readers[1:] > 0
        count = np.zeros(rows, np.int8)
        for mask in there:
            count += mask
        before = np.zeros(rows, np.uint32)  # of a row with one link: that link
        for link, mask in zip(links, there, strict=True):
            np.copyto(before, link, where=mask)
        followers = np.flatnonzero(alive & (count == 1) & (before > 0) & (readers[before] == 1))
        del readers, count
        heads = alive.copy()
        heads[followers] = False
        at = np.flatnonzero(heads)
        root = _roots(rows, followers, before)
        del before
        numbers = np.zeros(rows, np.int32)
        numbers[at] = np.arange(1, len(at) + 1, dtype=np.int32)
        #: the node of each row from 1; 0: nobody needs it
        self._node = numbers[root] * alive
        del root, numbers, alive
        self._is_head = heads
        #: does a row's own length count in its node? Of followers that is their one link's, of heads it is link by link
        self._counts = np.zeros(rows, bool)
        sums = np.zeros(len(at) + 1, np.int64)
        for number, (mask, flag) in enumerate(zip(there, own, strict=True)):
            chosen = followers[mask[followers]]
            more = base(number, chosen) + np.where(flag[chosen], lengths[chosen], 0)
            np.add.at(sums, self._node[chosen], more)
            self._counts[chosen] = flag[chosen]
        self._own = [flag[at] for flag in own]
        self._from = [
            np.where(mask[at], _node_of(self._node, link[at]), 0)
            for link, mask in zip(links, there, strict=True)
        ]
        self._base = [
            np.where(mask[at], base(number, at) + np.where(flag[at], lengths[at], 0) + sums[1:], _NEVER)
            for number, (mask, flag) in enumerate(zip(there, own, strict=True))
        ]
        self._nodes = len(at)
        self._last = int(self._node[-1]) if rows else 0
        for first, second in ((0, 1), (0, 2), (1, 2)):  # links that are there come first
            self._exchange(first, second)

    def _exchange(self, first: int, second: int) -> None:
        """Where a node has no link `first`, it gets its link `second`."""
        moved = self._base[first] == _NEVER
        kept = ~moved
        for columns in (self._own, self._from, self._base):
            one, other = columns[first], columns[second]
            columns[first], columns[second] = np.where(kept, one, other), np.where(kept, other, one)

    def __len__(self) -> int:
        """Nodes."""
        return self._nodes

    def ends(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[int, int]:
        """When the last row ends if each takes so long by itself; for two sets of lengths at once, which is cheaper."""
        if not self._last:
            return 0, 0
        ones, others = self._weights(one), self._weights(other)
        end, end_2 = array("q", [0]), array("q", [0])
        append, append_2 = end.append, end_2.append
        for first in range(0, self._last, _BLOCK):
            part = slice(first, min(first + _BLOCK, self._last))
            columns = [column[part].tolist() for column in (*self._from, *ones, *others)]
            for a, b, c, more_a, more_b, more_c, more_a2, more_b2, more_c2 in zip(*columns, strict=True):
                time, time_2 = end[a] + more_a, end_2[a] + more_a2
                if more_b != _NEVER:
                    by = end[b] + more_b
                    time = max(time, by)
                    by = end_2[b] + more_b2
                    time_2 = max(time_2, by)
                    if more_c != _NEVER:
                        by = end[c] + more_c
                        time = max(time, by)
                        by = end_2[c] + more_c2
                        time_2 = max(time_2, by)
                append(time)
                append_2(time_2)
        return end[self._last], end_2[self._last]

    def _weights(self, lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        changed = np.flatnonzero(lengths != self._lengths)
        changed = changed[self._node[changed] > 0]
        if not len(changed):
            return self._base
        by = lengths[changed] - self._lengths[changed]
        node = self._node[changed] - 1
        heads = self._is_head[changed]
        sums = np.zeros(len(self), np.int64)
        inside = ~heads & self._counts[changed]
        np.add.at(sums, node[inside], by[inside])
        of_head = np.zeros(len(self), np.int64)
        of_head[node[heads]] = by[heads]
        return [
            np.where(base == _NEVER, _NEVER, base + sums + np.where(own, of_head, 0))
            for base, own in zip(self._base, self._own, strict=True)
        ]


def _readers(
    links: Sequence[NDArray[np.uint32]], there: Sequence[NDArray[np.bool_]], rows: int
) -> NDArray[np.int32]:
    """How many rows that matter read each row (0: the beginning); the last row is always read."""
    readers = np.zeros(rows + 1, np.int32)
    for link, mask in zip(links, there, strict=True):
        readers += np.bincount(link[mask], minlength=rows + 1).astype(np.int32)
    if rows:
        readers[rows] += 1
    dead = np.flatnonzero(readers[1:] == 0)
    for _ in range(_ROUNDS):
        if not len(dead):
            break
        read = np.concatenate([link[dead][mask[dead]] for link, mask in zip(links, there, strict=True)])
        np.subtract.at(readers, read, 1)
        read = np.unique(read[read > 0])
        dead = read[readers[read] == 0].astype(np.int64) - 1
    return readers


def _roots(rows: int, followers: NDArray[np.int64], before: NDArray[np.uint32]) -> NDArray[np.int32]:
    """The first row of the chain that each row belongs to, by doubling the steps back."""
    root = np.arange(rows, dtype=np.int32)
    root[followers] = before[followers].astype(np.int32) - 1
    open_ = followers
    while len(open_):
        step = root[root[open_]]
        moved = step != root[open_]
        root[open_] = step
        open_ = open_[moved]
    return root


def _node_of(node: NDArray[np.int32], link: NDArray[np.uint32]) -> NDArray[np.int32]:
    found: NDArray[np.int32] = np.where(link > 0, node[link.astype(np.int64) - 1], 0)
    return found
