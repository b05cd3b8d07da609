"""A job of a pool that is known by name, so that it can be cut, resized and reweighted on its way."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusim.engine.fluid import Pool

#: a job that lacks less than this at a whole picosecond has ended: rounding must not cost it another one
EPSILON_PS = 2.0**-10

#: what is called at the end of a job
Call = Callable[[], None]


class Work:
    """A job that is known by name: it may be cut, resized and reweighted on its way.

    `size_bytes` and `weight` are what they are now, `start_ps` and `end_ps` the times; `end_ps` is None on
    the way. An empty job ends a picosecond after its start, or a few where thousands share.
    """

    __slots__ = (
        "_alone",
        "_capped",
        "_moved",
        "end_ps",
        "end_v",
        "pool",
        "resume",
        "since_v",
        "size_bytes",
        "start_ps",
        "weight",
    )

    def __init__(
        self,
        pool: Pool,
        size_bytes: int,
        weight: float,
        resume: Callable[..., None] | None,
        now_ps: int,
    ) -> None:
        self.pool = pool
        self.size_bytes = size_bytes
        self.weight = weight
        self.resume = resume
        self.start_ps = now_ps
        self.end_ps: int | None = None
        self.end_v = 0.0  # where the pool has it
        self.since_v = pool.v
        self._moved: float = 0.0  # bytes up to `since_v`
        self._alone = 0.0  # ps that they would have taken alone
        self._capped = -pool.time_at_cap(now_ps)
        self._enter()

    def __call__(self) -> None:
        """It has ended, and was taken out: tell who waits for it."""
        resume = self.resume
        if resume is not None:
            self.resume = None
            resume()

    @property
    def moved_bytes(self) -> int:
        """Bytes moved so far; exact once it has ended or was cut."""
        if self.end_ps is None:
            self.pool.settle()
            return self._whole(self._progress())
        return int(self._moved)

    @property
    def alone_ps(self) -> int:
        """What it would have taken with nobody else on its path; if it was cut, for what it has moved."""
        alone = self._alone
        if self.end_ps is None:
            alone += (self.size_bytes - self._moved) / self.pool.alone_rate(self.weight)
        return max(1, ceil(alone - EPSILON_PS))

    @property
    def capped_ps(self) -> int:
        """The part of its life during which its own cap set its rate, not a link."""
        if self.end_ps is None:
            return self._capped + self.pool.time_at_cap(self.pool.settle())
        return self._capped

    def cut(self) -> int:
        """Take it out before its end; nobody is called. Returns the bytes that it has moved."""
        self.resume = None
        if self.end_ps is not None:
            return int(self._moved)
        pool = self.pool
        now = pool.settle()
        progress = self._progress()
        moved = self._whole(progress)
        pool.corrected(moved - self.size_bytes, moved - progress)
        pool.remove(self.end_v, self)
        self.close(now, moved)
        pool.changed()
        return moved

    def resize(self, size_bytes: int) -> None:
        """Make it `size_bytes` long in all, but not shorter than what it has moved."""
        check_job(size_bytes, self.weight)
        if self.end_ps is None:
            self._leave()
            size = max(size_bytes, self._whole(self._moved))
            self.pool.corrected(size - self.size_bytes, 0.0)
            self.size_bytes = size
            self._enter()
            self.pool.changed()

    def reweight(self, weight: float) -> None:
        """Let it run at `weight` times the rate of a unit from now on."""
        check_job(self.size_bytes, weight)
        if self.end_ps is None:
            self._leave()
            self.weight = weight
            self._enter()
            self.pool.changed()

    def _enter(self) -> None:
        pool = self.pool
        least = 2.0 * EPSILON_PS * pool.alone_rate(self.weight)  # so that it does not end before it starts
        left = self.size_bytes - self._moved
        self.end_v = self.since_v + max(left, least) / self.weight
        pool.weight += self.weight
        pool.add(self.end_v, self)

    def _leave(self) -> None:
        """Start a new stretch here, with the old one in the sums; it is to enter again."""
        self.pool.settle()
        self.pool.remove(self.end_v, self)
        moved = self._progress()
        self._alone += (moved - self._moved) / self.pool.alone_rate(self.weight)
        self._moved = moved
        self.since_v = self.pool.v

    def close(self, now_ps: int, moved: int) -> None:
        """It leaves the pool, which is settled, with `moved` bytes done."""
        self.end_ps = now_ps
        self._alone += (moved - self._moved) / self.pool.alone_rate(self.weight)
        self._moved = float(moved)
        self._capped += self.pool.time_at_cap(now_ps)

    def rebased(self, base: float, end_v: float) -> None:
        """Virtual time was taken back by `base`."""
        self.since_v -= base
        self.end_v = end_v

    def _progress(self) -> float:
        return self._moved + (self.pool.v - self.since_v) * self.weight

    def _whole(self, progress: float) -> int:
        return min(int(progress + 1e-6), self.size_bytes)  # 1e-6: rounding must not cost a byte


def check_job(size_bytes: int, weight: float) -> None:
    """Raise ValueError for a job that could not be moved."""
    if size_bytes < 0:
        raise ValueError(f"a job has 0 bytes or more, not {size_bytes}")
    if not 0 < weight < inf:
        raise ValueError(f"a job's weight is more than 0 and finite, not {weight}")
