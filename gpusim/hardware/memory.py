"""HBM as wavefronts share it: free while all fit in at their own rates, a processor-sharing channel otherwise.

As long as the rates of all jobs together stay below the bandwidth nobody slows anybody down, and a job is one delay of
its wavefront. The first job that does not fit in makes all of them share (`engine.channel`); when the last of those
has ended, jobs run free again. Left out: banks, refresh, and the difference between reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Protocol

from gpusim.engine.agenda import Agenda
from gpusim.engine.channel import Channel, Job
from gpusim.engine.environment import Environment, Lean
from gpusim.engine.timeline import Timeline


class AheadJob(Protocol):
    """A job whose start and end are known ahead of time: it begins at `start_ps`, if nothing comes between.

    `memory_class` and `size_bytes` say what it is.
    """

    start_ps: int
    memory_class: MemoryClass
    size_bytes: int

    def due(self, now_ps: int) -> None:
        """It has run free up to its end, which is now: it credits its bytes to the memory."""
        ...

    def not_begun(self) -> None:
        """It was taken back before `start_ps`: ask again then."""
        ...

    def shares(self) -> Callable[[], None]:
        """It has begun, and shares from now on; returns what to call at its end."""
        ...


class MemoryClass:
    """Jobs with the same cap of their own."""

    __slots__ = ("_cap", "_free", "_memory", "_shared")

    def __init__(self, memory: Memory, cap_bytes_per_s: float) -> None:
        self._memory = memory
        self._cap = cap_bytes_per_s / 1e12
        self._shared = memory.channel.job_class(cap_bytes_per_s)
        self._free: dict[Lean, tuple[int, int]] = {}  # end and size of the jobs that run free

    @property
    def capped_ps(self) -> int:
        """Time in which jobs that share ran at their cap: a job's part of it is a difference of readings."""
        return self._shared.capped_ps

    def run_free(self, size_bytes: int, lean: Lean, added_ps: int = 0) -> int | None:
        """Start a job; returns the delay after which `lean` has to call `finish_free`.

        `added_ps` is latency beside the transfer (translation); where the bandwidth is shared the caller waits for it.
        None if jobs share the bandwidth now: `lean` is parked, and resumed at the end.
        """
        memory = self._memory
        cap = self._cap
        rate = memory.free_rate + cap
        if memory.shared or rate + len(memory.ahead) * memory.most_cap > memory.capacity:
            if memory.share():
                self._shared.enter(size_bytes, lean.resume)
                return None
            rate = cap
        memory.free_rate = rate
        delay = self.alone_ps(size_bytes) + added_ps
        self._free[lean] = (memory.env._now + delay, size_bytes)
        return delay

    def run_ahead(self, job: AheadJob, start_ps: int, duration_ps: int) -> bool:
        """Let `job` run free for its `alone_ps` from `start_ps` (now or later) on: one event, at its end.

        False if it does not fit in beside all that run free, now or ahead: then it has to ask when it starts.
        """
        memory = self._memory
        ahead = memory.ahead
        if memory.free_rate + (len(ahead) + 1) * memory.most_cap > memory.capacity:
            return False
        if memory.shared:
            if memory.channel.jobs:
                return False
            memory.run_free_again()
        ahead.add(start_ps + duration_ps, job)
        return True

    def alone_ps(self, size_bytes: int) -> int:
        """How long a job that runs free takes."""
        return ceil(size_bytes / self._cap) or 1

    def take_back(self, job: AheadJob, end_ps: int, now: int) -> None:
        """A job of `run_ahead` was taken out: it shares if it has begun, and asks again at its start if not."""
        if job.start_ps > now:
            job.not_begun()
            return
        left = min(round((end_ps - now) * self._cap), job.size_bytes)
        self._memory.moved += job.size_bytes - left
        self._shared.enter(left, job.shares())

    def finish_free(self, lean: Lean) -> bool:
        """True if the job of `run_free` has ended; False if it came to share: `lean` is resumed at its end."""
        job = self._free.pop(lean, None)
        if job is None:
            return False
        memory = self._memory
        memory.free_rate = memory.free_rate - self._cap if memory.free_rate > 1.5 * self._cap else 0.0
        memory.moved += job[1]
        if job[0] >= memory.turn_ps:
            memory.settle(job[0])
        return True

    def enter(self, size_bytes: int, resume: Callable[[], None]) -> None:
        """A job that is not a wavefront's: `resume` is called at its end."""
        self._memory.gather()
        self._shared.enter(size_bytes, resume)

    def enter_group(self, size_bytes: int, weight: int, resume: Callable[[], None]) -> Job:
        """`weight` wavefronts that move `size_bytes` together."""
        self._memory.gather()
        return self._shared.enter_group(size_bytes, weight, resume)

    def gather(self, now: int) -> None:
        """The jobs that ran free share from now on."""
        memory = self._memory
        for lean, (end, size) in list(self._free.items()):
            if end > now:
                del self._free[lean]
                left = min(round((end - now) * self._cap), size)
                memory.moved += size - left
                self._shared.enter(left, lean.resume)


class Memory:
    """The device memory of one GPU. `channel` is where jobs share, `use` when it was busy and with how many bytes."""

    def __init__(self, env: Environment, name: str, *, capacity_bytes_per_s: float) -> None:
        self.env = env
        self.name = name
        self.channel = Channel(env, name, capacity_bytes_per_s=capacity_bytes_per_s)
        self.capacity = self.channel.capacity
        self.free_rate = 0.0  # bytes per ps of all jobs that run free
        self.shared = False
        self.moved = 0  # bytes of free jobs that the timeline has not got yet
        #: jobs that run free and need no event at their start; each counts with the highest cap of all
        self.ahead: Agenda[AheadJob] = Agenda(env)
        self.most_cap = 0.0
        self._classes: dict[float, MemoryClass] = {}
        self._free_use = Timeline(name)
        self._since_ps = 0
        self.turn_ps = self._free_use.bin_end_ps(0)

    def job_class(self, cap_bytes_per_s: float) -> MemoryClass:
        """The class of the jobs that run at `cap_bytes_per_s` at most."""
        found = self._classes.get(cap_bytes_per_s)
        if found is None:
            found = self._classes[cap_bytes_per_s] = MemoryClass(self, cap_bytes_per_s)
            self.most_cap = max(self.most_cap, cap_bytes_per_s / 1e12)
        return found

    def share(self) -> bool:
        """A job does not fit in, or others share already: do all have to share now?"""
        if self.shared and not self.channel.jobs:
            self.run_free_again()
            return False
        self.gather()
        return True

    def gather(self) -> None:
        """All jobs share from now on."""
        self.shared = True
        if self.free_rate or self.ahead:
            self.free_rate = 0.0
            now = self.env.now
            for member in self._classes.values():
                member.gather(now)
            for end, job in self.ahead.take_out(lambda job: True):
                job.memory_class.take_back(job, end, now)
        if self.moved:
            self.settle(self.env.now)  # it ran free up to now, not while others share

    def run_free_again(self) -> None:
        """Nobody shares any more; what runs free begins now."""
        self.shared = False
        self.settle(self.env.now)

    def take_back(self, wanted: Callable[[AheadJob], bool]) -> None:
        """Those jobs that run ahead and are `wanted` have not begun: they ask again at their start."""
        for _, job in self.ahead.take_out(wanted):
            job.not_begun()

    def settle(self, now_ps: int) -> None:
        """Credit what ran free, up to the end of a bin."""
        if self.moved:
            busy = round(self.moved / self.capacity)
            self._free_use.add(self._since_ps, now_ps, self.moved, busy)
            self.moved = 0
        self._since_ps = now_ps
        self.turn_ps = self._free_use.bin_end_ps(now_ps)

    @property
    def use(self) -> Timeline:
        """Bytes moved, and time busy weighted by the share of the bandwidth in use, up to now."""
        self.settle(self.env.now)
        total = Timeline(self.name)
        for part in (self._free_use, self.channel.use):
            for start, busy, amount in part.rows():
                total.add(start, start + part.width_ps, amount, busy)
        return total
