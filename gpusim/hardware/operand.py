"""One buffer of a kernel as its wavefronts access it."""

from __future__ import annotations

from enum import StrEnum

from gpusim.hardware.gpuvm import Region


class AccessKind(StrEnum):
    """What an access does. The driver's retry path reads the write flag only."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    ATOMIC = "atomic"


class Client(StrEnum):
    """Which block of the GPU sends an access."""

    COMPUTE_UNIT = "compute_unit"
    SDMA = "sdma"
    COMMAND_PROCESSOR = "command_processor"


class Operand:
    """One buffer of a kernel as its wavefronts see it, and the bytes of it that one step moves.

    `access` is what a fault on it says; an atomic reads and writes. `valid` says which of its pages the accesses find,
    one byte a page. `read_cost` and `write_cost`: what one byte takes of the bandwidth of HBM, in bytes; more than 1
    for the memory that a CPU allocator gave on an APU.
    """

    __slots__ = (
        "access",
        "read",
        "read_bytes",
        "read_cost",
        "region",
        "valid",
        "write",
        "write_bytes",
        "write_cost",
    )

    def __init__(self, region: Region, *, read_bytes: float, write_bytes: float) -> None:
        self.region = region
        self.read_bytes = read_bytes  # of one step
        self.write_bytes = write_bytes
        self.read = read_bytes > 0
        self.write = write_bytes > 0
        self.valid = region.seen(self.write)
        self.access = AccessKind.WRITE if self.write else AccessKind.READ
        self.read_cost = 1.0
        self.write_cost = 1.0

    @property
    def hbm_bytes(self) -> float:
        """What one step takes of the bandwidth of HBM, if nothing hits a cache."""
        return self.read_bytes * self.read_cost + self.write_bytes * self.write_cost
