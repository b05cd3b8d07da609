"""The `faults` table: one row per served retry fault, whose pieces tile its life."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

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
_ROW: Final = Struct(f"=HHBBBx{len(_NUMBERS) + len(PIECES)}q")
_TABLE = np.dtype(
    [
        ("gpu", np.uint16),
        ("process", np.uint16),
        ("flags", np.uint8),  # 1: write, 2: migrated
        ("client", np.uint8),
        ("access", np.uint8),
        ("", np.uint8),
        ("numbers", np.int64, len(_NUMBERS)),
        ("pieces", np.int64, len(PIECES)),
    ]
)


class FaultLog:
    """Rows of served faults, packed one after the other."""

    def __init__(self) -> None:
        self._rows = bytearray()
        self.processes: list[str] = []

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

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
        flags = (1 if write else 0) | (2 if migrated else 0)
        kinds = _CLIENTS.index(client), _ACCESSES.index(access)
        self._rows += _ROW.pack(gpu, process, flags, *kinds, *numbers, *pieces)

    def table(self) -> dict[str, Any]:
        """Columns by name."""
        rows = np.frombuffer(self._rows, dtype=_TABLE)
        numbers, pieces, flags = rows["numbers"], rows["pieces"], rows["flags"]
        columns: dict[str, Any] = {
            "gpu": [f"gpu[{index}]" for index in rows["gpu"]],
            "process": [self.processes[index] for index in rows["process"]],
            "client": [_CLIENTS[index].value for index in rows["client"]],
            "access": [_ACCESSES[index].value for index in rows["access"]],
            "write": (flags & 1).astype(bool),
            "result": np.where(flags & 2, "M", "U").tolist(),
        }
        columns |= {name: numbers[:, i] for i, name in enumerate(_NUMBERS)}
        columns["latency_ps"] = columns["replayed_ps"] - columns["raised_ps"]
        columns |= {f"{kind.name.lower()}_ps": pieces[:, i] for i, kind in enumerate(PIECES)}
        return columns
