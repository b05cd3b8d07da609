"""What a trace shows, the most important first: programs, kernels, copies, counters, I/O, KFD events, faults, spans."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.driver.events import pid
from gpusim.report.trace.counters import counters
from gpusim.report.trace.kfd import Record
from gpusim.report.trace.perfetto import Slice

if TYPE_CHECKING:
    from gpusim.report.trace.perfetto import Trace
    from gpusim.result import Result

KERNELS = ("launch", "memset")  # memset is a fill kernel
IN_STREAMS = (*KERNELS, "memcpy", "prefetch")
FAULT_PARTS = ("wait for service", "service", "wait for the re-send")
_KFD, _HOST, _IO, _SPANS = 2**20, 2**20 + 1, 2**20 + 2, 2**20 + 3  # numbers of parts that are no program
_GPUS = 2**21  # and of GPU 0


class Parts:
    """Processes of the trace by the name of the part."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[str, int] = {}

    def of(self, name: str) -> int:
        """The process that shows a resource, a GPU or a part: `gpu[0].pcie.h2d` belongs to `gpu[0]`."""
        head = name.split(".", maxsplit=1)[0]
        if head.startswith("gpu["):
            part, number = head, _GPUS + int(head[4:-1])
        else:
            fixed = {"KFD": _KFD, "file I/O": _IO, "spans": _SPANS}
            part, number = (name, fixed[name]) if name in fixed else ("host", _HOST)
        if part not in self._known:
            self._known[part] = self._trace.process(part, number)
        return self._known[part]


def fill(trace: Trace, result: Result, records: Sequence[Record]) -> None:
    """Put a result and its KFD records into a trace."""
    parts = Parts(trace)
    _programs(trace, result)
    _device_work(trace, parts, result)
    counters(trace, parts.of, result, records)
    _io(trace, parts, result)
    by_track: dict[tuple[str, str], list[Slice]] = defaultdict(list)
    for record in records:
        details = dict(record.details) | {"pid": record.pid}
        by_track[record.track, record.category].append(
            Slice(record.name, record.start_ns, record.end_ns, details)
        )
    for (track, category), slices in by_track.items():
        trace.slices("KFD events", parts.of("KFD"), track, category, slices)
    _faults(trace, parts, result)
    _spans(trace, parts, result)


def _programs(trace: Trace, result: Result) -> None:
    """A process for each program, a thread for each host thread with the steps that it does itself."""
    steps = result.summary["steps"]
    for number, process in enumerate(result.summary["processes"]):
        part = trace.process(process["name"], pid(number))
        own = [step for step in steps if step["process"] == process["name"]]
        for index, thread in enumerate(dict.fromkeys(step["thread"] for step in own)):
            track = trace.thread(part, 10_000 * (number + 1) + index, thread, pid(number))
            slices = [
                Slice(step["path"], step["start_ns"], step["end_ns"], _told(step))
                for step in own
                if step["thread"] == thread and step["kind"] not in IN_STREAMS
            ]
            trace.on_thread("steps", track, "host", slices)


def _told(step: Mapping[str, Any]) -> dict[str, Any]:
    return {"verb": step["kind"]} | ({"bytes": step["bytes"]} if step["bytes"] else {})


def _device_work(trace: Trace, parts: Parts, result: Result) -> None:
    """Kernels and copies on the GPU that does them, under the names of their queues and targets."""
    table = result.tables["steps"]
    columns = ("name", "process", "kind", "stream", "start_ns", "end_ns", "bytes", "detail")
    queues: dict[tuple[str, str, str], int] = {}
    tracks: dict[tuple[str, str, str], list[Slice]] = defaultdict(list)
    for values in zip(*(table[name].tolist() for name in columns), strict=True):
        step = dict(zip(columns, values, strict=True))
        if step["kind"] not in IN_STREAMS:
            continue
        told = json.loads(step["detail"])
        stream = step["stream"] if isinstance(step["stream"], str) else "null stream"
        origin, target = told.pop("from", "host"), told.pop("to", "host")
        details = {"process": step["process"], "stream": stream, "bytes": step["bytes"]} | told
        if step["kind"] in KERNELS:
            same = [key for key in queues if key[0] == target]
            queue = queues.setdefault((target, step["process"], stream), len(same))
            track = f"GPU Kernel Dispatch [{_number(target)}] Queue {queue}"
            where, category, name = target, "rocm_kernel_dispatch", told.get("kernel", step["name"])
        elif step["kind"] == "memcpy":
            where = target if target != "host" else origin
            track = f"GPU Memory Copy to Agent [{_agent(target)}]"
            category, name = "rocm_memory_copy", f"MEMORY_COPY_{_side(origin)}_TO_{_side(target)}"
        else:  # the target of a prefetch is named as its process sees it; the migrations say where it is
            where, track = "host", f"Prefetch [{step['process']}, {stream}]"
            category, name = "rocm_hip_api", f"hipMemPrefetchAsync {told.get('buffer', '')}".rstrip()
            details["to"] = target
        tracks[where, track, category].append(Slice(name, step["start_ns"], step["end_ns"], details))
    for (where, track, category), slices in tracks.items():
        what = {"rocm_kernel_dispatch": "kernels", "rocm_memory_copy": "copies"}.get(category, "prefetches")
        trace.slices(what, parts.of(where), track, category, slices)


def _number(gpu: str) -> int:
    return int(gpu[4:-1]) if gpu.startswith("gpu[") else 0


def _agent(place: str) -> int:
    """The node: the host first."""
    return 1 + _number(place) if place.startswith("gpu[") else 0


def _side(place: str) -> str:
    return "DEVICE" if place.startswith("gpu[") else "HOST"


def _io(trace: Trace, parts: Parts, result: Result) -> None:
    """File requests; rows that stand for many cannot be drawn."""
    table = result.tables["io"]
    binned = int(table.loc[table["count"] > 1, "count"].sum())
    if binned:
        trace.dropped["file requests of a binned table"] = binned
    single = table[table["count"] == 1]
    for key, rows in single.groupby(["process", "path", "direction"], observed=True):
        process, path, direction = key
        slices = [
            Slice(str(direction), start, end, {"bytes": size})
            for start, end, size in zip(
                rows["start_ns"].tolist(), rows["end_ns"].tolist(), rows["bytes"].tolist(), strict=True
            )
        ]
        track = f"{path} {direction} [{process}]"
        trace.slices("file requests", parts.of("file I/O"), track, "hipfile", slices)


def _faults(trace: Trace, parts: Parts, result: Result) -> None:
    """The life of each fault from its first send to its replay, with what it was spent on."""
    if "faults" not in result.tables:
        return
    table = result.tables["faults"]
    binned = int(table.loc[table["count"] > 1, "count"].sum())
    if binned:
        trace.dropped["faults of a binned table"] = binned
    table = table[table["count"] == 1]
    times = ("raised_ns", "started_ns", "mapped_ns", "replayed_ns")
    pieces = [name for name in table.columns if name.endswith("_ns") and name not in (*times, "latency_ns")]
    pieces = [name for name in pieces if table[name].any()]
    for gpu, rows in table.groupby("gpu", observed=True):
        slices = []
        for row in zip(*(rows[name].tolist() for name in ("write", "page", *times, *pieces)), strict=True):
            marks = row[2:6]
            spent = {name: value for name, value in zip(pieces, row[6:], strict=True) if value}
            inner = tuple(
                (name, start, end) for name, start, end in zip(FAULT_PARTS, marks, marks[1:], strict=False)
            )
            details = {"page": hex(row[1])} | spent
            slices.append(
                Slice("write fault" if row[0] else "read fault", marks[0], marks[3], details, inner)
            )
        trace.slices("faults", parts.of(str(gpu)), "retry faults", "retry_fault", slices)


def _spans(trace: Trace, parts: Parts, result: Result) -> None:
    """Every recorded span on a track of its actor, with an arrow from what let it go on."""
    if "spans" not in result.tables:
        return
    table = result.tables["spans"]
    released, cause = table["released_by"].tolist(), table["cause"].tolist()
    arrows = [by if by != own else 0 for by, own in zip(released, cause, strict=True)]
    given = set(arrows)
    rows = zip(
        table["who"].tolist(), table["kind"].tolist(), table["start_ns"].tolist(), table["end_ns"].tolist(),
        table["alone_ns"].tolist(), arrows, strict=True,
    )  # fmt: skip
    actors: dict[str, list[Slice]] = defaultdict(list)
    for number, (who, kind, start, end, alone, arrow) in enumerate(rows, start=1):
        gives = number if number in given else 0
        actors[who].append(Slice(kind, start, end, {"alone_ns": alone}, gives=gives, takes=arrow))
    for who, slices in sorted(actors.items(), key=lambda item: item[1][0].start_ns):
        trace.slices("spans", parts.of("spans"), who, "span", slices)
