"""Every file request of a run, kept in bounded memory: exact totals, and rows that are binned when they are many.

A row is one request, or stands for `count` requests of about the same end and latency. Totals, means and maxima are
exact; percentiles of binned rows are good to the width of a bin of latencies, 1.8 %.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import chain, repeat
from operator import add, sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_ROWS = 1 << 15
_TIME_BINS = 128
_BINS_PER_OCTAVE = 38  # of latency: 128 a decade

FIELDS = ("start_ps", "end_ps", "bytes", "count")
_WIDTH = 3  # numbers of a request that is not binned


class Series:
    """The requests of one process on one path in one direction. `kinds[k]` is the time that they spent on kind k.

    `settle` brings the totals up to date.
    """

    def __init__(
        self,
        process: str,
        path: str,
        direction: str,
        *,
        kinds: int,
        keep_all: bool,
        most: int = _MOST_ROWS,
    ) -> None:
        self.process = process
        self.path = path
        self.direction = direction
        self.requests = 0
        self.bytes = 0
        self.latency_ps = 0  # of all together
        self.longest_ps = 0
        self.first_start_ps = 0
        self.last_end_ps = 0
        self.first_latency_ps = 0  # of the first request: it pays what later ones do not
        self.errors: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.kinds = [0] * kinds
        self._keep_all = keep_all
        self._most = most
        self._room = most  # requests until the next binning
        self._reason = ""  # of the last requests, `_alike` of them
        self._alike = 0
        self._rows = array("q")  # start_ps, end_ps, bytes of each request since the last binning
        self._summed = 0  # rows that the totals have
        self._binned: NDArray[np.int64] = np.zeros((0, len(FIELDS)), dtype=np.int64)

    def add(self, start_ps: int, end_ps: int, size: int, reason: str) -> None:
        """A request was answered. This is what every request pays for the record: little."""
        if reason is self._reason:
            self._alike += 1
        else:
            self._count()
            self._reason, self._alike = reason, 1
        self._rows.extend((start_ps, end_ps, size))
        self._room -= 1
        if not self._room:
            self.settle()
            if not self._keep_all:
                self._bin()
            self._room = max(self._most, len(self._binned))

    def failed(self, code: str) -> None:
        """A request ended with an error."""
        self.errors[code] += 1

    def refused(self, code: str, reason: str) -> None:
        """A request ended with an error before anything was done for it."""
        self.errors[code] += 1
        self.reasons[reason] += 1

    def charge(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Requests spent what lies between two readings of a chain's sums."""
        self.kinds = list(map(add, self.kinds, map(sub, after, before)))

    def waited(self, kind: int, duration_ps: int) -> None:
        """A request waited before anything was done for it."""
        self.kinds[kind] += duration_ps

    def settle(self) -> None:
        """Bring the totals up to date."""
        self._count()
        fresh = np.array(self._rows, dtype=np.int64).reshape(-1, _WIDTH)[self._summed :]
        if not len(fresh):
            return
        latency = fresh[:, 1] - fresh[:, 0]
        if not self.requests:
            self.first_start_ps, self.first_latency_ps = int(fresh[0, 0]), int(latency[0])
        self.first_start_ps = min(self.first_start_ps, int(fresh[:, 0].min()))
        self.last_end_ps = max(self.last_end_ps, int(fresh[:, 1].max()))
        self.longest_ps = max(self.longest_ps, int(latency.max()))
        self.requests += len(fresh)
        self.bytes += int(fresh[:, 2].sum())
        # two halves, because a sum of many long latencies in picoseconds does not fit in 64 bits
        self.latency_ps += (int((latency >> 24).sum()) << 24) + int((latency & 0xFFFFFF).sum())
        self._summed += len(fresh)

    def rows(self) -> NDArray[np.int64]:
        """One row for each of FIELDS: shape (requests or fewer, 4)."""
        fresh = np.array(self._rows, dtype=np.int64).reshape(-1, _WIDTH)
        counted = np.concatenate([fresh, np.ones((len(fresh), 1), dtype=np.int64)], axis=1)
        return np.concatenate([self._binned, counted])

    def _count(self) -> None:
        if self._alike:
            self.reasons[self._reason] += self._alike
            self._alike = 0

    def _bin(self) -> None:
        """Requests of one bin of time and latency become one row: few bins are left for very many requests."""
        rows = self.rows()
        self._rows = array("q")
        self._summed = 0
        latency = np.maximum(rows[:, 1] - rows[:, 0], 1)
        when = rows[:, 1] // max(1, self.last_end_ps // _TIME_BINS)
        took = np.floor(np.log2(latency) * _BINS_PER_OCTAVE).astype(np.int64)
        order = np.lexsort((took, when))
        rows, when, took = rows[order], when[order], took[order]
        first = np.flatnonzero(np.concatenate([[True], (when[1:] != when[:-1]) | (took[1:] != took[:-1])]))
        count = np.add.reduceat(rows[:, 3], first)
        members = np.diff([*first, len(rows)])
        made = []
        for column in range(_WIDTH):  # the mean, as the first plus the mean of what the others are above it
            above = (rows[:, column] - np.repeat(rows[first, column], members)) * rows[:, 3]
            made.append(rows[first, column] + np.add.reduceat(above, first) // count)
        self._binned = np.stack([*made, count], axis=1)


class IoLog:
    """All series of a run."""

    def __init__(self, *, kinds: int, keep_all: bool) -> None:
        self._kinds = kinds
        self._keep_all = keep_all
        self.series: dict[tuple[str, str, str], Series] = {}

    def of(self, process: str, path: str, write: bool) -> Series:
        """The series of a process on a path."""
        key = (process, path, "write" if write else "read")
        found = self.series.get(key)
        if found is None:
            found = self.series[key] = Series(*key, kinds=self._kinds, keep_all=self._keep_all)
        return found

    def table(self) -> dict[str, Any]:
        """Columns of the `io` table."""
        parts = [(series, series.rows()) for series in self.series.values()]
        whole = np.concatenate([rows for _, rows in parts] or [np.zeros((0, len(FIELDS)), dtype=np.int64)])
        words = {
            name: list(chain(*(repeat(getattr(series, name), len(rows)) for series, rows in parts)))
            for name in ("process", "path", "direction")
        }
        return words | {name: whole[:, column] for column, name in enumerate(FIELDS)}
