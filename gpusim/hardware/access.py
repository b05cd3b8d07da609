"""What wavefronts walk: the port through which a workload hands its accesses to the compute units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Protocol

from gpusim.hardware.operand import AccessKind, Client, Operand

__all__ = ["AccessKind", "AccessStream", "Client", "Instruction", "Operand", "Order", "Touch"]


class Order(StrEnum):
    """How steps are handed to wavefronts."""

    FRONTIER = "frontier"  # the next step to the next free slot
    STRIDED = "strided"  # wavefront w takes steps w, w + W, w + 2 W, ...
    SHARES = "shares"  # wavefront w takes a contiguous share


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

    #: whole pages of the only operand that each step takes, the one after the other; 0: ask `touches` for them
    step_pages: int
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
