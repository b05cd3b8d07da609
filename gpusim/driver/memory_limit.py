"""How much system memory KFD lets processes pin: RAM less a 64th and less 1.5 GiB, or half of it where RAM is small.

hipHostMalloc and registered memory count against it, and SVM ranges while XNACK is off, wherever their pages lie.
Source: `amdgpu_amdkfd_gpuvm_init_mem_limits`, `kfd_svm.md` 3.4.
"""

from __future__ import annotations

from gpusim.errors import SimulatedFailure
from gpusim.spec import PAGE_BYTES

_RESERVE = 3 << 29  # 1.5 GiB


class SystemMemoryLimit:
    """Pages that are pinned for GPUs, against what KFD allows."""

    def __init__(self, ram_bytes: int) -> None:
        most = ram_bytes - (ram_bytes >> 6)
        most = most >> 1 if most < 2 * _RESERVE else most - _RESERVE
        self.pages = most // PAGE_BYTES
        self.used = 0

    def reserve(self, pages: int) -> bool:
        """Count pages; False if that would be too many."""
        if self.used + pages > self.pages:
            return False
        self.used += pages
        return True

    def charge(self, pages: int, what: str) -> None:
        """Count pages. Raises SimulatedFailure `out_of_memory` if that would be too many; `what` asked for them."""
        if not self.reserve(pages):
            raise SimulatedFailure(
                "out_of_memory",
                f"hipErrorOutOfMemory: {what}: KFD lets {self.pages * PAGE_BYTES} bytes of system memory be pinned or "
                f"mapped without XNACK, {self.used * PAGE_BYTES} are, {pages * PAGE_BYTES} more were asked for",
            )

    def release(self, pages: int) -> None:
        """Pages are no longer pinned."""
        self.used -= pages
