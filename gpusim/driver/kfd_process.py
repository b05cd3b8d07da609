"""What KFD knows of one process: its address space, ranges, GPUs' page tables, and its SVM mutex."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.driver.svm_range import SvmRange, SvmRangeList
from gpusim.engine.environment import Environment
from gpusim.engine.mutex import Mutex
from gpusim.engine.record import Snapshot
from gpusim.hardware.gpuvm import INVALID, Region, Vm
from gpusim.linux.address_space import AddressSpace, Vma


class KfdProcess:
    """One process with a GPU. `xnack` is its mode; `died` is told why when it is killed."""

    def __init__(
        self,
        name: str,
        *,
        env: Environment,
        vms: dict[int, Vm],
        xnack: bool,
        number: int,
        kill: Callable[[str, str], None],
    ) -> None:
        self.name = name
        self.number = number
        self.xnack = xnack
        self.vms = vms
        self.mm = AddressSpace()
        self.ranges = SvmRangeList()
        self.lock = Mutex(env, f"{name}.svms")
        self.lock_path: Snapshot | None = None  # critical path of its last holder
        self.kill = kill
        self.dead = False
        self._regions: dict[tuple[int, int], Region] = {}

    def stop_queues(self) -> None:
        """QUEUE_EVICTION by SVM: wavefronts that would fault wait instead."""
        for vm in self.vms.values():
            vm.stopped = True

    def start_queues(self, now_ps: int) -> None:
        """QUEUE_RESTORE: what still waits tries again, and finds out that its page is not there."""
        for vm in self.vms.values():
            vm.stopped = False
            for region in vm.regions.values():
                region.try_again(now_ps)

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

    def new_range(self, first: int, last: int, *, granule_pages: int, registered: bool) -> SvmRange:
        """Add a range over addresses that no range covers yet."""
        new = SvmRange(first, last, granule_pages=granule_pages, registered=registered)
        self.ranges.add(new)
        return new
