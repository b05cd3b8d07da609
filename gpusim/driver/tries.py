"""Emptying a range in up to three tries: a page that a CPU thread holds cannot move (`kfd_svm.md` 2.3, 3.4).

A CPU thread that faults on a page in VRAM keeps a reference to it from its trap until its own migration begins. Whoever
else migrates the range meanwhile finds that page not to be had and leaves it behind. A move to another GPU and an
eviction try again, three times in all. Where the thread waits for a lock that the caller holds, none of them can
succeed: the move ends with -EDEADLK, and the eviction gives the memory away.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from gpusim.driver.events import EventLog
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.svm_range import SvmRange
from gpusim.engine.stages import REACH, Stage
from gpusim.linux.address_space import Vma

if TYPE_CHECKING:
    from gpusim.driver.migrate import Migration, Trigger

TRIES = 3


def empty(
    old: Migration, process: KfdProcess, vma: Vma, svm: SvmRange, trigger: Trigger, events: EventLog
) -> Generator[Stage, int, bool]:
    """Move all pages of a range from the VRAM of `old` to RAM; False if some are still there after the last try."""
    for number in range(TRIES):
        if number:
            events.count(process.number, "migrate_retries")
        yield REACH  # who faults up to now holds its page
        yield from old.to_ram(process, vma, svm, svm.first, svm.last, trigger)
        if vma.gone or not svm.vram_pages:
            return True
    return False
