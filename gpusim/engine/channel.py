"""One server that many jobs share, each with its own cap: the memory of a GPU under thousands of wavefronts.

Every job of a class runs at min(cap of the class, the fair share); the share is such that the capacity is
used up, or everybody runs at its cap (water filling). Virtual time per class makes that O(log n) per job, and
one wake-up serves all jobs. This is the hottest path of the simulator: a wavefront step is one `enter`.

Left out: arbitration in units (a job moves as a fluid), and any order among jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from math import ceil, inf

from gpusim.engine.alarm import Alarm
from gpusim.engine.environment import Environment
from gpusim.engine.fluid import REBASE_BYTES, Pool, per_ps
from gpusim.engine.timeline import Meter, Timeline
from gpusim.engine.work import EPSILON_PS, Call, Work, check_job


class Job(Work):
    """A weighted job on a channel: `weight` equal ones that move `size_bytes` together."""

    __slots__ = ()


class JobClass(Pool):
    """The jobs of a channel that have the same cap."""

    __slots__ = ("_channel", "entered_bytes", "listed")

    def __init__(self, channel: Channel, cap: float) -> None:
        super().__init__(cap)
        self._channel = channel
        self.listed = False  # whether the channel shares its capacity with it
        self.entered_bytes = 0  # what was asked for, less what was cut

    @property
    def capped_ps(self) -> int:
        """Picoseconds so far in which the class ran at its cap: for a job, take the difference of two."""
        return self.time_at_cap(self._channel._env._now)

    def enter(self, size_bytes: int, resume: Callable[[], None]) -> None:
        """Move `size_bytes` at weight 1 and call `resume` at the end: at least a picosecond from now.

        Jobs that end in the same picosecond are called by class, lowest cap first, then in the order of their
        ends, then of their arrival. Raises ValueError for a negative size.
        """
        channel = self._channel
        if size_bytes <= 0:
            check_job(size_bytes, 1)
            channel._env.call_at(channel._env._now + 1, resume)
            return
        waking = channel._waking
        if not waking:
            channel._settle()
        calls = self.calls
        if not calls:
            self._begin()
        end = self.v + size_bytes
        if end in calls:
            self.add(end, resume)
        else:
            calls[end] = resume
            heappush(self.ends, end)
        self.weight += 1
        self.entered_bytes += size_bytes
        if not waking:
            channel._alarm.set(channel._share())

    def enter_group(self, size_bytes: int, weight: int, resume: Callable[[], None] | None) -> Job:
        """Like `enter`, for `weight` equal jobs that move `size_bytes` together; they can be cut on their way.

        Raises ValueError for a negative size, or a weight that is not a positive whole number.
        """
        check_job(size_bytes, weight)
        if weight != int(weight):
            raise ValueError(f"a group has a whole number of members, not {weight}")
        now = self._channel._settle()
        if not self.calls:
            self._begin()
        job = Job(self, size_bytes, weight, resume, now)
        self.entered_bytes += size_bytes
        self.changed()
        return job

    def _begin(self) -> None:
        """The first job after a pause is about to enter."""
        self.v = 0.0
        self.ends.clear()
        if not self.listed:
            self._channel._list(self)

    # What the pool asks of its owner.

    def settle(self) -> int:
        return self._channel._settle()

    def changed(self) -> None:
        channel = self._channel
        if not channel._waking:
            channel._alarm.set(channel._share())

    def corrected(self, entered: int, moved: float) -> None:
        self.entered_bytes += entered
        self._channel._meter.moved += moved

    def alone_rate(self, weight: float) -> float:
        return min(self.cap * weight, self._channel.capacity)


class Channel:
    """A shared server of `capacity` bytes per ps; `wakeups` counts the events that it took."""

    __slots__ = (
        "_alarm",
        "_classes",
        "_env",
        "_listed",
        "_meter",
        "_settled_ps",
        "_waking",
        "capacity",
        "name",
    )

    def __init__(self, env: Environment, name: str, *, capacity_bytes_per_s: float) -> None:
        self._env = env
        self.name = name
        self.capacity = per_ps(capacity_bytes_per_s, f"{name}: capacity")
        self._classes: dict[float, JobClass] = {}
        self._listed: list[JobClass] = []  # classes that may have jobs, by cap
        self._alarm = Alarm(env, self._wake)
        self._waking = False  # in a wake-up, at whose end the rates are set
        self._meter = Meter(Timeline(name))
        self._settled_ps = env._now

    def job_class(self, cap_bytes_per_s: float | None) -> JobClass:
        """The class of the jobs that run at `cap_bytes_per_s` at most (None: no limit of their own)."""
        cap = inf if cap_bytes_per_s is None else per_ps(cap_bytes_per_s, f"{self.name}: cap")
        found = self._classes.get(cap)
        if found is None:
            found = self._classes[cap] = JobClass(self, cap)
        return found

    @property
    def use(self) -> Timeline:
        """Bytes moved, and time busy (weighted by the share of the capacity in use), up to now.

        When the channel is idle, the bytes are `entered_bytes`, exactly.
        """
        return self._meter.settle(self._settle(), None if self.jobs else self.entered_bytes)

    @property
    def entered_bytes(self) -> int:
        """What was asked for, less what was cut."""
        return sum(member.entered_bytes for member in self._classes.values())

    @property
    def jobs(self) -> int:
        """How many jobs there are now; a group counts as its weight."""
        return int(sum(member.weight for member in self._listed))

    @property
    def wakeups(self) -> int:
        return self._alarm.rings

    def _list(self, member: JobClass) -> None:
        """Let a class that gets its first job take part, and drop those that have none."""
        kept = []
        for other in self._listed:
            if other.calls:
                kept.append(other)
            else:
                other.listed = False
        kept.append(member)
        member.listed = True
        self._listed = sorted(kept, key=_cap)

    def _settle(self) -> int:
        """Bring virtual times up to now, which is returned."""
        now = self._env._now
        last = self._settled_ps
        if now != last:
            self._settled_ps = now
            for member in self._listed:
                member.v += member.rate * (now - last)
        return now

    def _share(self) -> int | None:
        """Set the rates after a change; returns when the next job ends."""
        if len(self._listed) > 1:
            return self._share_among_classes()
        now = self._settled_ps
        capacity = self.capacity
        member = self._listed[0]
        weight = member.weight
        meter = self._meter
        if not weight:
            member.set_capped(False, now)
            meter.set(now, 0.0, 0.0)
            return None
        cap = member.cap
        use = cap * weight
        if use <= capacity:
            rate = cap
            if member.capped_from_ps < 0:
                member.set_capped(True, now)
            if use != meter.rate:
                meter.set(now, use, use / capacity)
        else:
            rate = capacity / weight
            if member.capped_from_ps >= 0:
                member.set_capped(False, now)
            if meter.rate != capacity:
                meter.set(now, capacity, 1.0)
        member.rate = rate
        end = member.ends[0]
        if end not in member.calls:
            return member.end_ps(now)
        wait = (end - member.v) / rate - EPSILON_PS
        return now + (ceil(wait) if wait > 1.0 else 1)

    def _share_among_classes(self) -> int | None:
        """Fill the lowest caps first, and share what is left."""
        now = self._settled_ps
        left = self.capacity
        weight = sum([member.weight for member in self._listed])  # whole numbers
        soonest = None
        for member in self._listed:
            mine = member.weight
            if not mine:
                member.set_capped(False, now)
                continue
            capped = member.cap * weight <= left
            member.set_capped(capped, now)
            if capped:
                member.rate = member.cap
                left -= member.cap * mine
                weight -= mine
            else:  # and so do all that follow
                member.rate = left / weight
            end = member.end_ps(now)
            if end is not None and (soonest is None or end < soonest):
                soonest = end
        use = self.capacity if weight else self.capacity - left
        self._meter.set(now, use, use / self.capacity)
        return soonest

    def _wake(self) -> int | None:
        now = self._settle()
        finished: list[Call] = []
        beyond = 0.0
        rebase = False
        for member in self._listed:
            if member.calls:
                beyond += member.take(finished, now)
                rebase = rebase or member.v > REBASE_BYTES
        self._meter.moved -= beyond
        self._waking = True
        for call in finished:
            call()
        self._waking = False
        if rebase:
            for member in self._listed:
                member.rebase()
        return self._share()


def _cap(member: JobClass) -> float:
    return member.cap
