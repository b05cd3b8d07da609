"""A bounded first-in-first-out buffer that counts what happens when it is full."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

Overflow = Literal["drop_newest", "drop_oldest", "block"]


class Ring(Generic[T]):
    """At most `capacity` entries. When it is full, a new entry is dropped, or the oldest is, or the producer
    waits.

    Every entry offered is counted once: `pushed = popped + dropped + len(ring) + blocked`, at any time.
    `peak` is the most entries that the ring ever held.
    """

    __slots__ = ("_entries", "_waiting", "capacity", "dropped", "overflow", "peak", "popped", "pushed")

    def __init__(self, capacity: int, overflow: Overflow = "drop_newest") -> None:
        if capacity < 1:
            raise ValueError(f"a ring holds at least one entry, not {capacity}")
        if overflow not in ("drop_newest", "drop_oldest", "block"):
            raise ValueError(f"overflow is drop_newest, drop_oldest or block, not {overflow!r}")
        self.capacity = capacity
        self.overflow = overflow
        self._entries: deque[T] = deque()
        self._waiting: deque[tuple[T, Callable[[], None] | None]] = deque()
        self.pushed = 0
        self.dropped = 0
        self.popped = 0
        self.peak = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        return len(self._entries) >= self.capacity

    @property
    def blocked(self) -> int:
        """How many entries wait outside for room."""
        return len(self._waiting)

    def push(self, entry: T, admitted: Callable[[], None] | None = None) -> bool:
        """Offer `entry`; whether it is in the ring now.

        With `block`, an entry that finds the ring full waits outside, in order, and `admitted` is called when
        it gets in.
        """
        self.pushed += 1
        if len(self._entries) >= self.capacity:
            if self.overflow == "block":
                self._waiting.append((entry, admitted))
                return False
            self.dropped += 1
            if self.overflow == "drop_newest":
                return False
            self._entries.popleft()
        self._entries.append(entry)
        self.peak = max(self.peak, len(self._entries))
        return True

    def pop(self) -> T:
        """Take the oldest entry, and let in who waits outside. Raises IndexError if there is none."""
        entry = self._entries.popleft()
        self.popped += 1
        if self._waiting:
            waiting, admitted = self._waiting.popleft()
            self._entries.append(waiting)
            if admitted is not None:
                admitted()
        return entry

    def peek(self) -> T:
        """The oldest entry, left where it is. Raises IndexError if there is none."""
        return self._entries[0]
