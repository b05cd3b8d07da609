"""VRAM of one GPU as the driver accounts for it, in pages."""

from __future__ import annotations

from gpusim.spec import PAGE_BYTES


class Vram:
    """Pages in use by hipMalloc and by the buffer objects of SVM ranges."""

    __slots__ = ("name", "pages", "peak", "used")

    def __init__(self, name: str, size_bytes: int) -> None:
        self.name = name
        self.pages = size_bytes // PAGE_BYTES
        self.used = 0
        self.peak = 0

    @property
    def free(self) -> int:
        return self.pages - self.used

    def take(self, pages: int) -> bool:
        """Allocate pages; False if there are not enough."""
        if pages > self.free:
            return False
        self.used += pages
        self.peak = max(self.peak, self.used)
        return True

    def give_back(self, pages: int) -> None:
        self.used -= pages
