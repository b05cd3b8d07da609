"""Serving several granules under one lock: what `throttle: merge` makes of a burst of faults."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.placement import Refusal
from gpusim.driver.restore import Plan, Serves, is_svm
from gpusim.driver.svm_range import SvmRange
from gpusim.engine.stages import Do, Stages
from gpusim.hardware.gpuvm import Region
from gpusim.kinds import Kind
from gpusim.linux.address_space import Vma


class MergedRestore(Serves):
    """Stands before a `Restore`: first serves `others` (virtual page, region), then the fault that was asked for.

    The look-ups, locks and events of a service are paid once.
    """

    def __init__(self, inner: Serves, map_now: Callable[[Region, Plan], None], fixed_ps: int) -> None:
        self._inner = inner
        self._map_now = map_now
        self._fixed_ps = fixed_ps
        self.others: list[tuple[int, Region]] = []
        self.granule_pages = inner.granule_pages
        self.unit_pages = inner.unit_pages
        self.skip_ps = inner.skip_ps

    def window_end(self, svm: SvmRange | None) -> int:
        """As without merging."""
        return self._inner.window_end(svm)

    def examine(
        self, process: KfdProcess, vma: Vma | None, page: int, write: bool, sent_ps: int
    ) -> Refusal | None:
        """As without merging."""
        return self._inner.examine(process, vma, page, write, sent_ps)

    def stages(self, process: KfdProcess, vma: Vma, page: int, plan: Plan) -> Stages:
        """Serve all; `plan` is that of the fault on `page`."""
        others, self.others = self.others, []
        free_of_fixed = False
        for other, region in others:
            found = process.mm.find(other)
            if found is None or not is_svm(found) or region.vm.dead:
                continue
            part = Plan()
            yield from self._part(process, found, other, part, free_of_fixed)
            free_of_fixed = True
            yield Do(lambda region=region, part=part: self._map(process, region, part))  # type: ignore[misc]
        yield from self._part(process, vma, page, plan, free_of_fixed)

    def _part(self, process: KfdProcess, vma: Vma, page: int, plan: Plan, free_of_fixed: bool) -> Stages:
        inner = self._inner.stages(process, vma, page, plan)
        try:
            stage = next(inner)
            if free_of_fixed and isinstance(stage, tuple) and stage[0] == Kind.DRIVER_FIXED:
                stage = (stage[0], max(0, stage[1] - self._fixed_ps), *stage[2:])
            while True:
                stage = inner.send((yield stage))
        except StopIteration:
            return

    def _map(self, process: KfdProcess, region: Region, plan: Plan) -> None:
        if process.dead or plan.last < plan.first or plan.raced:
            plan.close(None)
            return
        self._map_now(region, plan)
