"""Runs that no simulator made: RunData of realistic size and shape, for tests of results and reports.

Each function is a small story with numbers near the measured ones; all pieces tile, all counters add up.
"""

import numpy as np

from gpusim.kinds import Kind
from gpusim.rundata import (
    FaultCounts,
    Formula,
    MigrationTotal,
    Parameter,
    ProcessData,
    ResourceUse,
    RunData,
    StepData,
)

US, MS, S = 10**6, 10**9, 10**12  # picoseconds
GIB = 2**30
GRANULE = 2 * 2**20
BINS = 256

ENGINE = {"events": 412_331, "wave_steps": 65_536, "wall_s": 1.31, "peak_rss_bytes": 182_452_224}


def split(total_ps, shares):
    """Whole picoseconds by share; what rounding leaves goes to the first kind, so that they tile."""
    parts = {kind: int(total_ps * share) for kind, share in shares.items()}
    first = next(iter(parts))
    parts[first] += total_ps - sum(parts.values())
    return parts


def use(name, group, makespan_ps, intervals, *, capacity=None):
    """A resource busy over intervals (start, end, bytes), binned over the run."""
    bin_ps = -(-makespan_ps // BINS)
    busy, moved = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    for start, end, size in intervals:
        if end <= start:
            continue
        credited = 0
        for index in range(start // bin_ps, min(BINS - 1, (end - 1) // bin_ps) + 1):
            low, high = max(start, index * bin_ps), min(end, (index + 1) * bin_ps)
            busy[index] += high - low
            part = size * (high - low) // (end - start)
            moved[index] += part
            credited += part
            last = index
        moved[last] += size - credited
    return ResourceUse(
        name=name,
        group=group,
        bytes=int(moved.sum()),
        busy_ps=int(busy.sum()),
        bin_ps=bin_ps,
        busy_ps_per_bin=busy.tolist(),
        bytes_per_bin=moved.tolist(),
        capacity_bytes_per_s=capacity,
    )


def fault_table(rng, count, *, start_ps, service_ps, skip_share, process, gpu="gpu0", result="M"):
    """`count` faults served one after another; each waits in the queue, some for the 2 ms rule."""
    service = (service_ps * rng.normal(1, 0.04, count)).astype(np.int64)
    skipped = rng.random(count) < skip_share
    skip = np.where(skipped, (2 * MS * rng.uniform(0.35, 1.0, count)).astype(np.int64), 0)
    held = (skipped * rng.uniform(0.4, 1.2, count) * MS).astype(
        np.int64
    )  # the worker idles until the 2 ms pass
    started = start_ps + np.cumsum(service + held) - service
    depth = np.minimum(np.arange(count) + 1, rng.integers(3, 13, count))
    queue = (depth * service_ps * rng.uniform(0.2, 1.0, count)).astype(np.int64)
    delivery = rng.integers(4 * US, 9 * US, count)
    raised = np.maximum(started - queue - delivery - skip, 0)
    queue = started - raised - delivery - skip
    short = queue < 0
    delivery = np.where(short, started - raised - skip, delivery)
    skip = np.where(short & (delivery < 0), skip + delivery, skip)
    delivery = np.maximum(delivery, 0)
    queue = started - raised - delivery - skip
    shares = {
        Kind.DRIVER_FIXED: 0.05,
        Kind.PAGE_ALLOC: 0.11,
        Kind.DEVICE_PAGE: 0.16,
        Kind.DMA_MAP: 0.13,
        Kind.HMM_WALK: 0.08,
        Kind.BO_CLEAR: 0.03,
        Kind.SDMA_COPY: 0.30,
        Kind.PTE_WRITE: 0.06,
        Kind.DUPLICATES: 0.08,
    }
    pieces = {kind: (service * share).astype(np.int64) for kind, share in shares.items()}
    pieces[Kind.DRIVER_FIXED] += service - sum(pieces.values())
    resend = rng.integers(0, 12 * US, count)
    mapped = started + service
    replayed = mapped + resend
    client = rng.choice(["compute_unit", "sdma"], count).tolist()
    write = rng.random(count) < 0.5
    table = {
        "gpu": [gpu] * count,
        "process": [process] * count,
        "page": (0x7F0000000 + np.arange(count) * 512).astype(np.int64),
        "client": client,
        "access": np.where(write, "write", "read").tolist(),
        "write": write,
        "pages": np.full(count, 512),
        "result": [result] * count,
        "raised_ps": raised,
        "started_ps": started,
        "mapped_ps": mapped,
        "replayed_ps": replayed,
        "latency_ps": replayed - raised,
        "waiters": rng.integers(1, 33, count),
        "fault_delivery_ps": delivery,
        "fault_queue_ps": queue,
        "recent_skip_ps": skip,
        "resend_ps": resend,
    }
    return table | {f"{kind.name.lower()}_ps": part for kind, part in pieces.items()}


def no_events():
    return {
        "migrations": {
            name: []
            for name in ("process", "from", "to", "trigger", "start_ps", "end_ps", "page", "pages", "bytes")
        },
        "io": {name: [] for name in ("process", "path", "direction", "start_ps", "end_ps", "bytes", "count")},
    }


PARAMETERS = [
    Parameter("gpu.hbm.bandwidth", 1.6384e12, "1.638TB/s", "data sheet of the MI210", "datasheet", None),
    Parameter(
        "driver.svm.recent_restore", 2 * MS, "2ms", "driver source; inferred", "assumed", ("0s", "2ms")
    ),
    Parameter("driver.cost.page", 660_000, "0.66us", "FAU004, FAU008", "fitted", ("0.6us", "0.7us")),
]


def first_touch(*, count=2048, seed=1):
    """One kernel faults in 4 GiB of managed memory that the CPU wrote before; the 2 ms rule holds it up."""
    rng = np.random.default_rng(seed)
    fill_end = 1100 * MS
    kernel_start = fill_end + 20 * US
    table = fault_table(
        rng, count, start_ps=kernel_start + 2 * MS, service_ps=336 * US, skip_share=0.35, process="app"
    )
    kernel_end = int(table["replayed_ps"].max()) + 31 * US
    makespan = kernel_end + 12 * US
    size = count * GRANULE
    starts, ends = table["started_ps"], table["mapped_ps"]
    copies = list(
        zip(
            (starts + (ends - starts) // 2).tolist(), (ends - 9 * US).tolist(), [GRANULE] * count, strict=True
        )
    )
    kernel = split(
        kernel_end - kernel_start,
        {
            Kind.RECENT_SKIP: 0.43,
            Kind.SDMA_COPY: 0.17,
            Kind.DEVICE_PAGE: 0.09,
            Kind.DMA_MAP: 0.075,
            Kind.PAGE_ALLOC: 0.06,
            Kind.HMM_WALK: 0.045,
            Kind.DUPLICATES: 0.04,
            Kind.PTE_WRITE: 0.03,
            Kind.DRIVER_FIXED: 0.03,
            Kind.BO_CLEAR: 0.015,
            Kind.RESEND: 0.008,
            Kind.FAULT_DELIVERY: 0.005,
            Kind.HBM: 0.002,
        },
    )
    fill = split(fill_end, {Kind.HOST_MEMORY: 0.72, Kind.PAGE_ZERO: 0.17, Kind.PAGE_ALLOC: 0.11})
    whole = dict(kernel)
    for kind, part in fill.items():
        whole[kind] = whole.get(kind, 0) + part
    whole[Kind.LAUNCH] = kernel_start - fill_end
    whole[Kind.SYNC] = makespan - kernel_end
    return RunData(
        makespan_ps=makespan,
        outcome="completed",
        processes=[ProcessData("app", "completed", None, makespan)],
        steps=[
            StepData("steps.fill", "fill", "app", "main", "host_touch", 0, fill_end, size, attribution=fill),
            StepData(
                "steps.scale",
                "scale",
                "app",
                "main",
                "launch",
                kernel_start,
                kernel_end,
                2 * size,
                attribution=kernel,
                detail={"kernel": "scale", "gpu": "gpu0"},
            ),
        ],
        faults=[
            FaultCounts(
                "gpu0",
                "app",
                {
                    "duplicates": 41_212,
                    "filtered": 0,
                    "stale": 12,
                    "overflowed": 0,
                    "skipped_recent": 8_814,
                    "serviced": count,
                    "failed": 0,
                    "pending": 0,
                },
            )
        ],
        migrations=[
            MigrationTotal("host_to_device", count, size, int((ends - starts).sum())),
            MigrationTotal("device_to_host", 0, 0, 0),
        ],
        uses=[
            use("gpu[0].pcie.h2d", "link", makespan, copies, capacity=25.6e9),
            use("gpu[0].pcie.d2h", "link", makespan, [], capacity=25.6e9),
            use(
                "gpu[0].fault_worker",
                "worker",
                makespan,
                [(a, b, 0) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)],
            ),
            use("gpu[0].sdma[0]", "engine", makespan, copies),
            use("gpu[0].hbm", "memory", makespan, [(kernel_start, kernel_end, 2 * size)], capacity=1.6384e12),
            use("host.memory", "memory", makespan, [(0, fill_end, size)], capacity=80e9),
            use(
                "app.svm_lock",
                "lock",
                makespan,
                [(a, b, 0) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)],
            ),
        ],
        attribution=whole,
        bound_by="the 2 ms recent-restore skip of the fault worker",
        formulas={1: Formula("2,048 granules × (0.336 ms service + 0.29 ms skip)", 1_282_000_000_000)},
        notes=[
            "The 2 ms rule limits how fast one range faults in. It is inferred: no measurement confirms it."
        ],
        not_modelled=["CPU caches", "ATC and IOMMU translation"],
        seed=7,
        tables={
            "faults": table,
            "migrations": {
                "process": ["app"] * count,
                "from": ["host"] * count,
                "to": ["gpu0"] * count,
                "trigger": ["PAGEFAULT_GPU"] * count,
                "start_ps": starts,
                "end_ps": ends,
                "page": table["page"],
                "pages": table["pages"],
                "bytes": np.full(count, GRANULE),
            },
            "io": no_events()["io"],
        },
        engine=dict(ENGINE),
        parameters=list(PARAMETERS),
    )


def blur(*, repeats=100, ranks=4, seed=2):
    """Ranks that each fault in 800 MB of malloc memory by the first of many blurs."""
    rng = np.random.default_rng(seed)
    count = 382
    size = 800_640_128
    first_ps, later_ps = 128_400 * US, 12_740 * US
    steps, tables, counts, ends = [], [], [], []
    for rank in range(ranks):
        process = f"app[{rank}]" if ranks > 1 else "app"
        gpu = f"gpu{rank}"
        at = 3 * MS
        for index in range(repeats):
            took = first_ps if index == 0 else int(later_ps * rng.normal(1, 0.004))
            shares = (
                {
                    Kind.PAGE_ALLOC: 0.31,
                    Kind.PAGE_ZERO: 0.38,
                    Kind.PTE_WRITE: 0.12,
                    Kind.DUPLICATES: 0.14,
                    Kind.DRIVER_FIXED: 0.05,
                }
                if index == 0
                else {Kind.HBM: 0.93, Kind.COMPUTE: 0.06, Kind.LAUNCH: 0.01}
            )
            path = f"steps.blur[{index}]" + (f"[{rank}]" if ranks > 1 else "")
            steps.append(
                StepData(
                    path,
                    "blur",
                    process,
                    "main",
                    "launch",
                    at,
                    at + took,
                    2 * size,
                    attribution=split(took, shares),
                )
            )
            at += took
        ends.append(at)
        tables.append(
            fault_table(
                rng,
                count,
                start_ps=4 * MS,
                service_ps=329 * US,
                skip_share=0,
                process=process,
                gpu=gpu,
                result="U",
            )
        )
        counts.append(
            FaultCounts(
                gpu,
                process,
                {
                    "duplicates": 12_000 + rank,
                    "stale": 3,
                    "skipped_recent": 0,
                    "serviced": count,
                    "failed": 0,
                    "pending": 0,
                },
            )
        )
    makespan = max(ends) + 1 * MS
    table = {
        name: np.concatenate([np.asarray(part[name]) for part in tables]).tolist()
        if isinstance(tables[0][name], list)
        else np.concatenate([part[name] for part in tables])
        for name in tables[0]
    }
    uses = []
    for rank in range(ranks):
        uses.append(
            use(
                f"gpu[{rank}].hbm",
                "memory",
                makespan,
                [(131 * MS, makespan - 2 * MS, 2 * size * (repeats - 1))],
                capacity=1.6384e12,
            )
        )
        uses.append(use(f"gpu[{rank}].pcie.h2d", "link", makespan, [], capacity=25.6e9))
        uses.append(use(f"gpu[{rank}].fault_worker", "worker", makespan, [(4 * MS, 130 * MS, 0)]))
    whole = split(
        makespan,
        {
            Kind.HBM: 0.84,
            Kind.COMPUTE: 0.05,
            Kind.PAGE_ZERO: 0.035,
            Kind.PAGE_ALLOC: 0.03,
            Kind.DUPLICATES: 0.014,
            Kind.PTE_WRITE: 0.012,
            Kind.LAUNCH: 0.011,
            Kind.DRIVER_FIXED: 0.005,
            Kind.HOST_ALLOC: 0.003,
        },
    )
    return RunData(
        makespan_ps=makespan,
        outcome="completed",
        processes=[ProcessData(step.process, "completed", None, makespan) for step in steps[::repeats]],
        steps=steps,
        faults=counts,
        migrations=[MigrationTotal("host_to_device", 0, 0, 0), MigrationTotal("device_to_host", 0, 0, 0)],
        uses=uses,
        attribution=whole,
        bound_by="HBM bandwidth",
        formulas={0: Formula("1.601 GB / 126 GB/s", 12_700_000_000)},
        notes=[],
        not_modelled=["MPI halo exchange"],
        seed=0,
        tables={"faults": table, **no_events()},
        engine=dict(ENGINE),
        parameters=list(PARAMETERS),
    )


def resident(*, record="summary"):
    """A kernel over hipMalloc memory: no fault, no migration."""
    end = 11_656 * US
    size = 800_640_128
    parts = split(end, {Kind.HBM: 0.95, Kind.COMPUTE: 0.04, Kind.LAUNCH: 0.01})
    kept = None if record == "off" else parts
    return RunData(
        makespan_ps=end,
        outcome="completed",
        processes=[ProcessData("app", "completed", None, end)],
        steps=[StepData("steps.copy", "copy", "app", "main", "launch", 0, end, 2 * size, attribution=kept)],
        faults=[FaultCounts("gpu0", "app", {"duplicates": 0, "serviced": 0, "failed": 0, "pending": 0})],
        migrations=[MigrationTotal("host_to_device", 0, 0, 0)],
        uses=[
            use("gpu[0].hbm", "memory", end, [(0, end, 2 * size)], capacity=1.6384e12),
            use("gpu[0].pcie.h2d", "link", end, [], capacity=25.6e9),
        ],
        attribution=kept,
        bound_by=None if record == "off" else "HBM bandwidth",
        formulas={},
        notes=[],
        not_modelled=["CPU caches"],
        seed=0,
        tables={} if record == "off" else {"faults": empty_faults(), **no_events()},
        engine=dict(ENGINE),
    )


def empty_faults():
    table = fault_table(np.random.default_rng(0), 1, start_ps=MS, service_ps=MS, skip_share=0, process="app")
    return {name: values[:0] for name, values in table.items()}


def died():
    """XNACK is off and the kernel touches malloc memory: the process dies of a fatal fault."""
    data = resident()
    data.outcome = "vm_fault"
    data.processes = [
        ProcessData(
            "app",
            "vm_fault",
            "page fault of a write at 0x7f0000000000 by kernel `copy` with XNACK off",
            data.makespan_ps,
        )
    ]
    return data


def with_spans(data, *, count=2000, seed=3):
    """The same run with every span on record."""
    rng = np.random.default_rng(seed)
    starts = np.sort(rng.integers(0, data.makespan_ps * 9 // 10, count))
    lengths = rng.integers(1 * US, 300 * US, count)
    rows = np.arange(count, dtype=np.uint32)
    data.tables["actors"] = {"name": ["gpu[0].fault_worker", "gpu[0].wave[3]", "app.main"]}
    data.tables["spans"] = {
        "who": rng.integers(0, 3, count).astype(np.uint32),
        "kind": rng.integers(0, len(Kind), count).astype(np.uint16),
        "start_ps": starts,
        "end_ps": starts + lengths,
        "alone_ps": lengths // 2,
        "cause": rows,
        "queued_behind": np.zeros(count, dtype=np.uint32),
        "released_by": rows // 2,
    }
    return data
