"""Pages that wait for a fault worker: by granule, and granules by registered range."""

from __future__ import annotations

from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.svm_range import SvmRange
from gpusim.hardware.gpuvm import INVALID, Region
from gpusim.hardware.retry import Fault


class Granule:
    """The pages that one service maps and that wait, and the first fault on each.

    `slots` counts its vectors whose place in the ring is known. Once it is `served`, its vectors are thrown away as the
    worker meets them; `gone` ones cost nothing any more. `turn` and `share` belong to `ring_order`.
    """

    __slots__ = ("faults", "gone", "group", "key", "process", "region", "served", "share", "slots", "turn")

    def __init__(self, key: int, region: Region, process: KfdProcess) -> None:
        self.key = key
        self.region = region
        self.process = process
        self.faults: dict[int, Fault] = {}
        self.group: Group | None = None
        self.served = False
        self.gone = False
        self.slots = 0
        self.share = 0.0
        self.turn = 0

    def first(self) -> Fault:
        """The fault that was sent first."""
        for fault in self.faults.values():
            return fault
        raise LookupError("no page of this granule waits")

    def missing(self) -> list[int]:
        """Pages that are not mapped yet, in the order in which they were sent."""
        if self.region.writable is not None:
            return [page for page, fault in self.faults.items() if self._open(page, fault)]
        valid = self.region.valid
        if len(self.faults) > 1 and valid.find(INVALID, min(self.faults), max(self.faults) + 1) < 0:
            return []
        return [page for page in self.faults if valid[page] == INVALID]

    def open(self) -> tuple[int, Fault] | None:
        """The first page that is not mapped yet, and its fault."""
        if self.region.writable is not None:
            return next((item for item in self.faults.items() if self._open(*item)), None)
        valid = self.region.valid
        for page, fault in self.faults.items():
            if valid[page] == INVALID:
                return page, fault
        return None

    def _open(self, page: int, fault: Fault) -> bool:
        """Does the access still find no PTE, or none that it may use?"""
        return self.region.seen(fault.write)[page] == INVALID

    def put_last(self, page: int) -> None:
        """The worker has looked at a page in vain: the others come first now."""
        self.faults[page] = self.faults.pop(page)


class Group:
    """Granules of one registered range that wait. Before `ready_ps` its faults are dropped; 0 once that is over."""

    __slots__ = ("granules", "pages", "ready_ps", "svm")

    def __init__(self, svm: SvmRange) -> None:
        self.svm = svm
        self.ready_ps = 0
        self.granules: dict[Granule, None] = {}
        self.pages = 0
