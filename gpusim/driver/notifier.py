"""What the driver does when Linux is about to change pages that GPUs have mapped (`kfd_svm.md` 3.5).

With XNACK on the pages are unmapped on every GPU that has page tables for them, each with a heavyweight TLB flush that
is waited for; the next access faults. With XNACK off, or in ranges that are to be always mapped, the queues stop
instead, and the restore work maps again. A munmap unmaps in any case, and makes faults stale that were raised before.
Registered memory is a buffer object on a user pointer: whatever happens to its pages stops the queues as well, and what
the program has unmapped or protected by then stays unmapped.
"""

from __future__ import annotations

from gpusim.driver.attributes import SvmFlag
from gpusim.driver.driver_spec import DriverCosts
from gpusim.driver.events import EventLog, EvictionTrigger, UnmapTrigger
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.placement import stops_queues
from gpusim.driver.queue_restore import QueueRestore
from gpusim.engine.stages import Stages, Tell
from gpusim.hardware.translation import Translation
from gpusim.kinds import Kind
from gpusim.linux.address_space import Vma
from gpusim.linux.notifier import Event

_TRIGGERS = {Event.MIGRATE: UnmapTrigger.MMU_NOTIFY_MIGRATE, Event.UNMAP: UnmapTrigger.UNMAP_FROM_CPU}


class SvmNotifier:
    """The notifier of one process."""

    def __init__(
        self,
        process: KfdProcess,
        *,
        costs: DriverCosts,
        events: EventLog,
        translations: dict[int, Translation],
        queues: QueueRestore,
    ) -> None:
        self._process = process
        self._costs = costs
        self._events = events
        self._translations = translations
        self._queues = queues

    def invalidate(self, vma: Vma, first: int, last: int, event: Event, *, calls: int = 1) -> Stages:
        """Let go of pages first..last; `calls` as in `MmuNotifier`: each call is a flush of its own."""
        process = self._process
        ranges = process.ranges.within(first, last)
        mapped_pages = sum(min(last, svm.last) - max(first, svm.first) + 1 for svm in ranges if svm.mapped)
        for svm in ranges:
            start, end = max(first, svm.first), min(last, svm.last)
            svm.sequence += 1
            if not svm.mapped:
                continue  # one flag a range: the flush comes even if this part was not mapped
            always = svm.attributes.has(SvmFlag.GPU_ALWAYS_MAPPED)
            if event is not Event.UNMAP and stops_queues(xnack=process.xnack, always_mapped=always):
                yield Tell(lambda chain, start=start, end=end: self._stop(chain, vma, start, end))  # type: ignore[misc]
                continue
            share = max(1, calls * (end - start + 1) // mapped_pages)
            yield from self._unmap(vma, start, end, _TRIGGERS.get(event, UnmapTrigger.MMU_NOTIFY), share)
            if start == svm.first and end == svm.last:
                svm.mapped = False
        if event is not Event.MIGRATE:  # migrate_vma leaves pinned pages alone
            user = EvictionTrigger.USERPTR
            for start, end in vma.pinned_in(first, last):
                yield Tell(lambda chain, start=start, end=end: self._stop(chain, vma, start, end, user))  # type: ignore[misc]

    def _stop(  # type: ignore[no-untyped-def]
        self, chain, vma: Vma, first: int, last: int, trigger: EvictionTrigger = EvictionTrigger.SVM
    ) -> None:
        self._queues.evict(chain, vma, first, last, trigger)
        for region in self._process.regions_of(vma):
            region.unmap(first - vma.first, last - vma.first)

    def _unmap(self, vma: Vma, first: int, last: int, trigger: UnmapTrigger, calls: int) -> Stages:
        """GPU after GPU: take the PTEs away, wait, flush."""
        process = self._process
        for region in process.regions_of(vma):
            gpu = region.vm.gpu

            def unmap(chain, region=region, gpu=gpu) -> None:  # type: ignore[no-untyped-def]
                region.unmap(first - vma.first, last - vma.first)
                self._translations[gpu].flush()
                pages = last - first + 1
                size = pages // calls
                for call in range(calls):
                    begin = first + call * size
                    count = size if call < calls - 1 else pages - call * size
                    at = chain.time_ps + call * self._costs.tlb_flush
                    self._events.unmap(at, process.number, begin, count, gpu, trigger)

            yield Tell(unmap)
            yield Kind.TLB_FLUSH, calls * self._costs.tlb_flush
