"""The `faults` table: one row per served retry fault, whose pieces tile its life."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from gpusim.errors import InvariantError
from gpusim.hardware.access import AccessKind, Client
from gpusim.kinds import Kind

#: the pieces of a fault's life, in the order of the table's columns
PIECES = (
    Kind.FAULT_DELIVERY,
    Kind.FAULT_QUEUE,
    Kind.RECENT_SKIP,
    Kind.DUPLICATES,
    Kind.LOCK_WAIT,
    Kind.DRIVER_FIXED,
    Kind.PAGE_ALLOC,
    Kind.PAGE_ZERO,
    Kind.DEVICE_PAGE,
    Kind.DMA_MAP,
    Kind.HMM_WALK,
    Kind.PTE_WRITE,
    Kind.EVICTION,
    Kind.BO_CLEAR,
    Kind.SDMA_COPY,
    Kind.SWAP_IO,
    Kind.PAGE_COPY,
    Kind.PAGE_CACHE,
    Kind.DRIVE,
    Kind.WRITEBACK,
    Kind.TLB_FLUSH,
    Kind.CORE_WAIT,
    Kind.RESEND,
)
_CLIENTS = tuple(Client)
_ACCESSES = tuple(AccessKind)
_NUMBERS = ("page", "pages", "waiters", "raised_ps", "started_ps", "mapped_ps", "replayed_ps")


class FaultLog:
    """Rows of served faults, as packed columns."""

    def __init__(self) -> None:
        self._gpu = array("H")
        self._process = array("H")
        self._flags = array("B")  # 1: write, 2: migrated
        self._client = array("B")
        self._access = array("B")
        self._numbers = array("q")
        self._pieces = array("q")
        self.processes: list[str] = []

    def __len__(self) -> int:
        return len(self._gpu)

    def add(
        self,
        gpu: int,
        process: int,
        *,
        client: Client,
        access: AccessKind,
        write: bool,
        migrated: bool,
        numbers: tuple[int, int, int, int, int, int, int],
        pieces: list[int],
    ) -> None:
        """`numbers` are page, pages, waiters, raised, started, mapped, replayed.

        `pieces` are in the order of PIECES and sum to replayed - raised.
        """
        if sum(pieces) != numbers[6] - numbers[3]:
            raise InvariantError(
                f"the pieces of a fault on page {numbers[0]:#x} sum to {sum(pieces)} ps, "
                f"it lived {numbers[6] - numbers[3]} ps: {pieces}"
            )
        self._gpu.append(gpu)
        self._process.append(process)
        self._flags.append(int(write) | (2 if migrated else 0))
        self._client.append(_CLIENTS.index(client))
        self._access.append(_ACCESSES.index(access))
        self._numbers.extend(numbers)
        self._pieces.extend(pieces)

    def table(self) -> dict[str, Any]:
        """Columns by name."""
        rows = len(self)
        numbers = np.frombuffer(self._numbers, dtype=np.int64).reshape(rows, len(_NUMBERS))
        pieces = np.frombuffer(self._pieces, dtype=np.int64).reshape(rows, len(PIECES))
        flags = np.frombuffer(self._flags, dtype=np.uint8)
        columns: dict[str, Any] = {
            "gpu": [f"gpu[{index}]" for index in self._gpu],
            "process": [self.processes[index] for index in self._process],
            "client": [_CLIENTS[index].value for index in self._client],
            "access": [_ACCESSES[index].value for index in self._access],
            "write": (flags & 1).astype(bool),
            "result": np.where(flags & 2, "M", "U").tolist(),
        }
        columns |= {name: numbers[:, i] for i, name in enumerate(_NUMBERS)}
        columns["latency_ps"] = columns["replayed_ps"] - columns["raised_ps"]
        columns |= {f"{kind.name.lower()}_ps": pieces[:, i] for i, kind in enumerate(PIECES)}
        return columns
