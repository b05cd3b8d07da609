"""Jobs of file requests: what each request of a thread pays, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpusim.kinds import Kind
from gpusim.machine.by_hand.case import LEAST, Candidate, Case, at_rate, each, quotient, times, together
from gpusim.quantity import format_duration_ps
from gpusim.spec import PAGE_BYTES

if TYPE_CHECKING:
    from gpusim.hardware.drive import Drive
    from gpusim.rundata import IoTotal, StepData

_BOUNCE = 16 << 20  # a request of the fallback goes through a buffer of this size (`hipfile.md` 2.3)


def of_requests(case: Case) -> Iterator[Candidate]:
    """All drives at their rate; or a thread's requests one after another."""
    yield from _drives(case)
    job = case.facts
    size = int(job.get("io_size", 0))
    if not size or case.host.io is None or case.host.hipfile is None:
        return
    count = -(-case.step.bytes // size)
    most = -(-count // int(job["threads"]))  # requests of the thread with the most
    terms = list(_terms(case, min(size, case.step.bytes)))
    if terms:
        yield times(most, "requests" if job["threads"] == 1 else "requests of a thread", terms)
    way = "write" if job["write"] else "read"
    for total in case.data.io:
        if total.direction == way and total.requests and total.kinds is not None:
            yield from _in_the_pool(case, count, total)
            took = each(total.latency_ps // total.requests // int(job["threads"]), "a request")
            yield f"{count} requests x {took[0]}", count * took[1]


def _in_the_pool(case: Case, count: int, total: IoTotal) -> Iterator[Candidate]:
    """Requests wait for a thread of the library's pool: all its threads at work, on what their requests take."""
    if case.share(Kind.IO_QUEUE) < LEAST or total.kinds is None:
        return
    served = sum(spent for kind, spent in total.kinds.items() if kind is not Kind.IO_QUEUE) // total.requests
    threads = case.machine.hipfiles.libraries[case.step.process].pool.threads
    text = f"{count} requests x {format_duration_ps(served)} on a thread of the pool / {threads} threads"
    yield text, count * served // threads


def _used(case: Case, step: StepData | None = None) -> list[Drive]:
    """The drives at the bottom of a step's files."""
    step = case.step if step is None else step
    files = next(process.hip.files for process in case.machine.processes if process.name == step.process)
    found = (drive for name in step.facts.get("files", ()) for drive in files[name].device.drives)
    return list(dict.fromkeys(found))


def _drives(case: Case) -> Iterator[Candidate]:
    used = _used(case)
    if used and case.share(Kind.DRIVE, Kind.WRITEBACK) >= 0.5:
        way = "write" if case.facts["write"] else "read"
        rate = sum(getattr(drive.spec, way).bandwidth for drive in used)
        yield at_rate(case.step.bytes, rate, "the drive" if len(used) == 1 else f"{len(used)} drives")


def _beside(case: Case, drive: Drive) -> float:
    """Requests at a drive in the mean whenever the step has one there: its own, and those of other steps (Little)."""
    step = case.step
    others = 0.0
    for other in case.data.steps:
        overlap = min(other.end_ps, step.end_ps) - max(other.start_ps, step.start_ps)
        if other is step or overlap <= 0 or not other.attribution or drive not in _used(case, other):
            continue
        there = other.attribution.get(Kind.DRIVE, 0) / (other.end_ps - other.start_ps)
        others += there * int(other.facts["threads"]) * overlap / case.length_ps
    return int(case.facts["threads"]) + others


def _terms(case: Case, size: int) -> Iterator[Candidate]:
    """What a request of `size` bytes pays, kind by kind as far as the path has them."""
    job, host = case.facts, case.host
    io, library, pages = host.io, host.hipfile, host.pages
    assert io is not None
    assert library is not None
    write, threads = bool(job["write"]), int(job["threads"])
    bounced = case.share(Kind.BOUNCE_MAP) > 0
    parts = -(-size // _BOUNCE) if bounced else 1  # chunks of the fallback
    of_chunks = "" if parts == 1 else f", {parts} chunks"
    ais = case.driver.ais

    def on_path(*kinds: Kind) -> bool:
        return case.share(*kinds) >= LEAST

    if on_path(Kind.IO_SUBMIT):
        yield each(library.call + (ais.ioctl if ais is not None and not bounced else 0), "submission")
    if on_path(Kind.IO_PIN) and ais is not None:
        yield each(ais.pin + ais.unpin + ais.page * -(-size // PAGE_BYTES), "pin and unpin")
    if on_path(Kind.FILE_SYSTEM):
        direct = case.share(Kind.IO_PIN) > 0 or bool(job.get("direct"))
        call = 0 if case.share(Kind.IO_PIN) > 0 else io.syscall
        yield each(parts * (call + (io.direct if direct else 0)), f"file system{of_chunks}")
    if on_path(Kind.BOUNCE_MAP):
        count = -(-min(size, _BOUNCE) // PAGE_BYTES)
        page = pages.fault + pages.alloc + pages.zero + pages.free
        yield together(each(library.map, "mmap"), times(count, "bounce pages", [each(page, "each")]))
    if on_path(Kind.PAGE_CACHE):
        one = io.cache_write if write else io.cache_read
        yield at_rate(size, min(one, io.cache_bandwidth / threads), "the page cache")
        if write:
            yield each(-(-size // PAGE_BYTES) * io.cache_page, "new pages of the cache")
    if on_path(Kind.DRIVE, Kind.WRITEBACK):
        yield from _drive(case, size, write)
    if on_path(Kind.COPY_SETUP):
        sdma = case.gpu.spec.sdma
        yield each(parts * (sdma.copy_d2h if write else sdma.copy_h2d), f"copy set-up{of_chunks}")
    if on_path(Kind.CACHE_DRAIN):
        yield at_rate(min(size, library.private_cache), library.dirty_drain, "draining a private cache")
    if on_path(Kind.BOUNCE_COPY):
        yield at_rate(size, host.copy_bandwidth, "a bounce copy")
    if on_path(Kind.SDMA_COPY):
        last = min(size, case.gpu.spec.sdma.staging) if on_path(Kind.BOUNCE_COPY) else size
        rate = min(case.link("d2h" if write else "h2d"), case.gpu.spec.sdma.rate)
        yield at_rate(last, rate, "the link")


def _drive(case: Case, size: int, write: bool) -> Iterator[Candidate]:
    """The drive's latency, and the data at the rate of one request, or at its share of the drive."""
    used = _used(case)
    if not used:
        return
    side = used[0].spec.write if write else used[0].spec.read
    yield each(side.latency, "drive")
    beside = _beside(case, used[0])
    if side.bandwidth / beside < side.stream:
        text, _ = at_rate(size, side.bandwidth, "the drive")
        yield f"{text} x {beside:.3g} requests at once", quotient(size, side.bandwidth / beside)
    else:
        yield at_rate(size, side.stream, "one request")
