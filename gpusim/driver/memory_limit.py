"""How much system memory KFD lets processes pin: RAM less a 64th and less 1.5 GiB, or half of it where RAM is small.

hipHostMalloc counts against it. Left out: SVM ranges, which count while XNACK is off, and registered memory. Source:
`amdgpu_amdkfd_gpuvm_init_mem_limits`, `kfd_svm.md` 3.4.
"""

from __future__ import annotations

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

    def release(self, pages: int) -> None:
        """Pages are no longer pinned."""
        self.used -= pages
