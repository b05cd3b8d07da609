"""What wavefronts walk: the port through which a workload hands its accesses to the compute units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Protocol

from gpusim.hardware.gpuvm import Region


class Order(StrEnum):
    """How steps are handed to wavefronts."""

    FRONTIER = "frontier"  # the next step to the next free slot
    STRIDED = "strided"  # wavefront w takes steps w, w + W, w + 2 W, ...
    SHARES = "shares"  # wavefront w takes a contiguous share


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


#: pages first..last of an operand, in the order in which the step first touches them
Touch = tuple[Operand, int, int]

#: the page that each lane of one instruction accesses, as an index into the operand's region
Instruction = tuple[Operand, Sequence[int]]


class AccessStream(Protocol):
    """The steps of one kernel: `steps` of them in each of `passes` walks, numbered through."""

    operands: Sequence[Operand]
    steps: int
    passes: int
    order: Order
    #: mean latency that translation adds to a step on mapped memory; None: ask the TLBs, fragment by fragment
    translation_ps: int | None
    #: page-table reads of a step that occupy a walker, in the mean
    table_reads: float
    #: picoseconds of each step that no two wavefronts can spend at the same time: atomics on the same lines
    serial_ps: float
    #: first step and end of each wavefront's own ones, where they are not equal shares
    shares: Sequence[tuple[int, int]] | None

    #: lanes of an instruction that each may access a page of their own; 0: all lanes walk side by side
    lanes: int

    def touches(self, index: int) -> Sequence[Touch]:
        """The pages of step `index` (0 <= index < steps * passes)."""
        ...

    def instructions(self, index: int) -> Iterator[Instruction]:
        """Instructions of step `index` some of whose pages are missing, in order; asked for only with `lanes`."""
        ...

    def mapped_run(self, start: int, stop: int) -> int:
        """How many steps from `start` on, below `stop`, find all their pages valid and in the same places."""
        ...
