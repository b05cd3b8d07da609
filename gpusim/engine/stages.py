"""A serial piece of work as a generator of stages: fixed times are arithmetic, only transfers are waited for.

A stage is `(kind, duration_ps, kind, duration_ps, ...)`, `Until(kind, end_ps)` for the end of a reservation, a
`Transfer` that starts when the stages before it have passed, or `Do(fn)`, which acts at the time reached (`Tell(fn)` is
the same, and is given the chain). The critical
path of the work grows in `chain` stage by stage; events are needed at transfers and at the end only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial

from gpusim.engine.environment import Environment
from gpusim.engine.record import Chain
from gpusim.errors import SimulatedFailure


@dataclass(frozen=True, slots=True)
class Until:
    """The work goes on at `end_ps` (not before what it has reached by itself)."""

    kind: int
    end_ps: int
    behind: int = 0


@dataclass(slots=True)  # not frozen: that would triple the price of making one
class Transfer:
    """`start(done)` begins something that calls `done` when it has ended.

    `beside` is other work of a fixed length at the same time: the longer of the two gets the whole stretch.
    """

    kind: int
    start: Callable[[Callable[[], None]], None]
    beside: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Do:
    """Call `fn` when all stages before it have passed."""

    fn: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Tell:
    """The same, with the critical path of the work up to now."""

    fn: Callable[[Chain], None]


Stage = tuple[int, ...] | Until | Transfer | Do | Tell
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

    def advance(first: bool) -> None:
        send = stages.send
        try:
            stage = next(stages) if first else send(chain.time_ps)
            while True:
                if stage.__class__ is tuple:
                    for at in range(0, len(stage), 2):
                        chain.spend(stage[at], chain.time_ps + stage[at + 1])
                elif isinstance(stage, Until):
                    chain.spend(stage.kind, stage.end_ps, behind=stage.behind)
                elif isinstance(stage, Tell):
                    tell = partial(stage.fn, chain)
                    if chain.time_ps > env.now:
                        env.call_at(chain.time_ps, partial(act, tell))
                        return
                    tell()
                elif isinstance(stage, Do):
                    if chain.time_ps > env.now:
                        env.call_at(chain.time_ps, lambda fn=stage.fn: act(fn))  # type: ignore[misc]
                        return
                    stage.fn()
                else:
                    wait_for(stage)  # type: ignore[arg-type]
                    return
                stage = send(chain.time_ps)
        except SimulatedFailure as failure:
            at_the_time_reached(partial(failed, failure))
        except StopIteration:
            at_the_time_reached(done)

    def at_the_time_reached(call: Callable[[], None]) -> None:
        if chain.time_ps > env.now:
            env.call_at(chain.time_ps, call)
        else:
            call()

    def act(fn: Callable[[], None]) -> None:
        try:
            fn()
        except SimulatedFailure as failure:
            failed(failure)
            return
        advance(False)

    def wait_for(stage: Transfer) -> None:
        start = chain.time_ps

        def ended() -> None:
            if stage.beside is not None and start + stage.beside[1] > env.now:
                chain.spend(stage.beside[0], start + stage.beside[1])
            else:
                chain.spend(stage.kind, env.now)
            advance(False)

        if chain.time_ps > env.now:
            env.call_at(chain.time_ps, lambda: stage.start(ended))
        else:
            stage.start(ended)

    advance(True)
