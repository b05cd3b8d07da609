"""What KFD knows of one process: its address space, ranges, GPUs' page tables, and its SVM mutex."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpusim.driver.attributes import Attributes, SvmFlag, initial
from gpusim.driver.memory_limit import SystemMemoryLimit
from gpusim.driver.svm_range import SvmRange, SvmRangeList, pieces
from gpusim.engine.environment import Environment
from gpusim.engine.mutex import Mutex
from gpusim.engine.record import Snapshot
from gpusim.engine.stages import Stages
from gpusim.errors import InvariantError, SimulatedFailure
from gpusim.hardware.gpuvm import INVALID, Region, Vm
from gpusim.linux.address_space import VRAM, AddressSpace, Vma
from gpusim.linux.notifier import Event, MmuNotifier

if TYPE_CHECKING:
    from gpusim.driver.deferred import DeferredList


class KfdProcess:
    """One process with a GPU. `xnack` is its mode; `kill` is told why when it dies; `gpus` has a bit for each GPU."""

    def __init__(
        self,
        name: str,
        *,
        env: Environment,
        vms: dict[int, Vm],
        xnack: bool,
        number: int,
        kill: Callable[[str, str], None],
        gpus: int | None = None,
    ) -> None:
        self.name = name
        self.number = number
        self.xnack = xnack
        self.vms = vms
        self.gpus = sum(1 << gpu for gpu in vms) if gpus is None else gpus
        self.mm = AddressSpace()
        self.ranges = SvmRangeList()
        self.lock = Mutex(env, f"{name}.svms")
        self.lock_path: Snapshot | None = None  # critical path of its last holder
        self.kill = kill
        self.xnack_refused = ""  # why XNACK cannot be had, if HSA_XNACK asked for it
        self.unmap_listeners: list[Callable[[KfdProcess], None]] = []  # told before addresses go away
        self.dead = False
        self.remarks: list[str] = []
        self.stopped = False  # its queues are evicted
        self._when_started: list[Callable[[], None]] = []
        self.notifier: MmuNotifier | None = None  # connected by `machine/`
        self.deferred: DeferredList | None = None  # and this one too
        self.checkpoints: dict[int, int] = {}  # GPU -> time of the last vector that a munmap made stale
        self.limit: SystemMemoryLimit | None = None  # of its node; connected by `machine/`
        self.resent: dict[tuple[int, int], int] = {}  # (GPU, page) -> when a stale fault was dropped
        self._regions: dict[tuple[int, int], Region] = {}

    def set_xnack(self, enabled: bool) -> None:
        """Switch the mode: SH_MEM_CONFIG.RETRY_DISABLE of its VMIDs.

        Raises SimulatedFailure where its ranges, which count against KFD's limit with XNACK off, are too many.
        """
        pages = sum(svm.pages for svm in self.ranges)
        if enabled:
            self.uncharge(pages)
        elif self.xnack and self.limit is not None:
            self.limit.charge(pages, f"set_xnack of {self.name}")
        self.xnack = enabled
        for vm in self.vms.values():
            vm.retry = enabled

    def remark(self, text: str) -> None:
        """Something that a reader of the result should know of this process."""
        if text not in self.remarks:
            self.remarks.append(text)

    def about_to_unmap(self) -> None:
        """munmap: faults that are on their way are not to be trusted any more."""
        for told in self.unmap_listeners:
            told(self)

    def stop_queues(self) -> None:
        """QUEUE_EVICTION by SVM: wavefronts that would fault wait instead."""
        self.stopped = True
        for vm in self.vms.values():
            vm.stopped = True

    def start_queues(self, now_ps: int) -> None:
        """QUEUE_RESTORE: what still waits tries again, and finds out that its page is not there."""
        self.stopped = False
        for vm in self.vms.values():
            vm.stopped = False
            for region in vm.regions.values():
                region.try_again(now_ps)
        waiting, self._when_started = self._when_started, []
        for call in waiting:
            call()

    def when_started(self, call: Callable[[], None]) -> None:
        """Call when its queues go on, at once if they do."""
        if self.stopped:
            self._when_started.append(call)
        else:
            call()

    def invalidate(self, vma: Vma, first: int, last: int, event: Event, *, calls: int = 1) -> Stages:
        """The MMU notifier of this process."""
        if self.notifier is None:
            raise InvariantError(f"{self.name}: nothing listens to the MMU notifier")
        yield from self.notifier.invalidate(vma, first, last, event, calls=calls)

    def checkpoint(self, gpu: int, now_ps: int) -> None:
        """A munmap: faults of a GPU that wait now are stale."""
        self.checkpoints[gpu] = now_ps

    def stale(self, gpu: int, page: int, sent_ps: int) -> bool:
        """Was a fault raised before the last munmap? The first one that was not ends the look for them."""
        limit = self.checkpoints.get(gpu)
        if limit is None:
            return False
        if max(sent_ps, self.resent.get((gpu, page), -1)) > limit:
            del self.checkpoints[gpu]
            self.resent = {key: value for key, value in self.resent.items() if key[0] != gpu}
            return False
        return True

    def may_be_read_only(self, vma: Vma) -> bool:
        """May GPUs have pages of a VMA mapped without the write bit?"""
        return (
            vma.has_parts
            or vma.backing is not None
            or any(svm.attributes.has(SvmFlag.GPU_RO) for svm in self.ranges.within(vma.first, vma.last))
        )

    def region(self, vma: Vma, gpu: int) -> Region:
        """The page tables of `gpu` over a VMA."""
        key = (vma.first, gpu)
        found = self._regions.get(key)
        if found is None:
            found = Region(self.vms[gpu], vma.name, vma.first, vma.pages, state=INVALID)
            self._regions[key] = found
            self.vms[gpu].add(found)
        return found

    def regions_of(self, vma: Vma) -> list[Region]:
        """The page tables over a VMA of all GPUs that have any."""
        return [region for (first, _), region in self._regions.items() if first == vma.first]

    def drop_regions(self, vma: Vma) -> None:
        """Forget the page tables over a VMA that goes away."""
        for key in [key for key in self._regions if key[0] == vma.first]:
            region = self._regions.pop(key)
            region.vm.remove(region)

    def new_range(self, first: int, last: int, *, attributes: Attributes, registered: bool) -> SvmRange:
        """Add a range over addresses that no range covers yet.

        Raises SimulatedFailure with XNACK off where KFD's limit does not admit it.
        """
        new = SvmRange(first, last, attributes=attributes, registered=registered)
        if not self.xnack and self.limit is not None:
            self.limit.charge(new.pages, f"an SVM range of {self.name} with XNACK off")
        self.ranges.add(new)
        return new

    def remove_range(self, svm: SvmRange) -> None:
        """A range goes. Raises KeyError if it is not there."""
        self.ranges.remove(svm)
        self.uncharge(svm.pages)

    def uncharge(self, pages: int) -> None:
        """Pages of ranges no longer count against KFD's limit, where they did."""
        if not self.xnack and self.limit is not None:
            self.limit.release(pages)

    def cover(self, first: int, last: int, *, granule_pages: int, most_pages: int) -> list[SvmRange]:
        """Registered ranges for the addresses of first..last that no range covers yet, cut at `most_pages`.

        All, or none: raises SimulatedFailure with XNACK off where KFD's limit does not admit them.
        """
        made: list[SvmRange] = []
        before = set(self.ranges.within(first, last))
        page = first
        while page <= last:
            known = self.ranges.find(page)
            if known is not None:
                page = known.last + 1
                continue
            start, end = self.ranges.gap_around(page, page, last)
            attributes = initial(xnack=self.xnack, gpus=self.gpus, granule_pages=granule_pages)
            try:
                made.extend(
                    self.new_range(*piece, attributes=attributes, registered=True)
                    for piece in pieces(start, end, most_pages)
                )
            except SimulatedFailure:
                for svm in self.ranges.within(first, last):
                    if svm not in before:
                        self.remove_range(svm)
                raise
            page = end + 1
        return made

    def split(self, svm: SvmRange, first: int, last: int) -> SvmRange:
        """Cut a range so that first..last of its pages are a range of their own, which is returned.

        Each piece keeps the attributes, the times and its share of the buffer object. The caller holds the range's
        migrate mutex, or knows that nobody does.
        """
        place = VRAM + svm.bo_on
        for start, end in ((svm.first, first - 1), (last + 1, svm.last)):
            if start > end:
                continue
            piece = SvmRange(start, end, attributes=svm.attributes, registered=svm.registered)
            piece.bo = svm.bo
            if svm.bo is not None:
                svm.bo.ranges[piece] = None
            piece.bo_on, piece.mapped, piece.validated_ps = svm.bo_on, svm.mapped, svm.validated_ps
            piece.sequence, piece.validated_by = svm.sequence, svm.validated_by
            vma = self.mm.find(start)
            if svm.vram_pages and vma is not None:
                piece.vram_pages = vma.count(start, end, place)
                svm.vram_pages -= piece.vram_pages
            self.ranges.shrink(svm, max(svm.first, first), min(svm.last, last))
            self.ranges.add(piece)
        return svm
