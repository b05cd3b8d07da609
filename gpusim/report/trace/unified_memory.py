"""The unified-memory profile of each process, with the fields and the layout of rocprofiler-systems.

As there, it counts KFD records: a migration's size is the length of its address range, its throughput is bytes over
the sum of the durations, and a process without faults and migrations has no profile. Where nothing migrates, as on
an APU, `devices` is empty: the profile is about faults only. A device's id is its KFD node: the one host first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.driver.events import pid
from gpusim.quantity import GIB, KIB, MIB
from gpusim.report.trace.kfd import PAGE_FAULT, PAGE_MIGRATE, Record

if TYPE_CHECKING:
    from gpusim.result import Result

_TRIGGERS = {  # key of the JSON -> trigger of the event, words of the text
    "gpu_page_fault": ("PAGEFAULT_GPU", "GPU page fault"),
    "cpu_page_fault": ("PAGEFAULT_CPU", "CPU page fault"),
    "prefetch": ("PREFETCH", "Prefetch"),
    "ttm_eviction": ("TTM_EVICTION", "TTM eviction"),
    "unknown": ("", "Unknown"),
}
_DIRECTIONS = {
    "host_to_device": "Host To Device",
    "device_to_host": "Device To Host",
    "device_to_device": "Device To Device",
}
_HEADER = "    Count  Avg Size  Min Size  Max Size  Total Size  Total Time    Migration Throughput  Name"


@dataclass(frozen=True, slots=True)
class Machine:
    """Names that the profile shows: `gfx[i]` of GPU i, and what the host's CPU is called."""

    gfx: Sequence[str]
    cpu: str

    def name(self, gpu: str) -> str:
        return f"{self.gfx[_index(gpu)]} (via {self.cpu})"


def save(result: Result, records: Sequence[Record], directory: Path) -> list[str]:
    """Write text and JSON for each process that had events; the names of the files."""
    machine = _machine(result)
    written = []
    for number, process in enumerate(result.scenario.processes):
        own = [record for record in records if record.pid == pid(number)]
        made = profile(own, machine, xnack=process.env.get("HSA_XNACK") == "1")
        if not made["devices"] and not made["summary"]["total_page_faults"]:
            continue
        name = f"unified_memory-{pid(number)}"
        (directory / f"{name}.txt").write_text(text(made, pid(number)), encoding="utf-8")
        (directory / f"{name}.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
        written += [f"{name}.txt", f"{name}.json"]
    return written


def profile(records: Sequence[Record], machine: Machine, *, xnack: bool) -> dict[str, Any]:
    """The JSON of one process's records."""
    moves = [record for record in records if record.category == PAGE_MIGRATE]
    known = [trigger for trigger, _ in _TRIGGERS.values()]
    return {
        "devices": [
            {
                "device_id": 1 + _index(gpu),
                "device_name": machine.name(gpu),
                "migrations": {
                    way: _statistics([r for r in moves if r.gpu == gpu and _direction(r) == way])
                    for way in _DIRECTIONS
                },
            }
            for gpu in sorted({record.gpu for record in moves}, key=_index)
        ],
        "summary": {
            "total_page_faults": sum(record.category == PAGE_FAULT for record in records),
            "xnack_enabled": xnack,
            "migration_triggers": {
                key: sum(
                    record.cause == trigger or (not trigger and record.cause not in known) for record in moves
                )
                for key, (trigger, _) in _TRIGGERS.items()
            },
        },
    }


def text(made: dict[str, Any], number: int) -> str:
    """The same for people."""
    lines = [f"=={number}== Unified Memory profiling result:"]
    for device in made["devices"]:
        lines += [f' Device "{device["device_name"]} ({device["device_id"]})"', _HEADER]
        lines += [
            f"{row['count']:>9}  {_size(int(row['avg_size_bytes'])):>8}  {_size(row['min_size_bytes']):>8}  "
            f"{_size(row['max_size_bytes']):>8}  {_size(row['total_size_bytes']):>10}  "
            f"{_time(row['total_time_ns']):>11}  {row['migration_throughput_gbps']:>9.2f} GB/s  {_DIRECTIONS[way]}"
            for way, row in device["migrations"].items()
            if row["count"]
        ]
        lines.append("")
    summary = made["summary"]
    lines.append(f" Total Page Faults: {summary['total_page_faults']}")
    triggers = {key: count for key, count in summary["migration_triggers"].items() if count}
    if triggers:
        lines += ["", " Migration Triggers:"]
        lines += [f"   {_TRIGGERS[key][1] + ':':<16}{count:>10}" for key, count in triggers.items()]
    return "\n".join(lines) + "\n"


def _statistics(moves: Sequence[Record]) -> dict[str, Any]:
    sizes = [record.size_bytes for record in moves]
    # the driver stamps whole nanoseconds
    time_ns = sum(int(record.end_ns) - int(record.start_ns) for record in moves)
    return {
        "count": len(moves),
        "avg_size_bytes": sum(sizes) / len(sizes) if sizes else 0.0,
        "min_size_bytes": min(sizes, default=0),
        "max_size_bytes": max(sizes, default=0),
        "total_size_bytes": sum(sizes),
        "total_time_ns": time_ns,
        "migration_throughput_gbps": sum(sizes) / time_ns if time_ns else 0.0,
    }


def _direction(record: Record) -> str:
    if record.origin == "host":
        return "host_to_device"
    return "device_to_host" if record.target == "host" else "device_to_device"


def _index(gpu: str) -> int:
    return int(gpu[4:-1])


def _machine(result: Result) -> Machine:
    from gpusim.scenario.resolve import resolve

    system = resolve(result.scenario)
    cpu = next((name.removeprefix("cpus/") for name in system.versions if name.startswith("cpus/")), "CPU 0")
    return Machine([str(tree["gfx"]) for tree in system.gpus], cpu)


def _size(size_bytes: int) -> str:
    """KB, MB and GB are powers of 1024 here, as the tool has them."""
    for unit, factor in (("GB", GIB), ("MB", MIB), ("KB", KIB)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.4f}{unit}"
    return f"{size_bytes}B"


def _time(time_ns: int) -> str:
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if time_ns >= factor:
            return f"{time_ns / factor:.4f}{unit}"
    return f"{time_ns}ns"
