"""svm_range_restore_pages: what serving one retry fault does, as stages (`kfd_svm.md` 2).

The worker asks `examine` first (steps 1 to 14) and works through `stages` if nothing speaks against it: range on the
fly (9), placement (15), granule (17), migration (18), validate and map (19). Whether another thread invalidated the
range meanwhile shows at the end (`Plan.raced`, -EAGAIN): nothing is mapped then, and the access is sent again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from gpusim.driver.attributes import UNDEFINED, Attributes, SvmFlag, initial
from gpusim.driver.driver_spec import DriverSpec
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.migrate import Migration, Trigger
from gpusim.driver.page_tables import join_fragments, map_as_it_lies
from gpusim.driver.placement import (
    NOTHING,
    THROUGH_RAM,
    TO_RAM,
    Refusal,
    SameHive,
    examine,
    fallback,
    move,
    restore_location,
)
from gpusim.driver.policies import PrefetchPolicy, widened
from gpusim.driver.svm_range import CPU, SvmRange
from gpusim.driver.switches import Hmm, RecentSkip, Unit
from gpusim.driver.table_writer import TableWriter
from gpusim.driver.watch import Watch
from gpusim.engine.cores import Cores
from gpusim.engine.stages import Stages, Transfer
from gpusim.errors import SimulatedFailure
from gpusim.hardware.gpuvm import HOST, LOCAL, Region, host_state
from gpusim.kinds import Kind
from gpusim.linux.address_space import RAM, VRAM, Vma, VmaKind
from gpusim.linux.paging import Paging
from gpusim.spec import PAGE_BYTES

# plain numbers: to look up a member of an enum takes as long as much of a stage
_FIXED: Final = int(Kind.DRIVER_FIXED)
_LOCK_WAIT: Final = int(Kind.LOCK_WAIT)
_WALK: Final = int(Kind.HMM_WALK)
_PTE_WRITE: Final = int(Kind.PTE_WRITE)


class Serves(ABC):
    """What a worker asks about a fault, and lets serve it."""

    __slots__ = ("granule_pages", "skip_ps", "unit_pages")

    granule_pages: int
    unit_pages: int
    skip_ps: int

    @abstractmethod
    def window_end(self, svm: SvmRange | None) -> int:
        """Faults of a range that are taken up before this time are dropped; 0 if none would be."""

    @abstractmethod
    def examine(
        self, process: KfdProcess, vma: Vma | None, page: int, write: bool, sent_ps: int
    ) -> Refusal | None:
        """What speaks against serving a fault on `page`, if anything does. `sent_ps` is the vector's timestamp."""

    @abstractmethod
    def stages(self, process: KfdProcess, vma: Vma, page: int, plan: Plan) -> Stages:
        """Serve a fault that was examined; `plan` is filled in."""


class Restore(Serves):
    """Serves faults of one GPU. `plan` is what the last call to `stages` decided: pages to map, and where they lie."""

    def __init__(
        self,
        *,
        gpu_index: int,
        driver: DriverSpec,
        paging: Paging,
        migrations: list[Migration],
        same_hive: SameHive,
        tables: TableWriter,
        watch: Watch,
        apu: bool = False,
        prefetch: PrefetchPolicy = PrefetchPolicy.DRIVER,
        cores: Cores | None = None,
        interrupt_ps: int = 0,
    ) -> None:
        self._asked: Attributes | None = None
        self._answer = False
        self._made: dict[tuple[bool, int, int], Attributes] = {}
        self._cores = cores
        self._interrupt_ps = interrupt_ps
        self._watch = watch
        self._blocking = driver.switches.hmm is Hmm.MAY_SLEEP
        self._gpu = gpu_index
        self._same_hive = same_hive
        self._prefetch = prefetch
        self._widens = prefetch is not PrefetchPolicy.DRIVER
        self._apu = apu
        self._tables = tables
        self._rule = driver.switches.placement
        self._by_page = driver.switches.unit is Unit.PAGE
        self._by_range = driver.switches.unit is Unit.RANGE
        self._fixed_ps, self._create_ps = driver.costs.restore, driver.costs.range_create
        self._pte_write_ps = driver.costs.pte_write
        self._name = f"gpu[{gpu_index}]"
        self._paging = paging
        self._migrations = migrations
        self.granule_pages = driver.svm.default_granularity // PAGE_BYTES
        self.unit_pages = 1 if self._by_page else self.granule_pages
        self.skip_ps = driver.svm.recent_skip if driver.switches.recent_skip is RecentSkip.ON else 0

    def window_end(self, svm: SvmRange | None) -> int:
        """Faults of a range that are taken up before this time are dropped; 0 if none would be."""
        if svm is None or svm.validated_ps is None or not self.skip_ps:
            return 0
        return svm.validated_ps + self.skip_ps

    def examine(
        self, process: KfdProcess, vma: Vma | None, page: int, write: bool, sent_ps: int
    ) -> Refusal | None:
        """Steps 1 to 14; the recent-restore rule (12) is the queue's. `sent_ps` is the vector's timestamp."""
        svm = process.ranges.find(page)
        rights = None if vma is None else vma.rights(page)
        refusal = examine(
            process_alive=not process.dead,
            xnack=process.xnack,
            before_checkpoint=process.stale(self._gpu, page, sent_ps),
            range_possible=svm is not None or (is_svm(vma) and rights is not None),
            deferred=svm is not None and svm.deferred,
            vma=rights is not None,
            readable=rights is not None and rights.read,
            writable=rights is not None and rights.write,
            write=write,
        )
        if refusal is Refusal.DEFERRED and process.deferred is not None:
            process.deferred.refused += 1
        return refusal

    def placement(self, svm: SvmRange) -> int | None:
        """Step 15: where the data shall be for a fault of this GPU; None if it has no access."""
        attributes = svm.attributes
        return restore_location(
            self._gpu,
            preferred=attributes.preferred,
            access=attributes.access,
            in_place=attributes.in_place,
            actual=svm.location,
            apu=self._apu,
            same_hive=self._same_hive,
            rule=self._rule,
        )

    def stages(self, process: KfdProcess, vma: Vma, page: int, plan: Plan) -> Stages:
        """Serve a fault on virtual page `page`; fills `plan`. Raises SimulatedFailure where the fault is fatal."""
        stages = self._stages(process, vma, page, plan)
        if self._cores is None:
            return stages
        self._cores.interrupt(self._interrupt_ps)
        return self._cores.shared(stages)

    def _stages(self, process: KfdProcess, vma: Vma, page: int, plan: Plan) -> Stages:
        self._watch.restoring(process, vma, page, self._name)
        fixed = self._fixed_ps
        svm = process.ranges.find(page)
        if svm is None:
            svm = self._create_range(process, vma, page)
            fixed += self._create_ps
        yield _FIXED, fixed
        if svm.busy:  # somebody moves its pages
            yield Transfer(_LOCK_WAIT, svm.acquire)
        else:
            svm.busy = True
        plan.svm = svm
        best = self.placement(svm)
        if best is None:
            raise SimulatedFailure(
                "vm_fault",
                f"memory access fault by gpu[{self._gpu}] on address {page * PAGE_BYTES:#x} of {vma.name}: "
                "the GPU has no access to this range (-EACCES)",
            )
        first, last = self._whole(svm, page)
        if self._widens and best >= 0:
            first, last = widened(self._prefetch, svm, vma, first, last, VRAM + best)
        plan.vma, plan.first, plan.last = vma, first, last
        plan.migrated = best != CPU or svm.location != CPU
        yield from self._migrate(process, vma, svm, best, plan)
        plan.sequence = svm.sequence
        if plan.again:
            return
        rights = vma.rights(page)
        writable = rights is not None and rights.write
        plan.read_only = not writable or self._read_only(svm.attributes)
        if not self._blocking and self._paging.would_sleep(vma, first, last):
            self._paging.start_reading(vma, first, last, f"{process.name}: {vma.name}")
            self._watch.waits_for_io(process, page)
            plan.again = True  # HMM does not wait for the drive: the access has to fault again
            return
        yield from self.map_stages(process, vma, first, last, write=writable)

    def _read_only(self, attributes: Attributes) -> bool:
        """Do the GPUs' page tables get no write bit? Ranges have few different attributes: the last answer is kept."""
        if attributes is not self._asked:
            self._asked, self._answer = attributes, attributes.has(SvmFlag.GPU_RO)
        return self._answer

    def _whole(self, svm: SvmRange, page: int) -> tuple[int, int]:
        """Step 17: what one fault migrates and maps."""
        if self._by_page:
            return page, page
        if self._by_range:
            return svm.first, svm.last
        return svm.granule(page)

    def _migrate(self, process: KfdProcess, vma: Vma, svm: SvmRange, best: int, plan: Plan) -> Stages:
        """Step 18: move what the decision asks for, and say where the pages are then."""
        first, last = plan.first, plan.last
        actual = svm.location
        what = move(best, actual)
        if what is THROUGH_RAM:  # all pages of the whole range leave the other GPU
            new, old = self._migrations[best], self._migrations[actual]
            if not (yield from new.take_over(process, vma, svm, old, Trigger.PAGEFAULT_GPU)):
                yield from self._give_up(process, vma, svm, old, plan)
                return
        if what is TO_RAM:
            old = self._migrations[actual]
            yield from old.to_ram(process, vma, svm, first, last, Trigger.PAGEFAULT_GPU)
        elif what is not NOTHING:
            to_vram = self._migrations[best].to_vram
            taken = yield from to_vram(process, vma, svm, first, last, Trigger.PAGEFAULT_GPU)
            if not taken and fallback(best, svm.location) is TO_RAM:
                old = self._migrations[svm.location]
                yield from old.to_ram(process, vma, svm, first, last, Trigger.PAGEFAULT_GPU)
        plan.state = LOCAL if best == self._gpu else HOST

    def _give_up(self, process: KfdProcess, vma: Vma, svm: SvmRange, old: Migration, plan: Plan) -> Stages:
        """The move to this GPU has failed: what can of the granule goes to RAM, and it is mapped as it lies.

        HMM cannot give a page in the VRAM of a GPU outside the hive: then the access has to fault again.
        """
        actual = svm.location
        yield from old.to_ram(process, vma, svm, plan.first, plan.last, Trigger.PAGEFAULT_GPU)
        plan.state = HOST
        if not self._same_hive(self._gpu, actual):
            plan.again = vma.count(plan.first, plan.last, VRAM + actual) > 0

    def map_stages(self, process: KfdProcess, vma: Vma, first: int, last: int, *, write: bool) -> Stages:
        """svm_range_validate_and_map: HMM populates what nobody has touched, then the PTEs are written.

        HMM asks for write access wherever the VMA allows it, also for a read fault: sharing after a fork ends here.
        """
        count = last - first + 1
        what = f"{process.name}: first touch of {vma.name}"
        yield from self._paging.fault_in(vma, first, last, what, write=write, trap=False)
        walk = self._paging.hmm_walk_ps(vma, first, last)
        if self._tables.by_cpu:
            yield _WALK, walk, _PTE_WRITE, count * self._pte_write_ps
        else:
            yield _WALK, walk
            yield from self._tables.stages(count)

    def _create_range(self, process: KfdProcess, vma: Vma, page: int) -> SvmRange:
        """An unregistered address: the default-granularity block around it, within the VMA and between neighbours.

        Where part of the block is registered, which makes it a buffer object of KFD, the range is that page alone.
        """
        block = page - page % self.granule_pages
        first = max(block, vma.first)
        last = min(block + self.granule_pages - 1, vma.last)
        if vma.pins and vma.pinned_in(first, last):
            first = last = page
        first, last = process.ranges.gap_around(page, first, last)
        attributes = self._initial(process, CPU if vma.in_place else UNDEFINED)
        return process.new_range(first, last, attributes=attributes, registered=False)

    def _initial(self, process: KfdProcess, preferred: int) -> Attributes:
        """Those that ranges made on the fly begin with: ranges that begin alike share them."""
        key = (process.xnack, process.gpus, preferred)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = initial(
                xnack=process.xnack,
                gpus=process.gpus,
                granule_pages=self.granule_pages,
                preferred=preferred,
            )
        return made


class Plan:
    """What a served fault maps: pages first..last (virtual) in `state`, or each where it lies.

    `svm` is the range whose migrate mutex is held until then.
    """

    __slots__ = ("again", "first", "last", "migrated", "read_only", "sequence", "state", "svm", "vma")

    def __init__(self) -> None:
        self.svm: SvmRange | None = None
        self.vma: Vma | None = None
        self.first = 0
        self.last = -1
        self.state = LOCAL
        self.migrated = False
        self.sequence = 0
        self.read_only = False
        self.again = False

    def map(self, region: Region, now_ps: int) -> int:
        """Make the PTEs valid; how many wavefronts waited for them."""
        vma, base = self.vma, region.first_page
        place = VRAM + region.vm.gpu if self.state == LOCAL else RAM
        if not self.read_only and (
            vma is None or vma.count(self.first, self.last, place) == self.last - self.first + 1
        ):
            state = self.state if vma is None or self.state == LOCAL else host_state(vma.memory_node)
            waiters = region.map(self.first - base, self.last - base, state, now_ps)
            if self.state == HOST and vma is not None and vma.huge is not None:
                join_fragments(region, vma, self.first, self.last)
            return waiters
        assert vma is not None  # only a restore that was examined is read-only
        return map_as_it_lies(region, vma, self.first, self.last, now_ps, writable=not self.read_only)

    def close(self, now_ps: int | None, by: int = 0) -> None:
        """The range's migrate mutex is free again; `now_ps`, and the span that led there, where it was mapped."""
        svm = self.svm
        if svm is not None:
            if now_ps is not None:
                svm.validated_ps = now_ps
                svm.validated_by = by
                svm.mapped = True
            svm.release()

    @property
    def raced(self) -> bool:
        """Was the range invalidated while it was being mapped, or is it not all there yet? (-EAGAIN)"""
        return self.again or (self.svm is not None and self.svm.sequence != self.sequence)


def is_svm(vma: Vma | None) -> bool:
    """Can the driver make an SVM range here? hipMalloc and pinned memory are KFD buffer objects instead."""
    return vma is not None and vma.kind in (VmaKind.ANONYMOUS, VmaKind.FILE)
