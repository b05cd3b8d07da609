"""KFD events put together: a start and its end become one record, as ROCprofiler-SDK reports them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpusim.spec import PAGE_BYTES

if TYPE_CHECKING:
    import pandas as pd

PAGE_FAULT = "rocm_kfd_page_fault"
PAGE_MIGRATE = "rocm_kfd_page_migrate"
QUEUE = "rocm_kfd_queue"
EVENT_QUEUE = "rocm_kfd_event_queue"
UNMAP = "rocm_kfd_event_unmap_from_gpu"
DROPPED = "rocm_kfd_event_dropped_events"

_STARTS = {"PAGE_FAULT_START", "MIGRATE_START", "QUEUE_EVICTION"}
_ENDS = {
    "PAGE_FAULT_END": "PAGE_FAULT_START",
    "MIGRATE_END": "MIGRATE_START",
    "QUEUE_RESTORE": "QUEUE_EVICTION",
}


@dataclass(frozen=True, slots=True)
class Record:
    """One paired or single event: times in nanoseconds, `size_bytes` the range's length (0 without one).

    `gpu` is the GPU that it concerns; for migrations, `origin` and `target` are places (`host`, `gpu[0]`).
    """

    category: str
    name: str
    track: str
    start_ns: float
    end_ns: float
    pid: int
    gpu: str = ""
    origin: str = ""
    target: str = ""
    size_bytes: int = 0
    cause: str = ""
    details: dict[str, Any] = field(default_factory=dict)


def agent(place: str) -> str:
    """`gpu[1]` -> `GPU 1`, `host` -> `CPU 0`."""
    return f"GPU {place[4:-1]}" if place.startswith("gpu[") else "CPU 0"


def records(events: pd.DataFrame) -> tuple[list[Record], int]:
    """The records of a `kfd_events` table by start, and how many events had no partner.

    Faults pair by process, GPU and page; migrations by process, range and direction; a queue eviction with the next
    restore of the process on that GPU that is not put off.
    """
    waiting: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    found: list[Record] = []
    unpaired = 0
    for event in _rows(events):
        name = event["event"]
        if name == "QUEUE_RESTORE" and event["cause"] == "RESCHEDULED":
            found.append(_single(event))
        elif name in _STARTS:
            waiting.setdefault(_key(name, event), []).append(event)
        elif name in _ENDS:
            starts = waiting.get(_key(_ENDS[name], event))
            if starts:
                found.append(_paired(starts.pop(0), event))
            else:
                unpaired += 1
        else:
            found.append(_single(event))
    unpaired += sum(map(len, waiting.values()))
    return sorted(found, key=lambda record: record.start_ns), unpaired


def _rows(events: pd.DataFrame) -> Iterator[dict[str, Any]]:
    names = [name for name in events.columns if name != "line"]
    for values in zip(*(events[name].tolist() for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def _key(start: str, event: dict[str, Any]) -> tuple[Any, ...]:
    if start == "MIGRATE_START":
        return start, event["pid"], event["page"], event["pages"], event["from"], event["to"]
    return start, event["pid"], event["gpu"], event["page"]


def _paired(start: dict[str, Any], end: dict[str, Any]) -> Record:
    name, pid = start["event"], start["pid"]
    times = (start["time_ns"], max(start["time_ns"], end["time_ns"]))
    if name == "PAGE_FAULT_START":
        words = f"PAGE_FAULT_{start['cause']}_FAULT_{end['cause']}"
        track = f"KFD Page Fault [{agent(start['gpu'])}]"
        details = {"address": hex(start["page"] * PAGE_BYTES), "agent": start["gpu"]}
        return Record(PAGE_FAULT, words, track, *times, pid, gpu=start["gpu"], details=details)
    if name == "QUEUE_EVICTION":
        words, track = f"QUEUE_EVICT_{start['cause']}", f"KFD Queue [{agent(start['gpu'])}]"
        return Record(QUEUE, words, track, *times, pid, gpu=start["gpu"], details={"agent": start["gpu"]})
    origin, target = start["from"], start["to"]
    details = _range(start) | {"src_agent": origin, "dst_agent": target}
    details |= {f"{hint}_agent": start[hint] for hint in ("prefetch", "preferred") if start[hint]}
    return Record(
        PAGE_MIGRATE,
        f"PAGE_MIGRATE_{start['cause']}",
        f"KFD Page Migrate [{agent(origin)}->{agent(target)}]",
        *times,
        pid,
        gpu=target if origin == "host" else origin,
        origin=origin,
        target=target,
        size_bytes=start["pages"] * PAGE_BYTES,
        cause=start["cause"],
        details=details,
    )


def _single(event: dict[str, Any]) -> Record:
    name, gpu, at = event["event"], event["gpu"], event["time_ns"]
    if name == "UNMAP_FROM_GPU":
        size = event["pages"] * PAGE_BYTES
        words, track = f"UNMAP_FROM_GPU_{event['cause']}", f"KFD Unmap from GPU [{agent(gpu)}]"
        details = {"agent": gpu} | _range(event)
        return Record(UNMAP, words, track, at, at, event["pid"], gpu=gpu, size_bytes=size, details=details)
    if name == "QUEUE_RESTORE":
        words, track = "QUEUE_RESTORE_RESCHEDULED_EVENT", f"KFD Event Queue [{agent(gpu)}]"
        return Record(EVENT_QUEUE, words, track, at, at, event["pid"], gpu=gpu, details={"agent": gpu})
    if name == "DROPPED_EVENT":
        details = {"count": event["dropped"]}
        return Record(DROPPED, "DROPPED_EVENTS", "KFD Dropped Events", at, at, event["pid"], details=details)
    return Record("rocm_kfd_event", name, "KFD VM Fault", at, at, event["pid"])


def _range(event: dict[str, Any]) -> dict[str, str]:
    first = event["page"] * PAGE_BYTES
    return {"start_address": hex(first), "end_address": hex(first + event["pages"] * PAGE_BYTES)}
