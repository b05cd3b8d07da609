"""The counters that ais-stats reads from a process (`hipfile.md` 3.5).

Left out: the cost of counting, and the report's bandwidth, which is bytes over summed latencies.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gpusim.runtime.hipfile.config import Configuration

_BUCKETS = 16
_FIRST_BUCKET_BITS = 12  # bucket 0 ends at 4 KiB, each following one has twice the size


def bucket(size: int) -> int:
    """The bucket of a request: 0 below 4 KiB, then doubling, 15 from 64 MiB on."""
    return min(max(size.bit_length() - _FIRST_BUCKET_BITS, 0), _BUCKETS - 1)


class Histograms:
    """One backend, one GPU, one direction."""

    __slots__ = ("count", "errors", "size_bytes", "time_ps", "unaligned")

    def __init__(self) -> None:
        self.count = [0] * _BUCKETS
        self.size_bytes = [0] * _BUCKETS
        self.time_ps = [0] * _BUCKETS
        self.errors = 0
        self.unaligned = 0

    def add(self, size: int, time_ps: int, *, unaligned: bool, count: int = 1) -> None:
        """`count` requests of `size` bytes each were served, in `time_ps` together."""
        at = bucket(size)
        self.count[at] += count
        self.size_bytes[at] += size * count
        self.time_ps[at] += time_ps
        if unaligned:
            self.unaligned += count

    def summary(self) -> dict[str, Any]:
        return {
            "ioCount": list(self.count),
            "ioSizeBytes": list(self.size_bytes),
            "ioTimeUs": [time // 1_000_000 for time in self.time_ps],
            "errorCount": self.errors,
            "unalignedCount": self.unaligned,
        }


class Statistics:
    """One process. Old revisions have four byte counters, and count synchronous calls only."""

    def __init__(self, config: Configuration) -> None:
        self.level = config.stats_level
        self.histograms = config.revision.histograms
        self.file_registrations = 0
        self.buffer_registrations = 0
        self.rejections = 0  # by the fast path
        self._bytes: Counter[str] = Counter()
        self._parts: dict[tuple[int, str, bool], Histograms] = {}

    def part(self, gpu: int, path: str, write: bool) -> Histograms:
        """The histograms of a backend."""
        key = (gpu, path, write)
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = Histograms()
        return found

    def served(
        self,
        gpu: int,
        path: str,
        *,
        write: bool,
        size: int,
        time_ps: int,
        unaligned: bool,
        async_: bool = False,
    ) -> None:
        """A backend moved `size` bytes."""
        if not self.level:
            return
        if not self.histograms:
            if not async_:
                self._bytes[f"{path}{'Write' if write else 'Read'}"] += size
            return
        self.part(gpu, path, write).add(size, time_ps, unaligned=unaligned)

    def failed(self, gpu: int, path: str, *, write: bool) -> None:
        """A backend returned an error, also one that is retried on the other."""
        if self.level and self.histograms:
            self.part(gpu, path, write).errors += 1

    def summary(self) -> dict[str, Any]:
        """What ais-stats would print, by level; empty at level 0."""
        if not self.level:
            return {}
        if not self.histograms:
            return {
                f"Total{name}{way}Bytes": self._bytes[f"{path}{way}"]
                for path, name in (("fastpath", "FastPath"), ("fallback", "FallbackPath"))
                for way in ("Read", "Write")
            }
        made: dict[str, Any] = {
            "fileRegistrations": self.file_registrations,
            "bufferRegistrations": self.buffer_registrations,
            "fastpathRejections": self.rejections,
        }
        for (gpu, path, write), part in self._parts.items():
            key = f"{path}.{'write' if write else 'read'}"
            whole = part.summary()
            if self.level == 1:  # counts of all GPUs
                counts = made.setdefault(key, {"ioCount": 0, "ioSizeBytes": 0, "errorCount": 0})
                for name in ("ioCount", "ioSizeBytes"):
                    counts[name] += sum(whole[name])
                counts["errorCount"] += part.errors
            elif self.level == 2:  # histograms of all GPUs
                old = made.get(key)
                made[key] = whole if old is None else {name: _sum(old[name], whole[name]) for name in whole}
            else:
                made[f"gpu{gpu}.{key}"] = whole
        return made


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, list):
        return [left + right for left, right in zip(one, other, strict=True)]
    return one + other
