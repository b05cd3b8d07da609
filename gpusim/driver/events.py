"""KFD SMI events: what the driver tells a user who listens, with its names, triggers and line format (`kfd_svm.md` 6).

Rows are kept as numbers and become text when they are written. GPUs have the ids of `gpu_id`, 0 is the CPU; a
process has the pid of `pid`. When the log is full, events are lost as in the driver's FIFO, and counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from gpusim.driver.attributes import CPU, UNDEFINED

MOST_ROWS = 1 << 20  # of 64 bytes each


class SmiEvent(IntEnum):
    """KFD_SMI_EVENT_*, with its number."""

    VMFAULT = 1
    MIGRATE_START = 5
    MIGRATE_END = 6
    PAGE_FAULT_START = 7
    PAGE_FAULT_END = 8
    QUEUE_EVICTION = 9
    QUEUE_RESTORE = 10
    UNMAP_FROM_GPU = 11
    DROPPED_EVENT = 14


class MigrateTrigger(IntEnum):
    """KFD_MIGRATE_TRIGGER_*."""

    PREFETCH = 0
    PAGEFAULT_GPU = 1
    PAGEFAULT_CPU = 2
    TTM_EVICTION = 3


class EvictionTrigger(IntEnum):
    """KFD_QUEUE_EVICTION_TRIGGER_*."""

    SVM = 0
    USERPTR = 1
    TTM = 2


class UnmapTrigger(IntEnum):
    """KFD_SVM_UNMAP_TRIGGER_*."""

    MMU_NOTIFY = 0
    MMU_NOTIFY_MIGRATE = 1
    UNMAP_FROM_CPU = 2


def gpu_id(location: int) -> int:
    """The id of a GPU of the node; 0 for the CPU."""
    if location == UNDEFINED:
        return 0xFFFFFFFF
    return 0 if location == CPU else 0x1000 + 0x111 * location


def pid(process: int) -> int:
    """The pid of a process, by its number."""
    return 1000 + process


class EventLog:
    """The events of one run. Times may be in the future when they are added; `rows` sorts them."""

    WIDTH = 9  # event, time_ps, process, page, pages, three numbers, trigger

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self._rows = array("q")
        self.dropped = 0
        self._last_ps = 0
        self.counters: dict[int, dict[str, int]] = {}

    def __len__(self) -> int:
        return len(self._rows) // self.WIDTH

    def count(self, process: int, counter: str, more: int = 1) -> None:
        """The counters of pages that KFD keeps for a process in sysfs: page_in, page_out; others as they come."""
        counters = self.counters.get(process)
        if counters is None:
            counters = self.counters[process] = {"page_in": 0, "page_out": 0}
        counters[counter] = counters.get(counter, 0) + more

    def _add(self, event: SmiEvent, time_ps: int, process: int, *numbers: int) -> None:
        if not self.on:
            return
        if len(self._rows) >= MOST_ROWS * self.WIDTH:
            self.dropped += 1
            self._last_ps = max(self._last_ps, time_ps)
            return
        self._rows.extend((event, time_ps, process, *numbers))

    def migrate_start(
        self, time_ps: int, process: int, page: int, pages: int, ways: tuple[int, int], hints: tuple[int, int],
        trigger: str,
    ) -> None:  # fmt: skip
        """`ways` are origin and target, `hints` the prefetch and preferred locations of the range."""
        kind = MigrateTrigger[trigger]
        numbers = (page, pages, *ways, hints[0] << 32 | hints[1] & 0xFFFFFFFF, kind)
        self._add(SmiEvent.MIGRATE_START, time_ps, process, *numbers)

    def migrate_end(
        self, time_ps: int, process: int, page: int, pages: int, ways: tuple[int, int], trigger: str
    ) -> None:
        """The pages are in their new place."""
        kind = MigrateTrigger[trigger]
        self._add(SmiEvent.MIGRATE_END, time_ps, process, page, pages, *ways, 0, kind)

    def fault_start(self, time_ps: int, process: int, page: int, gpu: int, *, write: bool) -> None:
        """The worker has taken a retry fault up."""
        self._add(SmiEvent.PAGE_FAULT_START, time_ps, process, page, 0, gpu, write, 0, 0)

    def fault_end(self, time_ps: int, process: int, page: int, gpu: int, *, migrated: bool) -> None:
        """It has been served."""
        self._add(SmiEvent.PAGE_FAULT_END, time_ps, process, page, 0, gpu, migrated, 0, 0)

    def queue_eviction(self, time_ps: int, process: int, gpu: int, trigger: EvictionTrigger) -> None:
        """The queues of a process on a GPU stop."""
        self._add(SmiEvent.QUEUE_EVICTION, time_ps, process, 0, 0, gpu, 0, 0, trigger)

    def queue_restore(self, time_ps: int, process: int, gpu: int, *, rescheduled: bool) -> None:
        """They go on, or the attempt is put off."""
        self._add(SmiEvent.QUEUE_RESTORE, time_ps, process, 0, 0, gpu, rescheduled, 0, 0)

    def unmap(
        self, time_ps: int, process: int, page: int, pages: int, gpu: int, trigger: UnmapTrigger
    ) -> None:
        """Page-table entries of a GPU are taken away."""
        self._add(SmiEvent.UNMAP_FROM_GPU, time_ps, process, page, pages, gpu, 0, 0, trigger)

    def vm_fault(self, time_ps: int, process: int) -> None:
        """A fault that kills."""
        self._add(SmiEvent.VMFAULT, time_ps, process, 0, 0, 0, 0, 0, 0)

    def rows(self) -> Iterator[tuple[int, ...]]:
        """All rows by time; what happens at one time stays in the order in which it was added."""
        width, rows = self.WIDTH, self._rows
        order = sorted(range(0, len(rows), width), key=lambda at: rows[at + 1])
        for at in order:
            yield tuple(rows[at : at + width])
        if self.dropped:
            yield (SmiEvent.DROPPED_EVENT, self._last_ps, 0, 0, 0, 0, 0, 0, self.dropped)

    def table(self, names: list[str]) -> dict[str, list[Any]]:
        """Columns of the `kfd_events` table, rows by time; `names` are those of the processes."""
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        appends = [column.append for column in columns.values()]
        for row in self.rows():
            for append, value in zip(appends, _decoded(row, names), strict=True):
                append(value)
        return columns

    def lines(self, names: list[str]) -> Iterator[str]:
        """One line an event, as the driver writes them; `names` are those of the processes."""
        for row in self.rows():
            yield line(row, names)


#: of the `kfd_events` table; places are `host`, `gpu[0]` and so on, empty where an event has none
COLUMNS = (
    "event", "time_ps", "process", "pid", "page", "pages", "gpu", "from", "to", "prefetch", "preferred", "cause",
    "dropped", "line",
)  # fmt: skip


def _place(location: int) -> str:
    return "" if location == UNDEFINED else "host" if location == CPU else f"gpu[{location}]"


def _hints(packed: int) -> tuple[int, int]:
    """Prefetch and preferred location of a MIGRATE_START."""
    return packed >> 32, (packed & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def _decoded(row: tuple[int, ...], names: list[str]) -> tuple[Any, ...]:
    """One row of the table."""
    event, time_ps, process, page, pages, one, two, three, trigger = row
    kind = SmiEvent(event)
    gpu, origin, target, prefetch, preferred, cause, dropped = "", "", "", "", "", "", 0
    if kind in (SmiEvent.MIGRATE_START, SmiEvent.MIGRATE_END):
        origin, target, cause = _place(one), _place(two), MigrateTrigger(trigger).name
        if kind is SmiEvent.MIGRATE_START:
            prefetch, preferred = map(_place, _hints(three))
    elif kind is SmiEvent.PAGE_FAULT_START:
        gpu, cause = _place(one), "WRITE" if two else "READ"
    elif kind is SmiEvent.PAGE_FAULT_END:
        gpu, cause = _place(one), "MIGRATED" if two else "UPDATED"
    elif kind is SmiEvent.QUEUE_EVICTION:
        gpu, cause = _place(one), EvictionTrigger(trigger).name
    elif kind is SmiEvent.QUEUE_RESTORE:
        gpu, cause = _place(one), "RESCHEDULED" if two else "RESTORED"
    elif kind is SmiEvent.UNMAP_FROM_GPU:
        gpu, cause = _place(one), UnmapTrigger(trigger).name
    elif kind is SmiEvent.DROPPED_EVENT:
        dropped = trigger
    places = (gpu, origin, target, prefetch, preferred)
    return (
        kind.name,
        time_ps,
        names[process],
        pid(process),
        page,
        pages,
        *places,
        cause,
        dropped,
        line(row, names),
    )


def line(row: tuple[int, ...], names: list[str]) -> str:
    """One event: number, nanoseconds, pid, and what belongs to it; pages and ids in hexadecimal."""
    event, time_ps, process, page, pages, one, two, three, trigger = row
    if event == SmiEvent.VMFAULT:
        return f"{event:x} {pid(process):x}:{names[process]}"
    head = f"{event:x} {time_ps // 1000} -{pid(process)}"
    if event == SmiEvent.MIGRATE_START:
        prefetch, preferred = map(gpu_id, _hints(three))
        way = f"{gpu_id(one):x}->{gpu_id(two):x}"
        return f"{head} @{page:x}({pages:x}) {way} {prefetch:x}:{preferred:x} {trigger}"
    if event == SmiEvent.MIGRATE_END:
        return f"{head} @{page:x}({pages:x}) {gpu_id(one):x}->{gpu_id(two):x} {trigger} {three}"
    if event == SmiEvent.PAGE_FAULT_START:
        return f"{head} @{page:x}({gpu_id(one):x}) {'W' if two else 'R'}"
    if event == SmiEvent.PAGE_FAULT_END:
        return f"{head} @{page:x}({gpu_id(one):x}) {'M' if two else 'U'}"
    if event == SmiEvent.QUEUE_EVICTION:
        return f"{head} {gpu_id(one):x} {trigger}"
    if event == SmiEvent.QUEUE_RESTORE:
        return f"{head} {gpu_id(one):x}{' R' if two else ''}"
    if event == SmiEvent.UNMAP_FROM_GPU:
        return f"{head} @{page:x}({pages:x}) {gpu_id(one):x} {trigger}"
    return f"{head} {trigger}"
