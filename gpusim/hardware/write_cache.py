"""A drive's write cache: how full it is, in closed form."""

from __future__ import annotations


class WriteCache:
    """Filled by writes, emptied to the media at a constant rate whenever there is something in it.

    Left out: that the media slow down as they fill, garbage collection, and reads that the cache serves.
    """

    __slots__ = ("_drain", "_level", "_size", "_time_ps", "waited_ps")

    def __init__(self, size_bytes: int, drain_bytes_per_s: float) -> None:
        self._size = size_bytes
        self._drain = drain_bytes_per_s / 1e12  # bytes per ps
        self._level = 0.0
        self._time_ps = 0
        self.waited_ps = 0

    def level_bytes(self, at_ps: int) -> float:
        """Bytes in it at `at_ps`, not before the last write."""
        return max(0.0, self._level - self._drain * (at_ps - self._time_ps))

    def take(self, size_bytes: int, at_ps: int) -> int:
        """A write of `size_bytes` comes at `at_ps`, or after those before it; returns when it has room."""
        level = self._level - self._drain * (at_ps - self._time_ps)
        level = max(level, 0.0)
        self._level = level + size_bytes
        self._time_ps = at_ps
        beyond = self._level - self._size
        if beyond <= 0.0:
            return at_ps
        wait = int(beyond / self._drain) + 1
        self.waited_ps += wait
        return at_ps + wait

    def empty_ps(self, at_ps: int) -> int:
        """When it will be empty if nothing more comes."""
        return at_ps + int(self.level_bytes(at_ps) / self._drain)
