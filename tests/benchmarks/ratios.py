"""Costs as ratios to the bare SimPy loop, measured in the same run.

The machine's own speed swings by a factor of two for seconds at a time. So the loop and the thing measured
take turns, in short slices of processor time, and the medians are reported. Nothing here asserts a time; events
are counted, exactly.
"""

import gc
from dataclasses import dataclass
from statistics import median
from time import process_time

import simpy

PROCESSES = 3_520
_DELAY = 1_000


class BareLoop:
    """A stock SimPy loop of timeouts that can be run a slice at a time; it counts its timeouts and its seconds.

    All processes sleep equally long. Distinct delays cost 1.1 to 1.35 times as much, so this is the stricter
    yardstick.
    """

    def __init__(self, processes=PROCESSES):
        self.timeouts = 0
        self.seconds = 0.0
        self._processes = processes
        self._env = env = simpy.Environment()

        def sleeper():
            while True:
                yield env.timeout(_DELAY)

        for _ in range(processes):
            env.process(sleeper())
        env.run(until=_DELAY // 2)  # the start of the processes does not count

    def run(self, timeouts):
        """As many timeouts, or a few more; returns the seconds of one."""
        rounds = -(-timeouts // self._processes)
        start = process_time()
        self._env.run(until=self._env.now + rounds * _DELAY)
        seconds = process_time() - start
        self.timeouts += rounds * self._processes
        self.seconds += seconds
        return seconds / (rounds * self._processes)


@dataclass(frozen=True)
class Ratio:
    """What one unit of work costs, in bare timeouts; the spread is that of the pairs."""

    name: str
    middle: float
    low: float
    high: float
    bare_us: float

    @property
    def spread(self):
        return f"{self.low:.2f} to {self.high:.2f}, of {self.bare_us:.1f} us"


def against_bare(name, measured, units, *, timeouts=20_000, pairs=7):
    """Run `measured()` and the bare loop in turns; the cost of each of its `units` as a ratio.

    `measured` may return the seconds of processor time that count, to leave its set-up out; otherwise the whole
    call counts.
    """
    loop = BareLoop()
    ratios = []
    bares = []
    for _ in range(pairs):
        gc.collect()
        before = loop.run(timeouts)
        start = process_time()
        seconds = measured()
        if seconds is None:
            seconds = process_time() - start
        bare = (before + loop.run(timeouts)) / 2
        bares.append(bare)
        ratios.append(seconds / units / bare)
    return Ratio(name, median(ratios), min(ratios), max(ratios), median(bares) * 1e6)
