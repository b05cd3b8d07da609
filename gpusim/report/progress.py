"""A line that shows how far a long run is: on a terminal only, and gone when the run ends."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from gpusim.result import text

_PATIENCE_S = 1.0  # shorter runs end before anybody could read the line
_WINDOW = 10  # readings that the rate is taken over: about two seconds


@contextmanager
def live(
    *, limit_ns: float | None = None, stream: TextIO | None = None, wanted: bool = True
) -> Iterator[Callable[[Any], None] | None]:
    """A callback for `gpusim.simulation`'s `progress`; None where nobody looks.

    `limit_ns` is the limit of simulated time, for the share that is done.
    """
    out = sys.stderr if stream is None else stream
    if not (wanted and out.isatty()):
        yield None
        return
    line = _Line(out)
    readings: deque[tuple[float, int]] = deque(maxlen=_WINDOW)

    def show(reading: Any) -> None:
        readings.append((reading.wall_s, reading.events))
        if reading.wall_s >= _PATIENCE_S:
            line.write(_words(reading, readings, limit_ns))

    try:
        yield show
    finally:
        line.clear()


@contextmanager
def counting(
    what: str, *, stream: TextIO | None = None, wanted: bool = True
) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for sweeps: how many of the runs are done, and about how long the rest will take."""
    out = sys.stderr if stream is None else stream
    if not (wanted and out.isatty()):
        yield None
        return
    line = _Line(out)
    began = time.monotonic()

    def show(done: int, whole: int) -> None:
        took = time.monotonic() - began
        left = f", about {text.time(took / done * (whole - done) * 1e9, 2)} to go" if 0 < done < whole else ""
        line.write(f"{done} of {whole} {what}{left}")

    try:
        yield show
    finally:
        line.clear()


def _words(reading: Any, readings: deque[tuple[float, int]], limit_ns: float | None) -> str:
    now_ns = reading.now_ps / 1000
    words = f"simulated {text.time(now_ns)}"
    if limit_ns:
        words += f" of at most {text.time(limit_ns)}"
    (before_s, before), (after_s, after) = readings[0], readings[-1]
    if after_s > before_s:
        words += f" · {text.count((after - before) / (after_s - before_s))} events/s"
    if reading.faults:
        words += f" · {text.count(reading.faults)} faults"
    return f"{words} · {reading.wall_s:.0f} s"


class _Line:
    """One line of a terminal that is written over."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.shown = False

    def write(self, words: str) -> None:
        columns = shutil.get_terminal_size((80, 24)).columns
        self._put(f"\r\x1b[2K{words[: columns - 1]}")
        self.shown = True

    def clear(self) -> None:
        if self.shown:
            self._put("\r\x1b[2K")

    def _put(self, words: str) -> None:
        try:
            self.stream.write(words)
            self.stream.flush()
        except (OSError, UnicodeError):  # a terminal that went away, or has no such letter: no reason to stop
            self.shown = False
