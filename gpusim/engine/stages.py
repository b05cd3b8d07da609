"""A serial piece of work as a generator of stages: fixed times are arithmetic, only transfers are waited for.

A stage is `(kind, duration_ps, kind, duration_ps, ...)`, `Until(kind, end_ps)` for the end of a reservation, a
`Transfer` that starts when the stages before it have passed (`Early`: now, for that time), or `Do(fn)`, which acts at
the time reached (`Tell(fn)` is the same, and is given the chain). The critical path of the work grows in `chain` stage
by stage; events are needed at transfers and at the end only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final

from gpusim.engine.environment import Environment
from gpusim.engine.flows import Flow
from gpusim.engine.record import NO_ROW, Chain
from gpusim.errors import SimulatedFailure


class Until:
    """The work goes on at `end_ps` (not before what it has reached by itself)."""

    __slots__ = ("alone_ps", "behind", "end_ps", "kind")

    def __init__(self, kind: int, end_ps: int, behind: int = NO_ROW, alone_ps: int | None = None) -> None:
        self.kind = kind
        self.end_ps = end_ps
        self.behind = behind
        #: what it would have taken with nobody else there; None: as long as it took
        self.alone_ps = alone_ps


class Transfer:
    """`start(done)` begins something that calls `done` when it has ended.

    `beside` is other work of a fixed length at the same time: the longer of the two gets the whole stretch.
    """

    __slots__ = ("alone_ps", "behind", "beside", "first", "first_alone_ps", "kind", "start")

    def __init__(
        self,
        kind: int,
        start: Callable[[Callable[[], None]], None],
        beside: tuple[int, int] | None = None,
        *,
        alone_ps: int | None = None,
    ) -> None:
        self.kind = kind
        self.start = start
        self.beside = beside
        #: what began with it and ended first, where it stands for two things: its kind and its end
        self.first: tuple[int, int] | None = None
        #: the last span of who let it end, where it does nothing but wait: `start` may find it out
        self.behind = NO_ROW
        #: what it would have taken with nobody else there, and what `first` would have: `start` may find it out
        self.alone_ps = alone_ps
        self.first_alone_ps: int | None = None

    def on(self, flow: Flow) -> Flow:
        """It is a flow, which has just begun: what that would take alone is what it would."""
        self.alone_ps = flow.alone_ps
        return flow


class Early:
    """A transfer that is begun at once, though the time reached may lie ahead: `start(done)` knows of that time."""

    __slots__ = ("alone_ps", "kind", "start")

    def __init__(
        self, kind: int, start: Callable[[Callable[[], None]], None], alone_ps: int | None = None
    ) -> None:
        self.kind = kind
        self.start = start
        self.alone_ps = alone_ps


class Do:
    """Call `fn` when all stages before it have passed."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[[], None]) -> None:
        self.fn = fn


class Tell:
    """The same, with the critical path of the work up to now."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[[Chain], None]) -> None:
        self.fn = fn


class Reach:
    """Let the clock come to the time reached, so that what follows meets others in the order of time."""

    __slots__ = ()


REACH: Final = Reach()

Stage = tuple[int, ...] | Until | Transfer | Early | Do | Tell | Reach
Stages = Generator[Stage, int, None]  # the generator is sent the time reached


def run_stages(
    env: Environment,
    chain: Chain,
    stages: Stages,
    done: Callable[[], None],
    failed: Callable[[SimulatedFailure], None],
) -> None:
    """Work through `stages` from `chain.time_ps` (now or later) on, then call `done` at the time reached.

    `failed` is called instead when a stage finds that the simulated program fails, at the time reached.
    """
    _Run(env, chain, stages, done, failed).advance()


class _Run:
    """Stages at work. An object and not closures: those would refer to each other, and wait for the collector."""

    __slots__ = ("_chain", "_done", "_env", "_failed", "_send", "_stage", "_value")

    _stage: Any  # the Do, Tell or Transfer in hand

    def __init__(
        self,
        env: Environment,
        chain: Chain,
        stages: Stages,
        done: Callable[[], None],
        failed: Callable[[SimulatedFailure], None],
    ) -> None:
        self._env = env
        self._chain = chain
        self._send: Callable[[Any], Stage] = stages.send
        self._value: int | None = None  # the first one that is sent to a generator
        self._done = done
        self._failed = failed

    def advance(self) -> None:
        """Up to the next stage that has to be waited for."""
        chain = self._chain
        send = self._send
        try:
            stage = send(self._value)
            while True:
                if isinstance(stage, tuple):
                    chain.spend_all(stage)
                elif isinstance(stage, Until):
                    chain.spend(stage.kind, stage.end_ps, behind=stage.behind, alone_ps=stage.alone_ps)
                elif isinstance(stage, Reach):
                    if chain.time_ps > self._env._now:
                        self._value = chain.time_ps
                        self._env.call_at(chain.time_ps, self.advance)
                        return
                elif isinstance(stage, Early):
                    self._stage = stage
                    self._value = chain.time_ps
                    stage.start(self._arrived)
                    return
                elif isinstance(stage, Tell):
                    if chain.time_ps > self._env._now:
                        self._stage = stage
                        self._env.call_at(chain.time_ps, self._act)
                        return
                    stage.fn(chain)
                elif isinstance(stage, Do):
                    if chain.time_ps > self._env._now:
                        self._stage = stage
                        self._env.call_at(chain.time_ps, self._act)
                        return
                    stage.fn()
                else:
                    self._stage = stage
                    self._value = chain.time_ps
                    if chain.time_ps > self._env._now:
                        self._env.call_at(chain.time_ps, self._start)
                    else:
                        self._start()
                    return
                stage = send(chain.time_ps)
        except SimulatedFailure as failure:
            self._at_the_time_reached(partial(self._failed, failure))
        except StopIteration:
            self._at_the_time_reached(self._done)

    def _at_the_time_reached(self, call: Callable[[], None]) -> None:
        if self._chain.time_ps > self._env._now:
            self._env.call_at(self._chain.time_ps, call)
        else:
            call()

    def _act(self) -> None:
        try:
            if isinstance(self._stage, Tell):
                self._stage.fn(self._chain)
            else:
                self._stage.fn()
        except SimulatedFailure as failure:
            self._failed(failure)
            return
        self._value = self._chain.time_ps
        self.advance()

    def _start(self) -> None:
        self._stage.start(self._ended)

    def _arrived(self) -> None:
        """What was begun early has ended."""
        chain = self._chain
        chain.spend(self._stage.kind, self._env._now, alone_ps=self._stage.alone_ps)
        self._value = chain.time_ps
        self.advance()

    def _ended(self) -> None:
        """The transfer in hand, which began at `_value`, has ended."""
        stage, chain, now = self._stage, self._chain, self._env._now
        beside = stage.beside
        if beside is not None and beside[1]:
            kind, length = beside
            end = chain.time_ps + chain.paced(kind, length)
            chain.beside(stage.kind, now, kind, end, alone_ps=stage.alone_ps)
        elif stage.first is not None:
            chain.beside(
                stage.kind,
                now,
                *stage.first,
                alone_ps=stage.alone_ps,
                other_alone_ps=stage.first_alone_ps,
            )
        elif stage.behind:
            if now > chain.time_ps:
                chain.spend(stage.kind, now, alone_ps=0, behind=stage.behind)
            else:
                chain.meet(stage.kind, stage.behind)
        else:
            chain.spend(stage.kind, now, alone_ps=stage.alone_ps)
        self._value = chain.time_ps
        self.advance()
