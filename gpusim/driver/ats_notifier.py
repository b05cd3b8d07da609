"""What an APU with ATS does when Linux is about to change pages: the IOMMU tells the ATC to forget them."""

from __future__ import annotations

from gpusim.driver.ats_service import AtsService
from gpusim.driver.kfd_process import KfdProcess
from gpusim.engine.stages import Do, Stages
from gpusim.kinds import Kind
from gpusim.linux.address_space import Vma
from gpusim.linux.notifier import Event


class AtsNotifier:
    """The notifier of one process on APUs. No queue is stopped, and no GPU page table is written."""

    def __init__(self, process: KfdProcess, services: dict[int, AtsService]) -> None:
        self._process = process
        self._services = services

    def invalidate(self, vma: Vma, first: int, last: int, event: Event, *, calls: int = 1) -> Stages:
        """One command a call and GPU; it flushes one page, or all of the part."""
        for region in self._process.regions_of(vma):
            service = self._services[region.vm.gpu]
            yield Do(lambda region=region: region.unmap(first - vma.first, last - vma.first))  # type: ignore[misc]
            yield Kind.TLB_FLUSH, calls * service.invalidate_ps
