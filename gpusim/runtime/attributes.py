"""hipMemAdvise and hsa_amd_svm_attributes_set: one ioctl that sets attributes of SVM ranges (`kfd_svm.md` 4).

Ranges that lie partly in the addressed part are split. Flags force the pages to be mapped anew; with XNACK off so does
access. What the driver stores and never tests is noted, so that nobody takes it for an effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gpusim.driver.attributes import (
    CPU,
    EFFECTS,
    MEMORY_TYPE,
    STORED_ONLY,
    UNDEFINED,
    Attributes,
    SvmFlag,
    clamped_granule,
)
from gpusim.driver.placement import gpus_of
from gpusim.driver.svm_range import SvmRange, exclusively
from gpusim.driver.switches import Unit
from gpusim.engine.stages import Stages
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind
from gpusim.quantity import format_size
from gpusim.runtime.advice import Access, Advice
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.prefetch import map_on, migrate
from gpusim.spec import PAGE_BYTES

NO_FLAGS = SvmFlag(0)


@dataclass(frozen=True, slots=True)
class Changes:
    """What hsa_amd_svm_attributes_set is asked for; None and empty leave things as they are."""

    preferred: int | None = None
    prefetch: int | None = None
    granularity: int | None = None  # bytes
    access: dict[int, Access] = field(default_factory=dict)
    add: SvmFlag = NO_FLAGS
    clear: SvmFlag = NO_FLAGS

    def apply(self, old: Attributes) -> Attributes:
        """The attributes of a range after the call."""
        new = old.with_flags(self.add, self.clear)
        if self.preferred is not None:
            new = replace(new, preferred=self.preferred)
        if self.prefetch is not None:
            new = replace(new, prefetch=self.prefetch)
        if self.granularity is not None:
            new = replace(new, granule_pages=clamped_granule(self.granularity // PAGE_BYTES))
        for gpu, access in self.access.items():
            if access is Access.ACCESS:
                new = new.accessible(gpu)
            elif access is Access.IN_PLACE:
                new = new.mapped_in_place(gpu)
            else:
                new = new.inaccessible(gpu)
        return new


def flags_of(words: Iterable[str]) -> SvmFlag:
    """Flags by the words of the scenario language."""
    found = NO_FLAGS
    for word in words:
        found |= SvmFlag[word.upper()]
    return found


def changes_of(advice: Advice, location: int) -> Changes:
    """What an advice sets in the driver. Taking accessed-by back leaves plain access, not none."""
    if advice is Advice.SET_READ_MOSTLY:
        return Changes(add=SvmFlag.GPU_READ_MOSTLY)
    if advice is Advice.UNSET_READ_MOSTLY:
        return Changes(clear=SvmFlag.GPU_READ_MOSTLY)
    if advice is Advice.SET_PREFERRED_LOCATION:
        return Changes(preferred=location)
    if advice is Advice.UNSET_PREFERRED_LOCATION:
        return Changes(preferred=UNDEFINED)
    if advice is Advice.SET_COARSE_GRAIN:
        return Changes(clear=SvmFlag.COHERENT)
    if advice is Advice.UNSET_COARSE_GRAIN:
        return Changes(add=SvmFlag.COHERENT)
    if location == CPU:
        flag = SvmFlag.HOST_ACCESS
        return Changes(add=flag) if advice is Advice.SET_ACCESSED_BY else Changes(clear=flag)
    access = Access.IN_PLACE if advice is Advice.SET_ACCESSED_BY else Access.ACCESS
    return Changes(access={location: access})


def set_attributes(
    hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int], changes: Changes, call: str
) -> Steps:
    """One ioctl over `part` (first byte and size) of a buffer, under the SVM mutex; `call` names it in messages."""
    kfd = hip.kfd
    if not allocation.is_svm:
        raise SimulatedFailure(
            "hip_error",
            f"hipErrorInvalidValue: {call} of {allocation.name!r}, which {allocation.allocator} allocated: "
            "only hipMallocManaged and malloc memory has attributes",
        )
    first, last = allocation.pages(*part)
    _remark(hip, allocation, changes)
    yield from thread.lock(kfd.lock, kfd)
    try:
        yield from thread.stages(_stages(hip, allocation, first, last, changes))
    finally:
        kfd.lock_path = thread.chain.snapshot()
        kfd.lock.release()


def _remark(hip: Hip, allocation: Allocation, changes: Changes) -> None:
    remark = hip.kfd.remark
    for flag in SvmFlag:
        if flag in STORED_ONLY and flag in changes.add:
            remark(f"{flag.name} of {allocation.name}: {EFFECTS[flag]}.")
        if flag in MEMORY_TYPE and flag in changes.add | changes.clear:
            remark(f"{flag.name} of {allocation.name}: {EFFECTS[flag]}.")
    unit = hip.node.driver.switches.unit
    if changes.granularity is not None and unit is not Unit.GRANULE:
        remark(f"granularity of {allocation.name}: no effect, since faults are served by `unit: {unit}`.")
    elif changes.granularity is not None:
        pages = clamped_granule(changes.granularity // PAGE_BYTES)
        if pages * PAGE_BYTES != changes.granularity:
            asked, got = format_size(changes.granularity), format_size(pages * PAGE_BYTES)
            remark(f"granularity {asked} of {allocation.name}: the runtime and the driver make it {got}.")


def _stages(hip: Hip, allocation: Allocation, first: int, last: int, changes: Changes) -> Stages:
    node, kfd, vma = hip.node, hip.kfd, allocation.vma
    costs = node.driver.costs
    yield Kind.DRIVER_FIXED, costs.ioctl
    if kfd.deferred is not None:
        yield from kfd.deferred.flush()
    if vma.unmapped(first, last):
        raise SimulatedFailure(
            "hip_error", f"hipErrorInvalidValue: attributes of {vma.name!r}, part of it is unmapped"
        )
    granule = node.driver.svm.default_granularity // PAGE_BYTES
    made = kfd.cover(first, last, granule_pages=granule, most_pages=node.range_pages)
    yield Kind.DRIVER_FIXED, len(made) * costs.range_create
    for svm in kfd.ranges.within(first, last):
        old = svm.attributes
        new = changes.apply(old)
        start, end = max(first, svm.first), min(last, svm.last)
        if new != old:
            if (start, end) != (svm.first, svm.last):
                pieces = (start > svm.first) + (end < svm.last)
                kfd.split(svm, start, end)
                yield Kind.DRIVER_FIXED, pieces * costs.range_create
            svm.set_attributes(new)
        if changes.prefetch is not None:
            yield from exclusively(svm, migrate(hip, vma, svm, start, end))
        elif gpus := _remaps(svm, old, xnack=kfd.xnack):
            yield from exclusively(svm, map_on(hip, vma, svm, svm.first, svm.last, gpus))


def _remaps(svm: SvmRange, old: Attributes, *, xnack: bool) -> list[int]:
    """GPUs on which the range is mapped anew after its attributes changed."""
    new = svm.attributes
    if not xnack:
        return gpus_of(new.gpus) if (new.gpus, new.flags) != (old.gpus, old.flags) else []
    if new.flags == old.flags:
        return []
    mapping = new.in_place
    if svm.location != CPU:
        mapping |= new.access & 1 << svm.location
    if not mapping and (svm.mapped or new.has(SvmFlag.GPU_ALWAYS_MAPPED)):
        mapping = new.access
    return gpus_of(mapping)


def advise(
    hip: Hip, thread: Thread, allocation: Allocation, part: tuple[int, int], advice: Advice, device: str
) -> Steps:
    """hipMemAdvise."""
    changes = changes_of(advice, hip.location(device))
    yield from set_attributes(hip, thread, allocation, part, changes, "hipMemAdvise")
