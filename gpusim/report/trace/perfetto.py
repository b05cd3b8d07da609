"""A Perfetto trace within a budget of bytes, encoded by Perfetto's own protobuf classes.

Packets are kept encoded until the end, then written by time. What does not fit is dropped, the shortest slices of the
least important kind first, counted, and said in the trace itself. Left out: picoseconds, since Perfetto counts
nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpusim.report.trace.lanes import assign

LANES = 256  # tracks of one name, at most
_SEQUENCE = 1
_END, _POINT, _BEGIN = range(3)  # order of what happens at one time
_WORD = 12  # bytes of an interned word beside its letters
_RESERVE = 4096  # bytes for the words about what was dropped


@dataclass(frozen=True, slots=True)
class Slice:
    """Something with a start and an end in nanoseconds, and `inner` (name, start, end) parts of it.

    `gives` and `takes` are numbers of arrows that leave it and arrive at it.
    """

    name: str
    start_ns: float
    end_ns: float
    details: Mapping[str, Any] = field(default_factory=dict)
    inner: tuple[tuple[str, float, float], ...] = ()
    gives: int = 0
    takes: int = 0


class Trace:
    """Tracks, slices, counters. `dropped` says how many of what had no room."""

    def __init__(self, budget_bytes: int) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

        self._messages = messages
        self._room = budget_bytes - _RESERVE
        self._budget = budget_bytes
        self._heads: list[bytes] = []
        self._events: list[tuple[int, int, float, bytes]] = []  # time, order, minus length, packet
        self._names: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._details: dict[str, int] = {}
        self._one = messages.Trace()
        self._packet = self._one.packet.add()
        self._tracks: dict[tuple[int, str, int], int] = {}
        self._last = 0
        self.dropped: dict[str, int] = {}

    # -- tracks ----------------------------------------------------------------------------------------------------

    def process(self, name: str, number: int) -> int:
        """A process of the trace: one part of the machine, or a program."""
        packet = self._descriptor(0, "")
        packet.track_descriptor.process.pid = number
        packet.track_descriptor.process.process_name = name
        return self._keep()

    def thread(self, process: int, number: int, name: str, pid: int) -> int:
        """A thread of a process."""
        packet = self._descriptor(process, "")
        packet.track_descriptor.thread.pid = pid
        packet.track_descriptor.thread.tid = number
        packet.track_descriptor.thread.thread_name = name
        return self._keep()

    def track(self, parent: int, name: str, lane: int = 0) -> int:
        """A track of slices below a process; asked again, the same one."""
        key = (parent, name, lane)
        if key not in self._tracks:
            self._descriptor(parent, name)
            self._tracks[key] = self._keep()
        return self._tracks[key]

    def _descriptor(self, parent: int, name: str) -> Any:
        self._last += 1
        packet = self._cleared()
        descriptor = packet.track_descriptor
        descriptor.uuid = self._last
        if parent:
            descriptor.parent_uuid = parent
        if name:
            descriptor.name = name
        return packet

    def _keep(self) -> int:
        self._heads.append(self._one.SerializeToString())
        self._room -= len(self._heads[-1])
        return self._last

    # -- what happens ----------------------------------------------------------------------------------------------

    def counter(self, parent: int, name: str, unit: str, points: Iterable[tuple[float, float]]) -> None:
        """Values (time in nanoseconds, value) from which each holds until the next."""
        if self._room <= 0:
            self._lost("counters", 1)
            return
        packet = self._descriptor(parent, name)
        packet.track_descriptor.counter.unit_name = unit
        track = self._keep()
        for time_ns, value in points:
            if self._room <= 0:
                self._lost("values of counters", 1)
                continue
            packet = self._event(time_ns, track, self._messages.TrackEvent.TYPE_COUNTER)
            packet.track_event.double_counter_value = value
            self._add(time_ns, _POINT, 0.0)

    def slices(self, what: str, parent: int, track: str, category: str, slices: Sequence[Slice]) -> None:
        """Slices of one track, in further ones of its name where they overlap."""
        lanes = assign([(one.start_ns, one.end_ns) for one in slices], LANES)
        order = sorted(range(len(slices)), key=lambda index: slices[index].start_ns - slices[index].end_ns)
        lost = 0
        for index in order:  # the longest first: when there is no more room, the shortest are missing
            lane = lanes[index]
            if lane is None:
                continue
            if self._room > 0:
                self._slice(self.track(parent, track, lane), category, slices[index])
            else:
                lost += 1
        self._lost(what, lost)
        self._lost(f"{what} beyond {LANES} at a time", lanes.count(None))

    def on_thread(self, what: str, thread: int, category: str, slices: Sequence[Slice]) -> None:
        """Slices of a thread; what does not nest is dropped."""
        lanes = assign([(one.start_ns, one.end_ns) for one in slices], 1)
        lost = 0
        for one, lane in zip(slices, lanes, strict=True):
            if lane is None or self._room <= 0:
                lost += 1
            else:
                self._slice(thread, category, one)
        self._lost(what, lost)

    def _lost(self, what: str, count: int) -> None:
        if count:
            self.dropped[what] = self.dropped.get(what, 0) + count

    def _slice(self, track: int, category: str, one: Slice) -> None:
        kinds = self._messages.TrackEvent
        start, end = round(one.start_ns), round(one.end_ns)
        packet = self._event(start, track, kinds.TYPE_SLICE_BEGIN if end > start else kinds.TYPE_INSTANT)
        event = packet.track_event
        event.name_iid = self._number(self._names, one.name)
        event.category_iids.append(self._number(self._categories, category))
        if one.gives:
            event.flow_ids.append(one.gives)
        if one.takes:
            event.terminating_flow_ids.append(one.takes)
        for name, value in one.details.items():
            detail = event.debug_annotations.add()
            detail.name_iid = self._number(self._details, name)
            if isinstance(value, str):
                detail.string_value = value
            elif isinstance(value, int):
                detail.int_value = value
            else:
                detail.double_value = float(value)
        self._add(start, _BEGIN, start - end)
        for name, inner_start, inner_end in one.inner:
            if round(inner_end) > round(inner_start):
                self._slice(track, category, Slice(name, inner_start, inner_end))
        if end > start:
            self._event(end, track, kinds.TYPE_SLICE_END)
            self._add(end, _END, 0.0)

    def _event(self, time_ns: float, track: int, kind: int) -> Any:
        packet = self._cleared()
        packet.timestamp = round(time_ns)
        packet.sequence_flags = self._messages.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        return packet

    def _add(self, time_ns: float, order: int, length: float) -> None:
        data = self._one.SerializeToString()
        self._events.append((round(time_ns), order, length, data))
        self._room -= len(data)

    def _number(self, known: dict[str, int], name: str) -> int:
        """The number of a word that is written once."""
        if name not in known:
            known[name] = len(known) + 1
            self._room -= len(name.encode()) + _WORD
        return known[name]

    def _cleared(self) -> Any:
        self._packet.Clear()
        self._packet.trusted_packet_sequence_id = _SEQUENCE
        return self._packet

    # -- the end ---------------------------------------------------------------------------------------------------

    def write(self, file: Path) -> int:
        """Write everything; the number of bytes."""
        if self.dropped:
            about = self.process(f"gpusim: dropped from this trace of at most {self._budget:,} bytes", 2**22)
            self._room += _RESERVE
            for what, count in self.dropped.items():
                self._slice(self.track(about, f"{count:,} {what}"), "gpusim", Slice("dropped", 0, 0))
        self._events.sort(key=lambda event: event[:3])
        size = 0
        with file.open("wb") as out:
            size += out.write(self._interned())
            for data in self._heads:
                size += out.write(data)
            for _, _, _, data in self._events:
                size += out.write(data)
        return size

    def _interned(self) -> bytes:
        packet = self._cleared()
        packet.sequence_flags = self._messages.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        words = packet.interned_data
        for known, made in (
            (self._names, words.event_names),
            (self._categories, words.event_categories),
            (self._details, words.debug_annotation_names),
        ):
            for name, number in known.items():
                entry = made.add()
                entry.iid, entry.name = number, name
        data: bytes = self._one.SerializeToString()
        return data
