"""What host threads do themselves: touch pages, copy, prefetch, register, free."""

from __future__ import annotations

from collections.abc import Iterator

from gpusim.hardware.coherence import LINE
from gpusim.kinds import Kind
from gpusim.machine.by_hand.case import LEAST, Candidate, Case, at_rate, each, quotient, times, together
from gpusim.quantity import format_duration_ps, format_rate, format_size
from gpusim.spec import ATOMIC_BYTES, PAGE_BYTES


def of_call(case: Case) -> Iterator[Candidate]:
    """By verb."""
    verb = case.step.kind
    if verb in ("memcpy", "memcpy_batch"):
        yield from _copies(case)
    if verb == "host_touch":
        if "atomics" in case.facts:
            yield from _atomics(case)
        yield from _touch(case)
    yield from _by_page(case)


def _copies(case: Case) -> Iterator[Candidate]:
    size, sdma = case.step.bytes, case.gpu.spec.sdma
    ends = [str(case.step.detail.get(key, "")) for key in ("from", "to")]
    if ends[0] != ends[1] and all(end.startswith("gpu[") for end in ends):
        yield from _peer(case, *(int(end[4:-1]) for end in ends))
        return
    count = int(case.facts.get("copies", 1))
    small = sdma.small
    if case.step.kind == "memcpy_batch" and small is not None:
        rate = min(case.link("h2d"), sdma.d2d_rate)
        yield together(
            times(count, "copies", [each(small.copy_batched, "each")]), at_rate(size, rate, "the link")
        )
    for way, setup in (("h2d", sdma.copy_h2d), ("d2h", sdma.copy_d2h)):
        carried = at_rate(size, min(case.link(way), sdma.rate), "the link")
        yield together(times(count, "copies", [each(setup, "each")]) if count > 1 else _alone(setup), carried)
    staged = at_rate(size, case.host.copy_bandwidth, "a bounce copy")
    if case.share(Kind.BOUNCE_COPY) >= LEAST:
        yield together(_alone(sdma.copy_h2d), staged)
        yield together(_alone(sdma.copy_h2d), *_terms(case), staged)
    inside = at_rate(size, sdma.d2d_rate, "a copy inside the GPU")
    yield together(_alone(sdma.copy_d2d), inside)


def _peer(case: Case, source: int, target: int) -> Iterator[Candidate]:
    """From one GPU to another: by an engine, or by a kernel, over the narrowest link of the way."""
    gpu = case.machine.hardware.node.devices[source].gpu
    sdma, network = gpu.spec.sdma, case.machine.hardware.network
    by_engine, by_kernel = gpu.copies_to[target]
    kernel = case.share(Kind.SDMA_COPY) < LEAST
    rate = sdma.d2d_rate if kernel else sdma.rate
    for name, cost in by_kernel if kernel else by_engine:
        rate = min(rate, network.link(name).capacity * 1e12 / cost)
    carried = at_rate(case.step.bytes, rate, f"the way from gpu[{source}] to gpu[{target}]")
    yield together(_alone(sdma.copy_d2d if kernel else sdma.copy_d2h), carried)


def _alone(duration_ps: int) -> Candidate:
    return each(duration_ps, "set-up")


def _touch(case: Case) -> Iterator[Candidate]:
    pages = case.host.pages
    page = pages.fault + pages.alloc + pages.zero
    rate = case.host.thread_bandwidth
    stream = f"{format_size(case.step.bytes)} / {format_rate(rate)}", quotient(case.step.bytes, rate)
    if case.share(Kind.PAGE_ALLOC) >= LEAST and case.share(Kind.DEVICE_PAGE) < LEAST:
        yield together(times(case.pages, "pages", [each(page, "fault, allocation and zeroing")]), stream)
    if case.share(Kind.DEVICE_PAGE) >= LEAST:
        yield together(*_terms(case), stream)
    yield stream


def _atomics(case: Case) -> Iterator[Candidate]:
    """On lines of one's own, or fetched for each row of them from a GPU or from another core that had them last."""
    costs = case.host.atomics
    if costs is None:
        return
    count, row = int(case.facts["atomics"]), LINE // ATOMIC_BYTES
    own = each(costs.owned, "an atomic")
    if case.share(Kind.CONTENTION) < LEAST:
        yield times(count, "atomics", [own])
        return
    for cost, source in ((costs.from_gpu, "a GPU"), (costs.between_cores, "another core")):
        text = f"{format_duration_ps(cost)} / {row} of a line fetched from {source}"
        yield times(count, "atomics", [own, (text, cost // row)])


def _by_page(case: Case) -> Iterator[Candidate]:
    """Each kind on the path that is paid by the page."""
    terms = _terms(case)
    if terms:
        yield together(*terms)


def _terms(case: Case) -> list[Candidate]:
    """What each page pays, kind by kind as far as the path has them, and what is paid by the byte."""
    cost, costs, registration = case.host.pages, case.driver.costs, case.host.registration
    back = case.step.kind == "host_touch" or str(case.step.detail.get("to")) in ("cpu", "host")
    own = costs.ioctl
    moved = cost.migrate_setup + cost.migrate_finish + (0 if back else cost.device_page)
    laws = {
        Kind.PAGE_ALLOC: (cost.alloc, "page allocation"),
        Kind.PAGE_ZERO: (cost.zero, "zeroing"),
        Kind.DEVICE_PAGE: (moved, "migration"),
        Kind.HMM_WALK: (cost.hmm_walk, "HMM walk"),
        Kind.PTE_WRITE: (costs.pte_write, "PTE write"),
        Kind.PIN: (0 if registration is None else registration.pin, "pinning"),
        Kind.DMA_MAP: (cost.dma_map, "dma_map"),
        Kind.HOST_ALLOC: (cost.free if case.step.kind in ("free", "munmap") else 0, "freeing"),
    }
    pages = int(case.facts.get("bytes", case.step.bytes))
    pages = -(-pages // PAGE_BYTES)
    found = [each(*law) for kind, law in laws.items() if law[0] and case.share(kind) >= LEAST]
    terms = [times(pages, "pages", found)] if found else []
    if case.share(Kind.HOST_ALLOC) >= LEAST:
        terms.insert(0, each(own, "ioctl"))
    if case.share(Kind.BO_CLEAR) >= LEAST:
        terms.append(at_rate(case.step.bytes, case.gpu.spec.sdma.clear_rate, "clearing"))
    if case.share(Kind.SDMA_COPY) >= LEAST and case.share(Kind.BOUNCE_COPY) < LEAST:
        rate = min(case.link("d2h" if back else "h2d"), case.gpu.spec.sdma.rate)
        terms.append(at_rate(case.step.bytes, rate, "the link"))
    if case.share(Kind.TLB_FLUSH) >= LEAST:
        terms.append(each(costs.tlb_flush, "TLB flush"))
    return terms
