"""amdgpu_gmc_filter_faults: recognising vectors that have been seen a moment ago, without a CAM (`kfd_svm.md` 1.4).

A ring of `entries` logged faults with a look-up by address and process. All times are timestamps of vectors.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

Key = tuple[int, int]


class Verdict(StrEnum):
    """What becomes of a vector."""

    PASSES = "passes"
    STALE = "stale"  # older than what has been processed already
    FULL = "full"  # more distinct faults in the window than the log holds
    DUPLICATE = "duplicate"  # the same address was logged inside the window


class RetryFilter:
    """See the module. A duplicate does not refresh the entry, so an address passes again once a window is over."""

    def __init__(self, entries: int, window_ps: int) -> None:
        self._entries = entries
        self._window = window_ps
        self._log: deque[tuple[int, Key]] = deque()  # (timestamp, key), oldest first
        self._at: dict[Key, int] = {}  # timestamp of the newest entry of a key
        self._expiry: dict[Key, int] = {}
        self._processed_ps = -1

    def verdict(self, key: Key, time_ps: int) -> Verdict:
        """What to do with a vector; one that passes is logged."""
        if time_ps < self._processed_ps:
            return Verdict.STALE
        self._processed_ps = time_ps
        since = time_ps - self._window
        log = self._log
        if len(log) >= self._entries and log[0][0] >= since:
            return Verdict.FULL
        logged = self._at.get(key)
        if logged is not None and logged >= since:
            expiry = self._expiry.get(key)
            if expiry is None or time_ps <= expiry:
                return Verdict.DUPLICATE
        if len(log) >= self._entries:
            old_ps, old = log.popleft()
            if self._at.get(old) == old_ps:
                del self._at[old]
                self._expiry.pop(old, None)
        log.append((time_ps, key))
        self._at[key] = time_ps
        self._expiry.pop(key, None)
        return Verdict.PASSES

    def remove(self, key: Key, newest_ps: int) -> None:
        """A fault will come again: what is sent after the newest vector in the ring passes at once."""
        if key in self._at:
            self._expiry[key] = newest_ps
