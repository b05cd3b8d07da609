"""svm_range_restore_pages: what serving one retry fault does, as stages (`kfd_svm.md` 2).

Models steps 9 (look-up, range on the fly), 12 (recent restore), 15 (placement), 17 (granule), 18 (migration), 19
(validate and map). Left out: steps that only fail when another thread changes the address space meanwhile.
"""

from __future__ import annotations

from gpusim.driver.driver_spec import DriverSpec
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.migrate import Migration, Trigger, populate
from gpusim.driver.svm_range import CPU, SvmRange
from gpusim.driver.switches import RecentSkip
from gpusim.engine.stages import Stages
from gpusim.hardware.gpuvm import HOST, LOCAL
from gpusim.kinds import Kind
from gpusim.linux.address_space import HostMemory, Vma, VmaKind
from gpusim.linux.host_spec import PageCosts
from gpusim.spec import PAGE_BYTES


class Restore:
    """Serves faults of one GPU. `plan` is what the last call to `stages` decided: pages to map, and where they lie."""

    def __init__(
        self,
        *,
        gpu_index: int,
        driver: DriverSpec,
        pages: PageCosts,
        host: HostMemory,
        migrations: list[Migration],
    ) -> None:
        self._gpu = gpu_index
        self._costs = driver.costs
        self._svm = driver.svm
        self._pages = pages
        self._host = host
        self._migrations = migrations
        self.granule_pages = driver.svm.default_granularity // PAGE_BYTES
        self._skip_ps = driver.svm.recent_skip if driver.switches.recent_skip is RecentSkip.ON else 0

    def window_end(self, svm: SvmRange | None) -> int:
        """Faults of a range that are taken up before this time are dropped; 0 if none would be."""
        if svm is None or svm.validated_ps is None or not self._skip_ps:
            return 0
        return svm.validated_ps + self._skip_ps

    def placement(self) -> int:
        """svm_range_best_restore_location, step 4: under XNACK every SVM GPU has the ACCESS bit of each range.

        Left out: APUs, preferred locations and in-place access, which nothing sets in this version.
        """
        return self._gpu

    def stages(self, process: KfdProcess, vma: Vma, page: int, plan: Plan) -> Stages:
        """Serve a fault on virtual page `page`; fills `plan`."""
        fixed = self._costs.restore
        svm = process.ranges.find(page)
        if svm is None:
            svm = self._create_range(process, vma, page)
            fixed += self._costs.range_create
        yield Kind.DRIVER_FIXED, fixed
        first, last = svm.granule(page)
        best = self.placement()
        if svm.location not in (CPU, best):  # another GPU's VRAM: the whole range goes through RAM
            old = self._migrations[svm.location]
            yield from old.to_ram(process, vma, svm, svm.first, svm.last, Trigger.PAGEFAULT_GPU)
        if best != CPU:
            yield from self._migrations[best].to_vram(process, vma, svm, first, last, Trigger.PAGEFAULT_GPU)
        yield from self.map_stages(process, vma, first, last)
        plan.svm, plan.first, plan.last = svm, first, last
        plan.state = LOCAL if best == self._gpu else HOST
        plan.migrated = best != CPU

    def map_stages(self, process: KfdProcess, vma: Vma, first: int, last: int) -> Stages:
        """svm_range_validate_and_map: HMM populates what nobody has touched, then the PTEs are written."""
        count = last - first + 1
        missing = populate(self._host, vma, first, last, f"{process.name}: first touch of {vma.name}")
        if missing:
            yield Kind.PAGE_ALLOC, missing * self._pages.alloc
            yield Kind.PAGE_ZERO, missing * self._pages.zero
        yield Kind.HMM_WALK, count * self._pages.hmm_walk, Kind.PTE_WRITE, count * self._costs.pte_write

    def _create_range(self, process: KfdProcess, vma: Vma, page: int) -> SvmRange:
        """An unregistered address: the default-granularity block around it, within the VMA and between neighbours."""
        block = page - page % self.granule_pages
        first = max(block, vma.first)
        last = min(block + self.granule_pages - 1, vma.last)
        first, last = process.ranges.gap_around(page, first, last)
        return process.new_range(first, last, granule_pages=self.granule_pages, registered=False)


class Plan:
    """What a served fault maps: pages first..last (virtual) in `state`."""

    __slots__ = ("first", "last", "migrated", "state", "svm")

    def __init__(self) -> None:
        self.svm: SvmRange | None = None
        self.first = 0
        self.last = -1
        self.state = LOCAL
        self.migrated = False


def is_svm(vma: Vma | None) -> bool:
    """Can the driver make an SVM range here? hipMalloc and pinned memory are KFD buffer objects instead."""
    return vma is not None and vma.kind is VmaKind.ANONYMOUS
