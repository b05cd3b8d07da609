"""The MMU notifier: how Linux tells whoever maps a process's pages elsewhere that it is about to change them."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from gpusim.engine.stages import Stages
from gpusim.linux.address_space import Vma


class Event(StrEnum):
    """Why pages are invalidated: the words of MMU_NOTIFY_*."""

    UNMAP = "unmap"  # munmap
    CLEAR = "clear"  # reclaim, compaction, huge-page collapse
    PROTECTION_VMA = "protection_vma"  # mprotect
    PROTECTION_PAGE = "protection_page"  # fork: copy-on-write
    MIGRATE = "migrate"  # migrate_vma


class MmuNotifier(Protocol):
    """Who listens; connected by `machine/`."""

    def invalidate(self, vma: Vma, first: int, last: int, event: Event, *, calls: int = 1) -> Stages:
        """Pages first..last are about to change: the listener lets go of them before this ends.

        `calls` is how often Linux calls for this part: once for all, or once for each page or block.
        """
        ...
