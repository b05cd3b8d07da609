"""What bound a run, and what should be said beside the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.driver.switches import RecentSkip
from gpusim.hardware.access import Client
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


def _copies_waited_ps(data: RunData) -> int:
    """What faults of copy engines took, added up: a copy waits for one after another."""
    faults = data.tables["faults"]
    pairs = zip(faults["client"], faults["latency_ps"], strict=True)
    return sum(int(latency) for client, latency in pairs if client == Client.SDMA)


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
    waited = _copies_waited_ps(data)
    if waited > 0.1 * data.makespan_ps:
        found.append(
            f"Copy engines waited {format_duration_ps(waited)} for pages that the GPU had not mapped. With XNACK on "
            "they fault on managed and registered memory page by page, as kernels do; that follows from the driver's "
            "source, and no measurement confirms the pace of such copies."
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
