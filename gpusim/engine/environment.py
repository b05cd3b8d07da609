"""Simulated time in whole picoseconds, on a queue that SimPy's own events share.

Hot parts of a model do not pay for a SimPy `Event` each time: a `Timer` and a `Lean` process are small objects that
sit on SimPy's queue themselves and mix freely with ordinary SimPy processes and events. Ties keep schedule order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappop, heappush
from math import inf
from time import monotonic
from typing import Any, Protocol

import simpy

from gpusim.engine.alarm import NEVER, NORMAL, Key
from gpusim.engine.stock import Stock


class Timer:
    """One call in the future; `cancel()` makes it do nothing when its time comes."""

    __slots__ = ("callbacks", "fn")

    _ok = True
    _value = None
    defused = True

    def __init__(self, fn: Callable[[], None]) -> None:
        self.fn: Callable[[], None] | None = fn
        self.callbacks: Any = _FIRE_TIMER

    def cancel(self) -> None:
        self.fn = None


def _fire_timer(timer: Timer) -> None:
    if timer.fn is not None:
        timer.fn()


_FIRE_TIMER = (_fire_timer,)


class Lean:
    """A process that re-arms itself: a generator that yields what it waits for.

    It yields a whole number of picoseconds to sleep, or None to be parked until somebody calls `resume` (now) or
    `wake_at` (later). It costs one queue entry per wait and no `Event`. `finished`, if given, is called at its end.
    """

    __slots__ = ("_env", "_send", "callbacks", "finished")

    _ok = True
    _value = None
    defused = True

    def __init__(
        self,
        env: Environment,
        generator: Generator[int | None, None, None],
        finished: Callable[[], None] | None = None,
    ) -> None:
        self._env = env
        self._send = generator.send
        self.callbacks: Any = None
        self.finished = finished

    def resume(self) -> None:
        """Run the generator until it waits again. Not to be called from inside itself."""
        try:
            delay = self._send(None)
        except StopIteration:
            if self.finished is not None:
                self.finished()
            return
        if delay is not None:
            env = self._env
            self.callbacks = _RESUME_LEAN
            heappush(env._queue, (env._now + delay, NORMAL, next(env._eid), self))

    def wake_at(self, time_ps: int) -> None:
        """Resume a parked process at `time_ps`."""
        env = self._env
        self.callbacks = _RESUME_LEAN
        heappush(env._queue, (time_ps, NORMAL, next(env._eid), self))


def _resume_lean(lean: Lean) -> None:
    lean.resume()


_RESUME_LEAN = (_resume_lean,)


class Rings(Protocol):
    """Something that is due at a time which may move: it stands beside the queue."""

    key: Key

    def ring(self) -> None:
        """The time of `key` has come."""
        ...


class Progress:
    """What a progress display may show; updated in place."""

    __slots__ = ("events", "faults", "now_ps", "wall_s")

    def __init__(self) -> None:
        self.now_ps = 0
        self.events = 0
        self.faults = 0
        self.wall_s = 0.0


class Environment:
    """A clock in whole picoseconds, the queue that SimPy's events share with ours, and a count of all events.

    `process`, `timeout` and `event` are SimPy's; they live on `stock`.
    """

    def __init__(self) -> None:
        self._now = 0
        self.stock = Stock(self)
        self._queue: list[Any] = self.stock._queue
        self._eid = self.stock._eid
        self.events = 0
        self.stopped = False
        self.limit_ps: int | float = inf  # of the run in hand
        self._alarms: list[Rings] = []
        self._alarm: Rings | None = None  # the one that is due first
        self.alarm_key = NEVER  # its place among the entries of the queue

    @property
    def now(self) -> int:
        """The current time in picoseconds."""
        return self._now

    def process(self, generator: Generator[simpy.Event, Any, Any]) -> simpy.Process:
        """Start a SimPy process."""
        return self.stock.process(generator)

    def timeout(self, delay_ps: int) -> simpy.Timeout:
        """SimPy's event that happens after `delay_ps`."""
        return self.stock.timeout(delay_ps)

    def event(self) -> simpy.Event:
        """SimPy's event that happens when somebody says so."""
        return self.stock.event()

    def call_at(self, time_ps: int, fn: Callable[[], None]) -> Timer:
        """Call `fn` at `time_ps` (not before now)."""
        timer = Timer(fn)
        heappush(self._queue, (time_ps, NORMAL, next(self._eid), timer))
        return timer

    def add_alarm(self, alarm: Rings) -> None:
        """Watch an alarm; it lives as long as the environment."""
        self._alarms.append(alarm)

    def alarm_moved(self, alarm: Rings) -> None:
        """An alarm is due at another time."""
        key = alarm.key
        if key < self.alarm_key:
            self._alarm = alarm
            self.alarm_key = key
        elif alarm is self._alarm:
            for other in self._alarms:
                if other.key < key:
                    alarm = other
                    key = other.key
            self._alarm = alarm
            self.alarm_key = key

    def ring(self) -> None:
        """Let the alarm that is due first ring: its time has come."""
        alarm = self._alarm
        assert alarm is not None  # a key comes with its alarm
        self._now = self.alarm_key[0]
        alarm.ring()

    def lean(
        self, generator: Generator[int | None, None, None], finished: Callable[[], None] | None = None
    ) -> Lean:
        """Start a lean process at once: it runs up to its first wait before this returns."""
        process = Lean(self, generator, finished)
        process.resume()
        return process

    def stop(self) -> None:
        """End `run_to` after the event in hand."""
        self.stopped = True
        self.limit_ps = -1

    def run_to(self, limit_ps: int | None = None, tick: Callable[[], None] | None = None) -> bool:
        """Run until nothing is left, `stop()` is called or the clock would pass `limit_ps`.

        `tick` is called about every 0.2 s of wall time. Returns True when the limit ended the run.
        """
        queue = self._queue
        self.stopped = False
        limit: Any = inf if limit_ps is None else limit_ps
        self.limit_ps = limit
        due = monotonic() + 0.2
        done = 0
        try:
            while not self.stopped:
                if queue and queue[0] < self.alarm_key:
                    entry = heappop(queue)
                    now = entry[0]
                    if now > limit:
                        heappush(queue, entry)
                        self._now = limit
                        return True
                    self._now = now
                    event = entry[3]
                    kind = event.__class__
                    if kind is Lean:
                        event.resume()
                    elif kind is Timer:
                        if event.fn is not None:
                            event.fn()
                    else:
                        callbacks, event.callbacks = event.callbacks, None
                        for callback in callbacks:
                            callback(event)
                        if not event._ok and not getattr(event, "_defused", False):
                            raise event._value
                else:
                    key = self.alarm_key
                    if key is NEVER:
                        return False
                    if key[0] > limit:
                        self._now = limit
                        return True
                    self.ring()
                done += 1
                if not done & 0x3FF and tick is not None and monotonic() >= due:
                    self.events += done
                    done = 0
                    tick()
                    due = monotonic() + 0.2
        finally:
            self.events += done
        return False
