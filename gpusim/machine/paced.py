"""A machine on which some kinds of work take less time, or more: the specs of a what-if.

What a part spends in stages is paced by its chain. Here is what parts work out by themselves from their specs: rates,
latencies, periods and windows. `paces[kind]` multiplies the time; None leaves a spec as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from gpusim.driver.driver_spec import DriverSpec
from gpusim.hardware.drive_spec import DriveSpec
from gpusim.hardware.gpu_spec import GpuSpec
from gpusim.kinds import Kind
from gpusim.linux.host_spec import HostSpec

#: in stages these stand for what a part has worked out
BY_PARTS = frozenset({Kind.DRIVE, Kind.FILE_SYSTEM, Kind.IO_LOCK, Kind.IO_PIN})

Paces = Sequence[float] | None


def gpu(spec: GpuSpec, paces: Paces) -> GpuSpec:
    """HBM bandwidth, the period of re-sends and the way of a fault to its worker."""
    if paces is None:
        return spec
    hbm = spec.hbm.model_copy(update={"bandwidth": spec.hbm.bandwidth / paces[Kind.HBM]})
    retry = spec.retry.model_copy(
        update={
            "period": max(1, round(spec.retry.period * paces[Kind.RESEND])),
            "delivery": round(spec.retry.delivery * paces[Kind.FAULT_DELIVERY]),
        }
    )
    return spec.model_copy(update={"hbm": hbm, "retry": retry})


def driver(spec: DriverSpec, paces: Paces) -> DriverSpec:
    """The window of the 2 ms rule, vectors thrown away, the delay of the restore work, and pins of file I/O."""
    if paces is None:
        return spec
    svm = spec.svm.model_copy(
        update={"recent_skip": round(spec.svm.recent_skip * paces[Kind.RECENT_SKIP])},
    )
    costs = spec.costs.model_copy(
        update={
            "skip": round(spec.costs.skip * paces[Kind.DUPLICATES]),
            "restore_delay": round(spec.costs.restore_delay * paces[Kind.QUEUES_STOPPED]),
        }
    )
    ais = spec.ais
    if ais is not None:
        pace = paces[Kind.IO_PIN]
        ais = ais.model_copy(
            update={name: round(getattr(ais, name) * pace) for name in ("pin", "unpin", "page")}
        )
    return spec.model_copy(update={"svm": svm, "costs": costs, "ais": ais})


def host(spec: HostSpec, paces: Paces) -> HostSpec:
    """Interrupts, the swap device, atomics, the page cache and system calls on files."""
    if paces is None:
        return spec
    update: dict[str, object] = {"interrupt": round(spec.interrupt * paces[Kind.FAULT_DELIVERY])}
    if spec.swap is not None:
        pace = paces[Kind.SWAP_IO]
        update["swap"] = spec.swap.model_copy(
            update={
                "read": spec.swap.read / pace,
                "write": spec.swap.write / pace,
                "latency": round(spec.swap.latency * pace),
            }
        )
    if spec.atomics is not None:
        pace = paces[Kind.CONTENTION]
        update["atomics"] = spec.atomics.model_copy(
            update={
                "owned": max(1, round(spec.atomics.owned * paces[Kind.HOST_MEMORY])),
                "between_cores": round(spec.atomics.between_cores * pace),
                "from_gpu": round(spec.atomics.from_gpu * pace),
            }
        )
    if spec.io is not None:
        pace = paces[Kind.PAGE_CACHE]
        rates = {
            name: getattr(spec.io, name) / pace for name in ("cache_read", "cache_write", "cache_bandwidth")
        }
        pace = paces[Kind.FILE_SYSTEM]
        times = {name: round(getattr(spec.io, name) * pace) for name in ("syscall", "direct", "journal")}
        update["io"] = spec.io.model_copy(update=rates | times)
    return spec.model_copy(update=update)


def drive(spec: DriveSpec, paces: Paces) -> DriveSpec:
    """Latency and rates of both directions, and of the media behind the write cache; the fabric stays as it is."""
    if paces is None:
        return spec
    pace = paces[Kind.DRIVE]
    if pace == 1.0:
        return spec
    ways = {
        way: part.model_copy(
            update={
                "latency": round(part.latency * pace),
                "bandwidth": part.bandwidth / pace,
                "stream": part.stream / pace if part.stream < inf else part.stream,
            }
        )
        for way, part in (("read", spec.read), ("write", spec.write))
    }
    ways["write"] = ways["write"].model_copy(update={"sustained": spec.write.sustained / pace})
    return spec.model_copy(update=ways)
