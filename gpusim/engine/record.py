"""What time was spent on: spans with causes, and chains that carry the critical path without a span table.

A *chain* is the critical path of one actor up to now: picoseconds per kind, which sum to the current time. Who waits
for something takes over the chain of what released it; so at the end of the program the last actor's chain tiles the
whole run. With spans recorded, every stretch also becomes a row of at most 48 bytes, linked to the row that let it
start; walking those links back gives the same critical path, row by row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_ROW: Final = Struct("<IHqqqIII")  # who, kind, start, end, alone, cause, queued_behind, released_by: 42 bytes
_CHUNK = bytes(_ROW.size << 16)
#: one span as a row of an array
ROW = np.dtype(
    [
        ("who", "<u4"),
        ("kind", "<u2"),
        ("start_ps", "<i8"),
        ("end_ps", "<i8"),
        ("alone_ps", "<i8"),
        ("cause", "<u4"),
        ("queued_behind", "<u4"),
        ("released_by", "<u4"),
    ]
)
NO_ROW: Final = 0  # a link to no row; row numbers start at 1

#: the sums of a chain that was released, and the row of its last span: not to be changed
Snapshot = tuple[list[int], int]


class Mode(StrEnum):
    """How much is recorded."""

    OFF = "off"
    SUMMARY = "summary"
    SPANS = "spans"


class Recorder:
    """Takes spans, or nothing at all when `mode` is not `spans`.

    `paces` are for a what-if: what is spent on a kind takes `paces[kind]` times as long. Parts that work out times
    of their own ask `pace`; in stages `by_parts` are kinds that such times stand for, which are not paced again.
    """

    def __init__(
        self,
        mode: Mode,
        kinds: int,
        paces: Sequence[float] | None = None,
        by_parts: Collection[int] = (),
    ) -> None:
        self.mode = mode
        self.kinds = kinds
        self.paces = paces
        self.in_stages = paces
        if paces is not None:
            self.in_stages = [1.0 if kind in by_parts else pace for kind, pace in enumerate(paces)]
        self.on = mode is not Mode.OFF
        self.spans = mode is Mode.SPANS
        self._rows = bytearray()  # one block of memory: it grows in place, and is read without a copy
        self._used = 0
        self.rows = 0
        self.actors: list[str] = []

    def actor(self, name: str) -> int:
        """The number of a new actor."""
        self.actors.append(name)
        return len(self.actors) - 1

    def pace(self, kind: int) -> float:
        """How long things of a kind take, as a multiple of what they would."""
        return 1.0 if self.paces is None else self.paces[kind]

    def paced(self, kind: int, duration_ps: int) -> int:
        """A duration at the pace of its kind."""
        return duration_ps if self.paces is None else round(duration_ps * self.paces[kind])

    def close(self, kind: int, end_ps: int, ends: Sequence[int]) -> int:
        """The last rows: where the run ends, `ends[0]` is the row that led there, the others ended before."""
        who = self.actor("end")
        first, *others = ends or [NO_ROW]
        row = self.span(who, kind, end_ps, end_ps, cause=first, released_by=first)
        for other in others:
            row = self.span(who, kind, end_ps, end_ps, cause=row, queued_behind=other, released_by=row)
        return row

    def span(
        self,
        who: int,
        kind: int,
        start_ps: int,
        end_ps: int,
        *,
        alone_ps: int | None = None,
        cause: int = NO_ROW,
        queued_behind: int = NO_ROW,
        released_by: int = NO_ROW,
    ) -> int:
        """Record one stretch; returns its row number (1, 2, ...)."""
        if self._used == len(self._rows):
            self._rows.extend(_CHUNK)
        alone = end_ps - start_ps if alone_ps is None else alone_ps
        _ROW.pack_into(
            self._rows, self._used, who, kind, start_ps, end_ps, alone, cause, queued_behind, released_by
        )
        self._used += _ROW.size
        self.rows += 1
        return self.rows

    def table(self) -> NDArray[Any]:
        """All spans as one structured array; row number r is at index r - 1."""
        return np.frombuffer(self._rows, dtype=ROW, count=self.rows)


class Chain:
    """The critical path of one actor: `sums[kind]` picoseconds, in all `time_ps`."""

    __slots__ = ("_plain", "_recorder", "row", "sums", "time_ps", "who")

    def __init__(self, recorder: Recorder, who: int = 0) -> None:
        self._recorder = recorder
        self._plain = recorder.in_stages is None and not recorder.spans  # sums are all there is
        self.who = who
        self.sums: list[int] = [0] * recorder.kinds
        self.time_ps = 0
        self.row = NO_ROW

    def spend(self, kind: int, until_ps: int, *, alone_ps: int | None = None, behind: int = NO_ROW) -> None:
        """The actor spent the time from its last entry up to `until_ps` on `kind`.

        `alone_ps` is what it would have taken with nobody else there, 0 for a mere wait; at most all of it counts.
        Behind a row that ended before, more than all of it is a delay that began with the end of that row.
        """
        start = self.time_ps
        if until_ps <= start:
            return
        recorder = self._recorder
        if not recorder.on:
            self.time_ps = until_ps
            return
        self.sums[kind] += until_ps - start
        self.time_ps = until_ps
        if recorder.spans:
            self.row = recorder.span(
                self.who,
                kind,
                start,
                until_ps,
                alone_ps=alone_ps if alone_ps is None or behind else min(alone_ps, until_ps - start),
                cause=self.row,
                queued_behind=behind,
                released_by=self.row,
            )

    def paced(self, kind: int, duration_ps: int) -> int:
        """A duration at the pace of its kind, which is another than 1 in a what-if only."""
        return self._recorder.paced(kind, duration_ps)

    def spend_all(self, pieces: tuple[int, ...]) -> None:
        """The actor spent time on one thing after the other: kind, picoseconds, kind, picoseconds and so on.

        Each at the pace of its kind.
        """
        paces = self._recorder.in_stages
        if paces is not None:
            pieces = tuple(
                round(piece * paces[pieces[at - 1]]) if at & 1 else piece for at, piece in enumerate(pieces)
            )
        if self._recorder.spans:
            for at in range(0, len(pieces), 2):
                self.spend(pieces[at], self.time_ps + pieces[at + 1])
            return
        sums = self.sums
        reached = self.time_ps
        for at in range(0, len(pieces), 2):
            length = pieces[at + 1]
            if length > 0:
                sums[pieces[at]] += length
                reached += length
        self.time_ps = reached

    def spend_two(self, kind: int, length: int, next_kind: int, next_length: int) -> None:
        """`spend_all` of two pieces, in short."""
        if self._plain:
            sums = self.sums
            sums[kind] += length
            sums[next_kind] += next_length
            self.time_ps += length + next_length
        else:
            self.spend_all((kind, length, next_kind, next_length))

    def spend_five(
        self,
        kind: int,
        length: int,
        kind2: int,
        length2: int,
        kind3: int,
        length3: int,
        kind4: int,
        length4: int,
        kind5: int,
        length5: int,
    ) -> None:
        """`spend_all` of five pieces, in short."""
        if self._plain:
            sums = self.sums
            sums[kind] += length
            sums[kind2] += length2
            sums[kind3] += length3
            sums[kind4] += length4
            sums[kind5] += length5
            self.time_ps += length + length2 + length3 + length4 + length5
        else:
            self.spend_all((kind, length, kind2, length2, kind3, length3, kind4, length4, kind5, length5))

    def meet(self, kind: int, row: int) -> None:
        """What comes now also needed the end of `row`, which has come: only a what-if can tell that it matters."""
        recorder = self._recorder
        if recorder.spans and row and row != self.row:
            self.row = recorder.span(
                self.who,
                kind,
                self.time_ps,
                self.time_ps,
                cause=self.row,
                queued_behind=row,
                released_by=self.row,
            )

    def mark(self, kind: int) -> int:
        """The row of now, for `not_before`; with spans one is made where the run has just begun."""
        if self._recorder.spans and not self.row:
            self.row = self._recorder.span(self.who, kind, self.time_ps, self.time_ps)
        return self.row

    def not_before(self, kind: int, row: int, length_ps: int) -> None:
        """What comes now was to come `length_ps` after the end of `row` or later: only a what-if can tell it."""
        recorder = self._recorder
        if recorder.spans and row and row != self.row:
            self.row = recorder.span(
                self.who,
                kind,
                self.time_ps,
                self.time_ps,
                alone_ps=length_ps,
                cause=self.row,
                queued_behind=row,
                released_by=self.row,
            )

    def beside(
        self,
        kind: int,
        end_ps: int,
        other: int,
        other_end_ps: int,
        *,
        alone_ps: int | None = None,
        other_alone_ps: int | None = None,
    ) -> None:
        """Two things at the same time from its last entry on: the longer one gets the whole stretch."""
        if other_end_ps > end_ps:
            kind, end_ps, other, other_end_ps = other, other_end_ps, kind, end_ps
            alone_ps, other_alone_ps = other_alone_ps, alone_ps
        behind = NO_ROW
        start = self.time_ps
        if self._recorder.spans and other_end_ps > start:
            behind = self._recorder.span(
                self.who,
                other,
                start,
                other_end_ps,
                alone_ps=None if other_alone_ps is None else min(other_alone_ps, other_end_ps - start),
                cause=self.row,
                released_by=self.row,
            )
        self.spend(kind, end_ps, behind=behind, alone_ps=alone_ps)

    def follow(self, released: Snapshot, at_ps: int) -> None:
        """Something else let this actor go on: take over its path, which ends at `at_ps`."""
        self.sums = released[0].copy()
        self.row = released[1]
        self.time_ps = at_ps

    def released(self, kind: int, by: Snapshot, at_ps: int) -> None:
        """This actor waited until `at_ps` for another: the wait is a span of its own, beside the path taken over."""
        recorder = self._recorder
        if recorder.spans and at_ps > self.time_ps:
            recorder.span(
                self.who,
                kind,
                self.time_ps,
                at_ps,
                alone_ps=0,
                cause=self.row,
                queued_behind=by[1],
                released_by=by[1],
            )
        self.follow(by, at_ps)

    def snapshot(self) -> Snapshot:
        """The path up to now, for those whom this actor releases."""
        return self.sums.copy(), self.row
