"""What a simulation leaves behind, before any report: plain numbers and columns, in picoseconds and bytes.

`gpusim.simulation` fills it, `gpusim.result` turns it into `summary.json`, DataFrames and files. Nothing here knows
pandas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpusim.kinds import Kind

#: the faults{} block of summary.json; `raised` is the sum of all the others
FAULT_COUNTERS = (
    "duplicates",
    "filtered",
    "stale",
    "overflowed",
    "skipped_recent",
    "serviced",
    "failed",
    "pending",
)


@dataclass(frozen=True, slots=True)
class StepData:
    """One executed step of the program.

    `attribution` maps kinds to picoseconds on the critical path of this step and sums to its duration; None when
    recording is off or when the step's critical path begins before the step (see `spans`).
    """

    path: str  # steps.blur[3][1]: name, then repeat index, then rank
    name: str
    process: str
    thread: str
    kind: str  # the verb: launch, memcpy, ...
    start_ps: int
    end_ps: int
    bytes: int  # what the program asked for
    stream: str | None = None
    attribution: Mapping[Kind, int] | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)  # e.g. kernel, gpu, direction
    #: what a formula needs to know of its work, by names of its verb's own; in no table
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Formula:
    """A step's time put together by hand: words with the numbers in them, and what they come to."""

    text: str
    value_ps: int


@dataclass(frozen=True, slots=True)
class ProcessData:
    """How one process ended."""

    name: str
    outcome: str
    error: str | None
    end_ps: int
    kfd: Mapping[str, int] = field(default_factory=dict)  # KFD's counters: faults, page_in, page_out


@dataclass(frozen=True, slots=True)
class FaultCounts:
    """Counters of retry faults of one (gpu, process), keys of FAULT_COUNTERS.

    `vectors` are the interrupt vectors that reached the driver, re-sends and those thrown away counted; the interrupt
    handler spent `interrupt_ps` of CPU time on them.
    """

    gpu: str
    process: str
    counts: Mapping[str, int]
    vectors: int = 0
    interrupt_ps: int = 0


#: what each counter of a GPU counts; a run has those of the mechanisms that it simulates one by one
GPU_COUNTERS = {
    "table_reads": "page-table reads of kernels, without memory behind a link; means where steps are not looked up",
    "vmids_taken_over": "times a process lost its VMID to another one",
    "interrupts": "hard interrupts for retry faults",
    "ring0_peak": "most vectors in ring 0 at once",
    "ring0_lost": "vectors that overflows of ring 0 lost",
    "ring1_peak": "most vectors in ring 1 at once",
    "soft_ring_peak": "most vectors in a soft ring at once",
    "soft_ring_lost": "vectors that found a soft ring full",
    "ats_requests": "translations that the ATC asked the IOMMU for",
    "ats_found": "those that the CPU page table had",
    "page_requests": "PRI requests, for pages that it did not have",
    "ppr_log_peak": "most page requests in the PPR log at once",
    "ppr_log_lost": "page requests that found the PPR log full",
    "atc_fills_4k": "translations of 4 KiB that came to the ATC",
    "atc_fills_32k": "translations of 32 KiB that came to the ATC",
    "atc_fills_2m": "translations of 2 MiB that came to the ATC",
    "atc_evictions": "translations that a full array of the ATC gave up",
    "atc_invalidations": "translations that the IOMMU took back",
}


@dataclass(frozen=True, slots=True)
class MigrationTotal:
    """One direction: `host_to_device`, `device_to_host`, ..."""

    direction: str
    count: int
    bytes: int
    time_ps: int  # sum of the durations of the migrations


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """One resource over time, in equal bins from time 0; the last bin ends at or after the makespan.

    `group` is `link` (named as in summary.json: `gpu[0].pcie.h2d`), `worker` (fault worker of a GPU), `engine` (SDMA),
    `memory` (HBM) or `lock`. `busy_ps` and `bytes` are per bin.
    """

    name: str
    group: str
    bytes: int
    busy_ps: int
    bin_ps: int
    busy_ps_per_bin: Sequence[int]
    bytes_per_bin: Sequence[int]
    capacity_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number of the machine, with its provenance (for `explain`, `--uncertainty` and the formula)."""

    path: str
    value: Any
    text: str
    source: str
    grade: str  # measured, datasheet, fitted, assumed
    range: tuple[Any, Any] | None


@dataclass(frozen=True, slots=True)
class IoTotal:
    """File requests of one path (fastpath, fallback, posix, rejected) in one direction; the `io` table has each.

    `kinds` says what they spent their time on, all requests together; None when recording is off. `limits` says how
    much of what could limit them was in use meanwhile, as fractions: drive, link, memory, lock, pool, host functions,
    submitter.
    """

    path: str
    direction: str
    requests: int
    bytes: int
    first_start_ps: int
    last_end_ps: int
    latency_ps: int  # the sum
    longest_ps: int
    first_latency_ps: int  # of the first request
    reasons: Mapping[str, int]  # why they went this way -> requests
    errors: Mapping[str, int]  # code -> requests
    kinds: Mapping[Kind, int] | None
    cpu_ps: int | None
    limits: Mapping[str, float]


@dataclass(slots=True)
class RunData:
    """Everything a run produced."""

    makespan_ps: int
    outcome: str
    processes: list[ProcessData]
    steps: list[StepData]
    faults: list[FaultCounts]
    migrations: list[MigrationTotal]
    uses: list[ResourceUse]
    attribution: dict[Kind, int] | None  # sums to makespan_ps; None when recording is off
    bound_by: str | None  # one phrase: what the critical path is spent on
    formulas: Mapping[int, Formula]  # by place in `steps`: lines that a person can check by hand
    notes: list[
        str
    ]  # what explain should say beside the breakdown (e.g. "the 2 ms rule limits ...; it is inferred")
    not_modelled: list[str]
    seed: int
    #: name -> column -> array; faults, migrations, io, spans (spans only with record=spans)
    tables: dict[str, dict[str, Any]]
    engine: dict[str, Any]  # events, wave_steps, wall_s, peak_rss_bytes
    parameters: list[Parameter] = field(default_factory=list)
    io: list[IoTotal] = field(default_factory=list)
    #: gpu -> counter -> number, of GPU_COUNTERS
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    #: process -> what ais-stats shows of it
    io_statistics: dict[str, dict[str, Any]] = field(default_factory=dict)
