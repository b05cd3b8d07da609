"""Interrupt vectors of retry faults, and the rings that they lie in until the driver reads them (`kfd_svm.md` 1.1)."""

from __future__ import annotations

from collections import deque

from gpusim.engine.record import Snapshot
from gpusim.hardware.access import AccessKind, Client
from gpusim.hardware.gpuvm import INVALID, Region
from gpusim.hardware.retry import Fault


class Vector:
    """One interrupt vector: a copy of what a fault said when it was sent, which outlives the wavefront's wait.

    `time_ps` is its timestamp: when it reached the ring. It can stand for the fault that it was made from.
    """

    __slots__ = (
        "access",
        "behind",
        "client",
        "page",
        "pasid",
        "region",
        "sent_ps",
        "snapshot",
        "tick_ps",
        "time_ps",
        "vmid",
        "write",
    )

    def __init__(self, fault: Fault, pasid: int, time_ps: int = 0) -> None:
        self.region: Region = fault.region
        self.page = fault.page
        self.write = fault.write
        self.access: AccessKind = fault.access
        self.client: Client = fault.client
        self.vmid = fault.region.vm.vmid
        self.pasid = pasid
        self.sent_ps = fault.sent_ps
        self.tick_ps = fault.tick_ps
        self.snapshot = fault.path()
        self.behind = fault.behind
        self.time_ps = time_ps

    def path(self) -> Snapshot:
        """The critical path that led to the fault."""
        return self.snapshot

    def copy(self, time_ps: int) -> Vector:
        """The same access, sent again: it reaches the ring at `time_ps`."""
        return Vector(self, self.pasid, time_ps)

    @property
    def virtual(self) -> int:
        """The virtual page number."""
        return self.region.first_page + self.page

    @property
    def key(self) -> tuple[int, int]:
        """Address and process."""
        return self.pasid, self.region.first_page + self.page

    @property
    def waits(self) -> bool:
        """Is its page still missing, and its process alive?"""
        return self.region.seen(self.write)[self.page] == INVALID and not self.region.vm.dead


class VectorRing:
    """A ring of `capacity` vectors. When one comes and it is full, the newest is lost (a ring that software fills, or
    that stops at its end), or the `margin` oldest are (ring 0: the driver moves its read pointer to write + 32).

    `pushed = popped + lost + len(ring)` at any time. `held` entries have been read but not given back yet.
    """

    __slots__ = ("_entries", "capacity", "held", "lost", "margin", "peak", "popped", "pushed")

    def __init__(self, capacity: int, *, margin: int = 0) -> None:
        self.capacity = capacity
        self.margin = margin
        self.held = 0
        self._entries: deque[Vector] = deque()
        self.pushed = self.popped = self.lost = self.peak = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def room(self) -> int:
        """Vectors that can still come."""
        return self.capacity - len(self._entries) - self.held

    def push(self, vector: Vector) -> list[Vector]:
        """Put a vector in; returns those that are lost by it."""
        self.pushed += 1
        lost: list[Vector] = []
        if self.room <= 0:
            if not self.margin:
                self.lost += 1
                return [vector]
            lost.extend(self._entries.popleft() for _ in range(min(self.margin, len(self._entries))))
            self.lost += len(lost)
        self._entries.append(vector)
        self.peak = max(self.peak, len(self._entries) + self.held)
        return lost

    def take(self, most: int, *, hold: bool = False) -> list[Vector]:
        """Read up to `most` vectors, oldest first; `hold` keeps their places until `release`."""
        count = min(most, len(self._entries))
        taken = [self._entries.popleft() for _ in range(count)]
        self.popped += count
        if hold:
            self.held += count
        return taken

    def put_back(self, vectors: list[Vector]) -> None:
        """Vectors that were read come to the front again."""
        self._entries.extendleft(reversed(vectors))
        self.popped -= len(vectors)

    def release(self) -> None:
        """The read pointer is published: what was read gives its places free."""
        self.held = 0

    def remove(self, vectors: list[Vector]) -> None:
        """Take vectors out of the middle."""
        gone = set(map(id, vectors))
        self._entries = deque(vector for vector in self._entries if id(vector) not in gone)
        self.popped += len(gone)

    def newest(self) -> Vector | None:
        """The vector that came last."""
        return self._entries[-1] if self._entries else None

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._entries)
