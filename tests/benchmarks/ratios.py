"""Costs as ratios to the bare SimPy loop, measured in the same run.

The machine's own speed swings by a factor of two for seconds at a time. So the loop and the thing measured
take turns, in short slices, and the medians of the pairs are reported. Nothing here asserts a time; events
are counted, exactly.
"""

import gc
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import simpy


def bare_loop(n, processes=3_520):
    """Seconds per timeout of a stock SimPy loop with `n` timeouts or a few more, in `processes` processes.

    All processes sleep equally long. Distinct delays cost 1.1 to 1.35 times as much, so this is the stricter
    yardstick.
    """
    env = simpy.Environment()
    rounds = -(-n // processes)

    def sleeper():
        for _ in range(rounds):
            yield env.timeout(1000)

    for _ in range(processes):
        env.process(sleeper())
    start = perf_counter()
    env.run()
    return (perf_counter() - start) / (rounds * processes)


@dataclass(frozen=True)
class Ratio:
    """What one unit of work costs, in bare timeouts; the spread is that of the pairs."""

    name: str
    middle: float
    low: float
    high: float
    bare_us: float

    def __str__(self):
        return (
            f"{self.name}: {self.middle:.2f} bare timeouts ({self.low:.2f} to {self.high:.2f}; "
            f"a bare timeout is {self.bare_us:.2f} us here)"
        )


def against_bare(name, measured, units, *, timeouts=20_000, processes=3_520, pairs=7):
    """Run `measured()` and the bare loop in turns; the cost of each of its `units` as a ratio.

    `measured` may return the seconds that count, to leave its set-up out; otherwise the whole call counts.
    """
    ratios = []
    bares = []
    for _ in range(pairs):
        gc.collect()
        before = bare_loop(timeouts, processes)
        start = perf_counter()
        seconds = measured()
        if seconds is None:
            seconds = perf_counter() - start
        bare = (before + bare_loop(timeouts, processes)) / 2
        bares.append(bare)
        ratios.append(seconds / units / bare)
    return Ratio(name, median(ratios), min(ratios), max(ratios), median(bares) * 1e6)
