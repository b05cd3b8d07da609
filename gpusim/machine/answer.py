"""What bound a run, a formula to check it by hand, and what should be said beside the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.driver.switches import RecentSkip
from gpusim.kinds import LABELS, Kind
from gpusim.quantity import format_duration_ps, format_rate, format_size

if TYPE_CHECKING:
    from gpusim.machine.build import Machine
    from gpusim.rundata import RunData

#: what the fault worker spends on a fault, apart from waiting
SERVICE = (
    Kind.DRIVER_FIXED,
    Kind.PAGE_ALLOC,
    Kind.PAGE_ZERO,
    Kind.DEVICE_PAGE,
    Kind.DMA_MAP,
    Kind.HMM_WALK,
    Kind.PTE_WRITE,
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
    spent = step.attribution or {}
    length = step.end_ps - step.start_ps
    text = _fault_formula(machine, data, step.start_ps, step.end_ps) if step.kind == "launch" else None
    if text is None:
        kind = max(spent, key=lambda candidate: spent[candidate])
        text = _rate_formula(machine, kind, step.bytes, spent[kind])
    return None if text is None else f"{step.name}: {text}; simulated {format_duration_ps(length)}"


def _fault_formula(machine: Machine, data: RunData, start: int, end: int) -> str | None:
    faults = data.tables["faults"]
    inside = (faults["mapped_ps"] >= start) & (faults["mapped_ps"] <= end)
    served = int(inside.sum())
    if not served:
        return None
    service = int((faults["mapped_ps"] - faults["started_ps"])[inside].sum()) // served
    skipping = int((faults["recent_skip_ps"][inside] > 0).sum())
    if 2 * skipping > served:
        window = machine.hardware.node.driver.svm.recent_skip
        ranges = _ranges_touched(machine)
        total = served * (window + service) // ranges
        per = f" / {ranges} ranges at once" if ranges > 1 else ""
        return (
            f"{served} granules x ({format_duration_ps(window)} + {format_duration_ps(service)} of service){per} "
            f"= {format_duration_ps(total)}, if each range always has a fault waiting"
        )
    return (
        f"{served} faults x {format_duration_ps(service)} of service, one at a time "
        f"= {format_duration_ps(served * service)}"
    )


def _ranges_touched(machine: Machine) -> int:
    """Registered ranges that were restored: they wait side by side only as far as wavefronts reach them."""
    return max(
        1,
        sum(
            svm.registered and svm.validated_ps is not None
            for process in machine.processes
            for svm in process.hip.kfd.ranges
        ),
    )


def _rate_formula(machine: Machine, kind: Kind, size: int, spent: int) -> str | None:
    if not size:
        return None
    node = machine.hardware.node
    if kind is Kind.HBM and node.devices:
        rate = node.devices[0].gpu.spec.hbm.bandwidth
        return f"{format_size(size)} / {format_rate(rate)} of HBM = {_quotient(size, rate)}"
    if kind is Kind.SDMA_COPY:
        rate = size * 1e12 / max(1, spent)
        return f"{format_size(size)} / {format_rate(rate)} on the link = {_quotient(size, rate)}"
    if kind is Kind.ZERO_COPY_LINK:
        rate = size * 1e12 / max(1, spent)
        return (
            f"{format_size(size)} / {format_rate(rate)} across the link, both ways = {_quotient(size, rate)}"
        )
    if kind in (Kind.PAGE_ALLOC, Kind.PAGE_ZERO):
        pages = -(-size // 4096)
        cost = node.host_spec.pages
        each = cost.fault + cost.alloc + cost.zero
        return f"{pages} pages x {format_duration_ps(each)} to fault in = {format_duration_ps(pages * each)}"
    return None


def _quotient(size: int, rate: float) -> str:
    return format_duration_ps(round(size * 1e12 / rate))


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
    if driver.switches.recent_skip is RecentSkip.OFF:
        found.append("The 2 ms rule is switched off: that is not what the driver of this preset does.")
    service = sum(spent.get(kind, 0) for kind in SERVICE)
    if data.makespan_ps and service > 0.2 * data.makespan_ps:
        found.append(
            "What the driver pays per fault and per page is fitted as a sum (0.329-0.338 ms for 2 MiB on MI210, "
            "FAU004); its split into the kinds shown is assumed."
        )
    return found
