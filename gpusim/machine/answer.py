"""What bound a run, a formula to check it by hand, and what should be said beside the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpusim.driver.switches import RecentSkip
from gpusim.kinds import LABELS, Kind
from gpusim.quantity import format_duration_ps, format_rate, format_size
from gpusim.spec import PAGE_BYTES

if TYPE_CHECKING:
    from gpusim.machine.build import Machine
    from gpusim.rundata import RunData, StepData

#: what the fault worker spends on a fault, apart from waiting
SERVICE = (
    Kind.DRIVER_FIXED,
    Kind.PAGE_ALLOC,
    Kind.PAGE_ZERO,
    Kind.DEVICE_PAGE,
    Kind.DMA_MAP,
    Kind.HMM_WALK,
    Kind.PTE_WRITE,
    Kind.EVICTION,
    Kind.BO_CLEAR,
    Kind.SDMA_COPY,
    Kind.TLB_FLUSH,
    Kind.DUPLICATES,
)


def bound(data: RunData) -> str | None:
    """The kind that the critical path spends most on, and its share."""
    if not data.attribution or not data.makespan_ps:
        return None
    kind, _ = max(data.attribution.items(), key=lambda item: item[1])
    return LABELS[kind]


def formula(machine: Machine, data: RunData) -> str | None:
    """The longest step, put together from few numbers that a person can check; None if no simple one holds."""
    steps = [step for step in data.steps if step.attribution and step.kind not in ("repeat", "parallel")]
    if not steps:
        return None
    step = max(steps, key=lambda candidate: candidate.end_ps - candidate.start_ps)
    length = step.end_ps - step.start_ps
    for text, value in _candidates(machine, data, step):
        if abs(value - length) <= CLOSE * length:
            return (
                f"{step.name}: {text} = {format_duration_ps(value)}; simulated {format_duration_ps(length)}"
            )
    return None


#: a formula is shown only where it comes this near to what was simulated
CLOSE = 0.1

Candidate = tuple[str, int]


def _candidates(machine: Machine, data: RunData, step: StepData) -> Iterator[Candidate]:
    """Formulas that may hold for a step, the most telling first."""
    spent = step.attribution or {}
    if step.kind == "launch":
        yield from _faults(machine, data, step)
    kind = max(spent, key=lambda candidate: spent[candidate])
    if kind is Kind.HBM:
        for device in machine.hardware.node.devices[:1]:
            rate = device.gpu.spec.hbm.bandwidth
            yield f"{format_size(step.bytes)} / {format_rate(rate)} of HBM", _quotient(step.bytes, rate)
    elif kind is Kind.SDMA_COPY:
        yield from _copies(machine, step.bytes)
    elif kind is Kind.ZERO_COPY_LINK:
        yield from _zero_copy(machine, step.bytes)
    elif step.kind == "host_touch":
        yield from _touch(machine, step.bytes)
    elif kind is Kind.DRIVE:
        yield from _drives(machine, data, step)


def _faults(machine: Machine, data: RunData, step: StepData) -> Iterator[Candidate]:
    faults = data.tables["faults"]
    inside = (faults["mapped_ps"] >= step.start_ps) & (faults["mapped_ps"] <= step.end_ps)
    served = int(inside.sum())
    if not served:
        return
    service = int((faults["mapped_ps"] - faults["started_ps"])[inside].sum()) // served
    window = machine.hardware.node.driver.svm.recent_skip
    ranges = _ranges_touched(machine)
    together = f" / {ranges} ranges at once" if ranges > 1 else ""
    each = format_duration_ps(service)
    if 2 * int((faults["recent_skip_ps"][inside] > 0).sum()) > served:
        text = f"{served} granules x ({format_duration_ps(window)} + {each} of service){together}"
        yield text, served * (window + service) // ranges
    yield f"{served} faults x {each} of service, one at a time", served * service


def _ranges_touched(machine: Machine) -> int:
    """Registered ranges that were restored."""
    return max(
        1,
        sum(
            svm.registered and svm.validated_ps is not None
            for process in machine.processes
            for svm in process.hip.kfd.ranges
        ),
    )


def _copies(machine: Machine, size: int) -> Iterator[Candidate]:
    for device in machine.hardware.node.devices[:1]:
        gpu = device.gpu
        for way, setup in (("h2d", gpu.spec.sdma.copy_h2d), ("d2h", gpu.spec.sdma.copy_d2h)):
            link = machine.hardware.network.link(f"{gpu.name}.pcie.{way}").capacity * 1e12
            rate = min(link, gpu.spec.sdma.rate)
            text = f"{format_duration_ps(setup)} + {format_size(size)} / {format_rate(rate)} of the link"
            yield text, setup + _quotient(size, rate)


def _zero_copy(machine: Machine, size: int) -> Iterator[Candidate]:
    for device in machine.hardware.node.devices[:1]:
        spec = device.gpu.spec.zero_copy
        ways = (("read", "h2d", spec.read_efficiency), ("written", "d2h", spec.write_efficiency))
        for word, way, efficiency in ways:
            link = machine.hardware.network.link(f"{device.gpu.name}.pcie.{way}").capacity * 1e12
            text = f"{format_size(size)} {word} / {format_rate(link * efficiency)} across the link"
            yield text, _quotient(size, link * efficiency)


def _drives(machine: Machine, data: RunData, step: StepData) -> Iterator[Candidate]:
    """All drives that were used at their rate; or one thread's requests, one after another."""
    moved = {use.name: use.bytes for use in data.uses}
    way = "write" if step.kind == "file_write" else "read"
    used = [drive for name, drive in machine.hardware.storage.drives.items() if moved.get(f"{name}.{way}")]
    if not used:
        return
    rate = sum(getattr(drive.spec, way).bandwidth for drive in used)
    drives = "the drive" if len(used) == 1 else f"{len(used)} drives"
    yield f"{format_size(step.bytes)} / {format_rate(rate)} of {drives}", _quotient(step.bytes, rate)
    for total in data.io:
        if total.direction == way and total.bytes == step.bytes and total.requests:
            each = total.latency_ps // total.requests
            yield f"{total.requests} requests x {format_duration_ps(each)}, one at a time", total.latency_ps


def _touch(machine: Machine, size: int) -> Iterator[Candidate]:
    host = machine.hardware.node.host_spec
    pages = -(-size // PAGE_BYTES)
    each = host.pages.fault + host.pages.alloc + host.pages.zero
    stream = f"{format_size(size)} / {format_rate(host.thread_bandwidth)}"
    streaming = _quotient(size, host.thread_bandwidth)
    yield f"{pages} pages x {format_duration_ps(each)} + {stream}", pages * each + streaming
    yield stream, streaming


def _quotient(size: int, rate: float) -> int:
    return round(size * 1e12 / rate)


def notes(machine: Machine, data: RunData) -> list[str]:
    """What a reader has to know to use the numbers."""
    found: list[str] = []
    spent = data.attribution or {}
    share = spent.get(Kind.RECENT_SKIP, 0) / data.makespan_ps if data.makespan_ps else 0.0
    skipped = sum(count.counts.get("skipped_recent", 0) for count in data.faults)
    driver = machine.hardware.node.driver
    if share > 0.01 or (skipped and data.attribution is None):
        window = format_duration_ps(driver.svm.recent_skip)
        granule = driver.svm.default_granularity
        limit = format_rate(granule * 1e12 / driver.svm.recent_skip)
        found.append(
            f"The driver drops faults of a range that it restored less than {window} ago, so one range gets at most "
            f"one granule of {format_size(granule)} per {window} and service: below {limit}. The rule stands in the "
            f"driver's source; that it limits demand faults like this is inferred, and no measurement confirms it. "
            f'`driver: {{recent_skip: "off"}}` simulates the run without it.'
        )
    evictions = sum(trigger == "TTM_EVICTION" for trigger in data.tables["migrations"]["trigger"])
    if evictions:
        moved = sum(total.bytes for total in data.migrations)
        useful = sum(step.bytes for step in data.steps if step.kind == "launch")
        ratio = f", {moved / useful:.2f} for each byte that kernels asked for" if useful else ""
        found.append(
            f"VRAM was full: {evictions} ranges were evicted, oldest first, and {format_size(moved)} migrated{ratio}."
        )
    policy = machine.scenario.policy
    for what, chosen in (("eviction", policy.eviction), ("prefetch", policy.prefetch)):
        if chosen != "driver":
            found.append(f"`policy: {{{what}: {chosen}}}` is a what-if: no version of the driver does that.")
    if driver.switches.recent_skip is RecentSkip.OFF:
        found.append("The 2 ms rule is switched off: that is not what the driver of this preset does.")
    for process in machine.processes:
        found.extend(process.hip.kfd.remarks)
    service = sum(spent.get(kind, 0) for kind in SERVICE)
    if data.makespan_ps and service > 0.2 * data.makespan_ps:
        found.append(
            "What the driver pays per fault and per page is fitted as a sum (0.329-0.338 ms for 2 MiB on MI210, "
            "FAU004); its split into the kinds shown is assumed."
        )
    carried = sum(total.bytes for total in data.migrations)
    per_page = sum(spent.get(kind, 0) for kind in (Kind.DRIVER_FIXED, Kind.DEVICE_PAGE, Kind.DMA_MAP))
    if carried and data.makespan_ps and per_page > 0.1 * data.makespan_ps:
        found.append(
            "The answer hangs on what a migrate call costs, for each call and each page. One unexplained run on gfx950 "
            "(MAN055-MAN060) allows 0 to 21 ms a call and 0.6 to 7.8 us a page to the device, at most 2.5 us a page "
            "back; this machine's numbers come from MI210 and MI300A, and are below that for each call."
        )
    return found
