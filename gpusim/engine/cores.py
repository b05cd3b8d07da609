"""CPU cores that threads share: everybody who can run gets an equal part of them, and never more than one core.

That is processor sharing with a cap, in closed form (`Channel`), as a fair scheduler with short time slices gives it to
threads of equal weight. A stretch of CPU work lasts as long as alone while no more threads can run than there are
cores. A thread that moves memory holds a core as well, for as long as it moves; its own rate shrinks with its part.

Left out: time slices and the cost of a switch, priorities, affinity, caches that get cold, and simultaneous threads on
one core.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from functools import partial
from typing import Any

from gpusim.engine.channel import Channel, Job
from gpusim.engine.environment import Environment
from gpusim.engine.flows import Flow
from gpusim.engine.stages import Do, Stage, Transfer, Until
from gpusim.engine.timeline import Timeline

_CORE = 1e12  # picoseconds of work in a second
_FOREVER = 1 << 60  # work of a thread that leaves when its transfer has ended: 13 days


class Cores:
    """`count` equal cores.

    `on_core` are the kinds that a core works on, `by_clock` those of them that also come with a time at which they end,
    `waiting` is the kind of the wait for a core.
    """

    __slots__ = (
        "_by_clock",
        "_channel",
        "_env",
        "_moving",
        "_on_core",
        "_paces",
        "_work",
        "count",
        "runnable",
        "waiting",
    )

    def __init__(
        self,
        env: Environment,
        name: str,
        count: int,
        *,
        on_core: Collection[int],
        by_clock: Collection[int],
        waiting: int,
        paces: Sequence[float] | None = None,
    ) -> None:
        self._env = env
        self._channel = Channel(env, name, capacity_bytes_per_s=count * _CORE)
        self._work = self._channel.job_class(_CORE)
        self._on_core = frozenset(on_core)
        self._by_clock = frozenset(by_clock)
        self._paces = paces
        self._moving: dict[Flow, Job] = {}
        self.count = count
        self.waiting = waiting
        self.runnable = 0

    @property
    def use(self) -> Timeline:
        """When the cores worked, as a share of all of them."""
        return self._channel.use

    @property
    def share(self) -> float:
        """What of a core each thread gets that can run."""
        return 1.0 if self.runnable <= self.count else self.count / self.runnable

    def burst(self, work_ps: int, done: Callable[[], None]) -> None:
        """Work for `work_ps` of a core's time, then call `done`."""
        self._come()
        self._work.enter(work_ps, partial(self._worked, done))

    def interrupt(self, work_ps: int) -> None:
        """Work that nobody waits for takes its part from the others."""
        if work_ps > 0:
            self.burst(work_ps, _nothing)

    def move(self, start: Callable[[Callable[[Flow], None]], Flow], ended: Callable[[Flow], None]) -> Flow:
        """A thread moves memory: `start(ended)` begins the flow that it drives."""
        self._come()
        flow = start(partial(self._moved, ended))
        self._moving[flow] = self._work.enter_group(_FOREVER, 1, None)
        if self.share < 1.0:
            flow.reweight(self.share)
        return flow

    def shared(self, stages: Generator[Stage, int, Any]) -> Generator[Stage, int, Any]:
        """The same stages, with a core for each stretch that needs one; what they return is returned."""
        reached = 0
        try:
            stage = next(stages)
            while True:
                if stage.__class__ is tuple:
                    reached = yield from self._stretches(stage)
                elif isinstance(stage, Until) and stage.kind in self._by_clock:
                    reached = yield from self._until(stage)
                else:
                    if isinstance(stage, Transfer) and stage.beside is not None:
                        self._beside(stage)
                    reached = yield stage
                stage = stages.send(reached)
        except StopIteration as end:
            return end.value

    # -- who can run -----------------------------------------------------------------------------------------------

    def _come(self) -> None:
        self.runnable += 1
        self._tidy()
        if self.runnable > self.count:
            self._weigh()

    def _go(self) -> None:
        crowded = self.runnable > self.count
        self.runnable -= 1
        self._tidy()
        if crowded:
            self._weigh()

    def _tidy(self) -> None:
        """A flow that was cut tells nobody: its thread is gone."""
        for flow in [flow for flow in self._moving if flow.end_ps is not None]:
            self._moving.pop(flow).cut()
            self.runnable -= 1

    def _weigh(self) -> None:
        share = self.share
        for flow in self._moving:
            flow.reweight(share)

    def _worked(self, done: Callable[[], None]) -> None:
        self._go()
        done()

    def _moved(self, ended: Callable[[Flow], None], flow: Flow) -> None:
        job = self._moving.pop(flow, None)
        if job is not None:
            job.cut()
            self._go()
        ended(flow)

    # -- stages ----------------------------------------------------------------------------------------------------

    def _stretches(self, pieces: tuple[int, ...]) -> Generator[Stage, int, int]:
        """Kind, picoseconds, and so on: a burst for each run of pieces that a core works on."""
        reached = yield ()
        on_core, at = self._on_core, 0
        while at < len(pieces):
            mine = pieces[at] in on_core
            start = at
            while at < len(pieces) and (pieces[at] in on_core) == mine:
                at += 2
            run = pieces[start:at]
            work = self._paced(run) if mine else 0
            if work <= 0:
                reached = yield run
                continue
            burst = _Burst()
            yield Do(partial(self.burst, work, burst.end))
            yield run
            reached = yield Transfer(self.waiting, burst.join)
        return reached

    def _until(self, stage: Until) -> Generator[Stage, int, int]:
        """Work that would end at a given time if a core were free."""
        reached = yield ()
        if stage.end_ps <= reached:
            return reached
        burst = _Burst()
        yield Do(partial(self.burst, stage.end_ps - reached, burst.end))
        yield stage
        return (yield Transfer(self.waiting, burst.join))

    def _paced(self, run: tuple[int, ...]) -> int:
        paces = self._paces
        if paces is None:
            return sum(run[1::2])
        return sum(round(run[at + 1] * paces[run[at]]) for at in range(0, len(run), 2))

    def _beside(self, stage: Transfer) -> None:
        """CPU work beside a transfer: both begin at once, the longer one gets the whole stretch."""
        assert stage.beside is not None
        kind, length = stage.beside
        work = self._paced((kind, length))
        if kind not in self._on_core or work <= 0:
            return
        begin, main = stage.start, stage.kind
        stage.beside = None
        running = [2]

        def start(done: Callable[[], None]) -> None:
            def ended(which: int) -> None:
                running[0] -= 1
                if running[0]:
                    stage.first = (which, self._env.now)
                    stage.first_alone_ps = alone[which]
                else:
                    stage.kind = which
                    stage.alone_ps = alone[which]
                    done()

            begin(partial(ended, main))
            alone: dict[int, int | None] = {main: stage.alone_ps, kind: work}
            self.burst(work, partial(ended, kind))

        stage.start = start


class _Burst:
    """A stretch of work under way, and who waits for its end."""

    __slots__ = ("_ended", "_then")

    def __init__(self) -> None:
        self._ended = False
        self._then: Callable[[], None] | None = None

    def end(self) -> None:
        self._ended = True
        if self._then is not None:
            self._then()

    def join(self, then: Callable[[], None]) -> None:
        if self._ended:
            then()
        else:
            self._then = then


def _nothing() -> None:
    """Nobody waits."""
