"""Slow, plain models that share no code with the engine: what it must agree with.

Fluids move in small steps from event to event with every job's remaining bytes on record; rates come from
progressive filling, flow by flow, in exact fractions.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf

from scipy import stats


@dataclass
class Job:
    """A job of a fluid model. `path` is {link: cost}; `cap` in bytes per ps and unit of weight."""

    size: float
    path: dict
    weight: float = 1
    cap: float = inf
    moved: float = 0.0
    start: int | None = None
    end: int | None = None
    capped: int = 0
    order: int = field(default=0)

    @property
    def left(self):
        return self.size - self.moved


def filled(jobs, capacities):
    """Max-min fair rates of `jobs` (bytes per ps): raise all, freeze who meets a cap or a full link."""
    room = {link: Fraction(capacity) for link, capacity in capacities.items()}
    rising = list(range(len(jobs)))
    levels = {}
    level = Fraction(0)
    while rising:
        rise = {}
        for link, left in room.items():
            load = sum(Fraction(jobs[i].path.get(link, 0)) * Fraction(jobs[i].weight) for i in rising)
            if load:
                rise[link] = left / load
        step = min(rise.values())
        near = min((Fraction(jobs[i].cap) - level for i in rising if jobs[i].cap < inf), default=None)
        if near is not None and near <= step:
            step = near
        level += step
        for link in room:
            load = sum(Fraction(jobs[i].path.get(link, 0)) * Fraction(jobs[i].weight) for i in rising)
            room[link] -= step * load
        full = {link for link, height in rise.items() if height == step}
        stopped = [i for i in rising if jobs[i].cap == level or full & jobs[i].path.keys()]
        for i in stopped:
            levels[i] = level
        rising = [i for i in rising if i not in levels]
    return [levels[i] * Fraction(jobs[i].weight) for i in range(len(jobs))]


def coupled(jobs, capacities, reverses):
    """Rates where `reverses` ({link: (reverse, coupling)}) take from each other what they use."""
    room = dict(capacities)
    for _ in range(400):
        rates = [float(rate) for rate in filled(jobs, room)]
        use = {
            link: sum(job.path.get(link, 0) * rate for job, rate in zip(jobs, rates, strict=True))
            for link in capacities
        }
        following = {
            link: capacity - (reverses[link][1] * use[reverses[link][0]] if link in reverses else 0.0)
            for link, capacity in capacities.items()
        }
        change = max(abs(following[link] - room[link]) / capacities[link] for link in room)
        room = following
        if change < 1e-14:
            break
    return rates


class Fluid:
    """Jobs that move at `rates(jobs)`; one ends at the next whole picosecond, and not when it starts."""

    def __init__(self, rates):
        self.rates = rates
        self.now = 0
        self.jobs = []
        self.done = []

    def run_to(self, time):
        """Move on to `time`, or with None until all jobs have ended."""
        while self.jobs and (time is None or self.now < time):
            rates = self.rates(self.jobs)
            ends = [
                self.now + max(1, ceil(job.left / rate - 1e-3))
                for job, rate in zip(self.jobs, rates, strict=True)
            ]
            stop = min(ends) if time is None else min(*ends, time)
            for job, rate, end in zip(self.jobs, rates, ends, strict=True):
                if rate >= job.cap * job.weight * (1 - 1e-12):
                    job.capped += stop - self.now
                job.moved += rate * (stop - self.now)
                if end <= stop:
                    job.moved = job.size
                    job.end = stop
                    self.done.append(job)
            self.jobs = [job for job in self.jobs if job.end is None]
            self.now = stop
        if time is not None:
            self.now = time

    def enter(self, job):
        job.start = self.now
        self.jobs.append(job)
        return job

    def cut(self, job):
        if job.end is None:
            job.end = self.now
            self.jobs.remove(job)


def confidence(samples, batches=30, level=0.999):
    """Mean of a correlated series and the half-width of its confidence interval, by batch means."""
    size = len(samples) // batches
    means = [sum(samples[b * size : (b + 1) * size]) / size for b in range(batches)]
    half = stats.t.ppf((1 + level) / 2, batches - 1) * stats.sem(means)
    return sum(means) / batches, float(half)


def erlang_c(lanes, load):
    """The probability to wait in M/M/c, `load` in erlangs."""
    term = total = 1.0
    for k in range(1, lanes):
        term *= load / k
        total += term
    last = term * load / lanes * lanes / (lanes - load)
    return last / (total + last)
