"""swap_out, collapse and compact: the kernel works on the pages of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gpusim.workload.steps.base import BufferPart, StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class SwapOut(BufferPart):
    """The kernel swaps pages out."""

    verb: ClassVar[str] = "swap_out"

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation, part = self.locate(thread, step)
        yield from thread.hip.swap_out(thread, allocation, part)


class Collapse(BufferPart):
    """khugepaged collapses base pages to huge ones."""

    verb: ClassVar[str] = "collapse"

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        allocation, part = self.locate(thread, step)
        yield from thread.hip.collapse(thread, allocation, part)


class Compact(StepSpec):
    """The kernel compacts memory: pages move."""

    verb: ClassVar[str] = "compact"

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        yield from thread.hip.compact(thread)
