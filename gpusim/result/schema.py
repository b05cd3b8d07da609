"""What a result consists of: every column of every table, and the JSON Schema of summary.json.

`gpusim schema results` prints this; a test holds it against what runs really write.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gpusim.kinds import DEFINITIONS, Kind
from gpusim.result.io_summary import IO_PATHS, OTHER_PATHS
from gpusim.rundata import FAULT_COUNTERS, GPU_COUNTERS

SCHEMA_VERSION = 1

OUTCOMES = (
    "completed",
    "hip_error",
    "out_of_memory",
    "host_out_of_memory",
    "io_error",
    "sigbus",
    "vm_fault",
    "livelock",
    "limit",
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `type` is text, integer, number, boolean or category; `unit` is what its name ends in."""

    name: str
    type: str
    unit: str | None
    description: str


def kind_column(kind: Kind) -> str:
    """The name of the column that holds nanoseconds of a kind: `recent_skip_ns`."""
    return f"{kind.name.lower()}_ns"


def _pieces(of: str) -> tuple[Column, ...]:
    return tuple(
        Column(kind_column(kind), "number", "ns", f"{of} spent on: {DEFINITIONS[kind]}") for kind in Kind
    )


_COUNT = Column(
    "count",
    "integer",
    None,
    "rows of the run that this row stands for: 1, unless the table would exceed 64 MiB and was binned "
    "over time, duration and the text columns; then numbers are means over the bin and addresses are the "
    "lowest in it",
)

#: The tables that each result directory holds.
ALWAYS = ("steps", "faults", "migrations", "io", "links", "parameters")

#: The columns that a table has. Columns `<kind>_ns` are there for the kinds that occurred.
TABLES: dict[str, tuple[Column, ...]] = {
    "steps": (
        Column("path", "text", None, "the step's name, then [repeat index], then [rank]"),
        Column("name", "text", None, "the step's name"),
        Column("process", "text", None, "the process that ran it"),
        Column("thread", "text", None, "the host thread that ran it"),
        Column("kind", "text", None, "the verb: launch, memcpy, ..."),
        Column("stream", "text", None, "the stream it was put on, if any"),
        Column("start_ns", "number", "ns", "when the host thread reached it"),
        Column("end_ns", "number", "ns", "when its operation ended"),
        Column("duration_ns", "number", "ns", "end minus start"),
        Column("bytes", "integer", "bytes", "what the program asks for, not what links carry"),
        Column("bandwidth_gb_per_s", "number", "GB/s", "bytes over duration, 1e9 bytes/s"),
        Column("detail", "text", None, "further facts of the verb, as JSON"),
        *_pieces("part of the step's critical path"),
    ),
    "faults": (
        Column("gpu", "category", None, "the GPU that raised it"),
        Column("process", "category", None, "the process whose address it is"),
        Column("page", "integer", None, "virtual address divided by 4096"),
        Column("client", "category", None, "who sent it first: compute_unit, sdma or command_processor"),
        Column("access", "category", None, "what it would do: read, write, execute or atomic"),
        Column("write", "boolean", None, "the first access was a write or an atomic"),
        Column("pages", "integer", None, "4 KiB pages that its service mapped"),
        Column("result", "category", None, "M migrated, U updated (mapped where the page was)"),
        Column("raised_ns", "number", "ns", "first send"),
        Column("started_ns", "number", "ns", "the fault worker starts on it"),
        Column("mapped_ns", "number", "ns", "the page-table entry is valid"),
        Column("replayed_ns", "number", "ns", "the first waiter's access is sent again and hits"),
        Column("latency_ns", "number", "ns", "replayed minus raised"),
        Column("waiters", "integer", None, "wavefronts that waited for it"),
        _COUNT,
        *_pieces("part of the latency"),
    ),
    "migrations": (
        Column("process", "category", None, "the process whose pages moved"),
        Column("from", "category", None, "node that the pages were on"),
        Column("to", "category", None, "node that the pages went to"),
        Column("trigger", "category", None, "PREFETCH, PAGEFAULT_GPU, PAGEFAULT_CPU or TTM_EVICTION"),
        Column("start_ns", "number", "ns", "the driver starts to migrate"),
        Column("end_ns", "number", "ns", "the pages are in their new place"),
        Column("page", "integer", None, "first virtual address divided by 4096"),
        Column("pages", "integer", None, "4 KiB pages moved"),
        Column("bytes", "integer", "bytes", "bytes moved"),
        _COUNT,
    ),
    "io": (
        Column("process", "category", None, "the process that asked"),
        Column("path", "category", None, "fastpath, fallback or posix"),
        Column("direction", "category", None, "read or write"),
        Column("start_ns", "number", "ns", "the request is made"),
        Column("end_ns", "number", "ns", "the request is answered"),
        Column("bytes", "integer", "bytes", "bytes transferred"),
        _COUNT,
    ),
    "links": (
        Column("name", "category", None, "link direction, fault worker, engine, memory or lock"),
        Column("group", "category", None, "link, worker, engine, memory or lock"),
        Column("start_ns", "number", "ns", "start of the bin"),
        Column("end_ns", "number", "ns", "end of the bin; the last one ends with the run"),
        Column("bytes", "integer", "bytes", "bytes carried in the bin"),
        Column("busy_ns", "number", "ns", "time in the bin in which it was in use"),
        Column("busy_fraction", "number", "fraction", "busy_ns over the bin's length"),
        Column("bandwidth_gb_per_s", "number", "GB/s", "bytes over the bin's length, 1e9 bytes/s"),
        Column("capacity_gb_per_s", "number", "GB/s", "what it could carry; missing for workers and locks"),
    ),
    "kfd_events": (
        Column("event", "category", None, "name of the SMI event: PAGE_FAULT_START, MIGRATE_END, ..."),
        Column("time_ns", "number", "ns", "when the driver sends it"),
        Column("process", "category", None, "the process whose memory or queues it is about"),
        Column("pid", "integer", None, "the process id in the event's line"),
        Column("page", "integer", None, "first virtual address divided by 4096"),
        Column("pages", "integer", None, "4 KiB pages of the range; 0 for faults, which have none"),
        Column("gpu", "category", None, "the GPU; empty for migrations"),
        Column("from", "category", None, "where migrated pages were"),
        Column("to", "category", None, "where migrated pages go"),
        Column("prefetch", "category", None, "prefetch location of the range, at the start of a migration"),
        Column("preferred", "category", None, "preferred location of the range, likewise"),
        Column(
            "cause",
            "category",
            None,
            "trigger; READ or WRITE at the start of a fault, MIGRATED or UPDATED at its end, RESTORED or "
            "RESCHEDULED for queues",
        ),
        Column("dropped", "integer", None, "events lost when the log was full; only in a DROPPED_EVENT"),
        Column("line", "text", None, "the line that the kernel writes for it"),
    ),
    "spans": (
        Column("who", "category", None, "the part that spent the time"),
        Column("kind", "category", None, "what it was spent on; `gpusim.kinds.DEFINITIONS` defines each"),
        Column("start_ns", "number", "ns", "start"),
        Column("end_ns", "number", "ns", "end"),
        Column("alone_ns", "number", "ns", "what it would have taken without contention"),
        Column("cause", "integer", None, "1 + row of the span that asked for it; 0: none"),
        Column("queued_behind", "integer", None, "1 + row of the span that held the server; 0: none"),
        Column("released_by", "integer", None, "1 + row of the span that let it go on; 0: none"),
    ),
    "parameters": (
        Column("path", "text", None, "the number's path, as overrides: takes it"),
        Column("value", "text", None, "the value with its unit"),
        Column("source", "text", None, "where the value comes from"),
        Column("grade", "category", None, "measured, datasheet, fitted or assumed"),
        Column("low", "text", None, "lower end of its range, if it has one"),
        Column("high", "text", None, "upper end of its range, if it has one"),
    ),
}


#: what one row of each table is
ROWS: dict[str, str] = {
    "steps": "an executed step of the program",
    "faults": "a served retry fault, from its first send to its replay",
    "migrations": "a migrate call that moved pages",
    "io": "a file request",
    "links": "a link, worker, engine, memory or lock in one bin of time",
    "kfd_events": "an event that KFD tells those who listen",
    "spans": "a stretch of time that something spent",
    "parameters": "a number of the machine, with its source",
}


def _object(properties: dict[str, Any], *, optional: tuple[str, ...] = (), text: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }
    return made | ({"description": text} if text else {})


def _map(values: dict[str, Any], text: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values, "description": text}


def _is(kind: str | list[str], text: str = "", **more: Any) -> dict[str, Any]:
    return {"type": kind, **({"description": text} if text else {}), **more}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def summary_schema() -> dict[str, Any]:
    """JSON Schema of summary.json. Counters that a run does not model are absent, hence optional."""
    number, integer, words = _is("number"), _is("integer"), _is("string")
    maybe_number, maybe_words = _is(["number", "null"]), _is(["string", "null"])
    latency = _object(
        {"count": integer, **dict.fromkeys(("mean", "p50", "p95", "p99", "max"), maybe_number)},
        text="nanoseconds, nearest rank; null when the count is 0",
    )
    fractions = _nullable(_map(number, "fraction by kind; sums to 1; null when recording was off"))
    counters: dict[str, Any] = {"raised": _is("integer", "the sum of the other counters")}
    counters |= dict.fromkeys(FAULT_COUNTERS, integer)
    counters["vectors"] = _object(
        {
            "count": _is("integer", "interrupt vectors that reached the driver"),
            "duplicate_fraction": _is(
                ["number", "null"], "share of them that led to no service; null without any"
            ),
            "interrupt_cpu_ns": _is("number", "CPU time of the interrupt handler"),
            "queue_peak": _is(["integer", "null"], "most served faults that waited for a worker at once"),
        }
    )
    counters["latency_ns"] = _nullable(latency)
    faults = _object(counters, optional=FAULT_COUNTERS)
    migration = _object(
        {"count": integer, "bytes": integer, "time_ns": number, "bandwidth_gb_per_s": maybe_number}
    )
    use = {"bytes": integer, "busy_fraction": maybe_number}
    io = _object(
        {
            "requests": integer,
            "bytes": integer,
            "bandwidth_gb_per_s": maybe_number,
            "latency_ns": latency,
            "first_call_ns": _is(["number", "null"], "latency of the first request"),
            "later_calls_ns": _is(["number", "null"], "mean latency of all others"),
            "cpu_ns": _is(["number", "null"], "CPU time of all requests; null when recording was off"),
            "time": _nullable(_map(number, "fraction of the requests' time by kind; null as cpu_ns")),
            "limits": _map(
                number,
                "how much of each was in use meanwhile: drive, link, memory, lock, pool, host functions, submitter",
            ),
            "limited_by": _is(
                ["string", "null"],
                "the limit that was used most; submitter where none was in use for 2/3 of the time: the threads have "
                "too few requests in flight",
            ),
            "in_flight": _is(["number", "null"], "requests in flight on average"),
            "reasons": _map(integer, "requests by the reason for the path"),
            "errors": _map(integer, "requests that failed, by code"),
        }
    )
    step = {
        "path": words, "name": words, "process": words, "thread": words, "kind": words,
        "start_ns": number, "end_ns": number, "duration_ns": number,
        "bytes": _is("integer", "what the program asks for, not what links carry"),
        "bandwidth_gb_per_s": maybe_number, "attribution": fractions,
    }  # fmt: skip
    process = {
        "name": words,
        "outcome": _is("string", enum=list(OUTCOMES)),
        "error": maybe_words,
        "end_ns": number,
        "kfd": _object(
            {
                "faults": _is("integer", "retry faults that the driver looked at"),
                "page_in": _is("integer", "pages moved to VRAM"),
                "page_out": _is("integer", "pages moved to RAM"),
                "migrate_retries": _is(
                    "integer", "second and third tries: CPU threads held pages that were to leave a VRAM"
                ),
                "sdma_faults": _is("integer", "retry faults of copy engines in locked memory"),
                "migrate_deadlocks": _is(
                    "integer", "moves to another GPU given up after three tries (-EDEADLK)"
                ),
            },
            optional=("migrate_retries", "migrate_deadlocks", "sdma_faults"),
            text="the counters that KFD keeps for a process; absent where no GPU took part",
        ),
    }
    per = {
        "per_gpu": _map(faults, "the same by GPU"),
        "per_process": _map(faults, "the same by process"),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "summary.json of a gpusim result",
        **_object(
            {
                "schema_version": _is("integer", const=SCHEMA_VERSION),
                "scenario": words,
                "question": maybe_words,
                "answer": _object(
                    {
                        "text": words,
                        "metric": _is("string", "the path that Result.metric takes"),
                        "value": _is(["number", "string", "null"]),
                        "unit": maybe_words,
                    }
                ),
                "bound_by": maybe_words,
                "formula": _is(["string", "null"], "the time of what is answered, put together by hand"),
                "formula_off": _is(["number", "null"], "how far it is from the simulation, as a fraction"),
                "outcome": _is("string", "the worst of the processes' outcomes", enum=list(OUTCOMES)),
                "processes": _is("array", items=_object(process, optional=("kfd",))),
                "makespan_ns": number,
                "steps": _is("array", items=_object(step)),
                "faults": _object(counters | per, optional=FAULT_COUNTERS),
                "counters": _map(
                    _object(
                        {name: _is("integer", text) for name, text in GPU_COUNTERS.items()},
                        optional=tuple(GPU_COUNTERS),
                    ),
                    "by GPU: what its translation and its interrupts did, as far as it is simulated one by one",
                ),
                "migrations": _map(migration, "by direction: host_to_device, device_to_host, ..."),
                "thrash": _object(
                    {
                        "moved_bytes": _is("integer", "migrated, in all directions"),
                        "useful_bytes": _is("integer", "what kernels asked for"),
                        "ratio": _is(["number", "null"], "bytes moved per useful byte"),
                        "evictions": _is("integer", "ranges that left a full VRAM"),
                    }
                ),
                "links": _map(_object(use), "by link direction"),
                "resources": _map(
                    _object({"group": words} | use), "the same for fault workers, engines, memories and locks"
                ),
                "io": _object(
                    {path: _object({"read": io, "write": io}) for path in IO_PATHS + OTHER_PATHS}
                    | {"statistics": _map({"type": "object"}, "by process: what ais-stats shows")},
                    optional=(*IO_PATHS, *OTHER_PATHS, "statistics"),
                    text="empty when file I/O is not modelled, see not_modelled",
                ),
                "attribution": fractions,
                "notes": _is("array", "what to know beside the breakdown", items=words),
                "seed": integer,
                "version": words,
                "not_modelled": _is("array", items=words),
                "engine": _is("object", "all that differs from run to run"),
                "trace": _object(
                    {
                        "files": _is("array", items=words),
                        "bytes": _is("integer", "size of the Perfetto trace"),
                        "budget_bytes": integer,
                        "dropped": _map(integer, "how many of what the trace lacks"),
                    },
                    text="there only when a trace was written",
                ),
                "uncertainty": _uncertainty(),
            },
            optional=("counters", "trace", "uncertainty"),
        ),
    }


def _uncertainty() -> dict[str, Any]:
    """The band of the answer over draws of what is fitted or assumed."""
    maybe, words, integer = _is(["number", "null"]), _is("string"), _is("integer")
    hangs = {
        "path": _is("string", "as in overrides"),
        "value": words,
        "range": _is("array", items=words),
        "grade": words,
        "source": words,
        "rank_correlation": _is("number", "Spearman's, with the answer, over the draws"),
        "regression": _is("number", "standardised coefficient of the ranks, all parameters together"),
        "at_low": _is(["number", "null"], "the answer at the low end of the range, all else as it is"),
        "at_high": _is(["number", "null"], "the same at the high end"),
    }
    return _object(
        {
            "metric": _is("string", "of the answer"),
            "unit": _is(["string", "null"]),
            "value": _is(["number", "null"], "with the profile's numbers"),
            "draws": integer,
            "outcomes": _map(integer, "draws by how they ended; the band is over those that completed"),
            **dict.fromkeys(("min", "p5", "p50", "p95", "max"), maybe),
            "parameters": _is(
                "array", "what the answer hangs on, the largest swing first", items=_object(hangs)
            ),
            "explained": _is(["number", "null"], "share of the variance of ranks that they explain"),
            "drawn": _is("integer", "numbers that were drawn"),
            "held": _map(words, "what is fitted or assumed and was not drawn, and why"),
        },
        text="there only when uncertainty was asked for",
    )


def results_schema() -> dict[str, Any]:
    """All of a result directory, as `gpusim schema results` prints it."""
    return {
        "summary": summary_schema(),
        "tables": {name: [asdict(column) for column in columns] for name, columns in TABLES.items()},
    }
