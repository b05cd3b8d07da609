"""Beginning an operation that is a serial piece of work: its stages, on a path of its own."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.engine.record import Chain, Snapshot
from gpusim.engine.stages import Do, Stages, Transfer, run_stages
from gpusim.errors import CallError, SimulatedFailure
from gpusim.kinds import Kind
from gpusim.runtime.hip import Hip
from gpusim.runtime.operation import Operation


def in_null_stream(hip: Hip, chain: Chain, work: Stages) -> Stages:
    """A blocking call: `work` when the null stream comes to it, so that blocking copies of all threads are in order."""
    finish: list[Callable[[Snapshot], None]] = []

    def start(begun: Callable[[], None]) -> None:
        def begin(_: Snapshot, done: Callable[[Snapshot], None]) -> None:
            finish.append(done)
            begun()

        hip.stream(None).submit(Operation(begin), chain.snapshot())

    yield Transfer(Kind.SYNC, start)
    try:
        yield from work
    except CallError:
        yield Do(lambda: finish[0](chain.snapshot()))
        raise
    yield Do(lambda: finish[0](chain.snapshot()))


def staged(hip: Hip, name: str, stages: Callable[[Chain], Stages], *, locked: bool = False) -> Operation:
    """An operation that works through `stages`, given its chain; with `locked`, under the SVM mutex.

    A failure of the simulated program kills its process.
    """
    env, kfd, recorder = hip.env, hip.kfd, hip.node.recorder

    def begin(path: Snapshot, done: Callable[[Snapshot], None]) -> None:
        number = recorder.actor(f"{kfd.name}.{name}") if recorder.spans else 0
        chain = Chain(recorder, number)
        chain.follow(path, env.now)

        def run() -> None:
            if locked and kfd.lock_path is not None:
                if env.now > chain.time_ps:
                    chain.released(Kind.LOCK_WAIT, kfd.lock_path, env.now)
                else:
                    chain.meet(Kind.LOCK_WAIT, kfd.lock_path[1])
            run_stages(env, chain, hip.node.on_cores(stages(chain)), ended, failed)

        def ended() -> None:
            if locked:
                kfd.lock_path = chain.snapshot()
                kfd.lock.release()
            done(chain.snapshot())

        def failed(failure: SimulatedFailure) -> None:
            if locked:
                kfd.lock_path = chain.snapshot()
                kfd.lock.release()
            kfd.kill(failure.outcome, str(failure))

        if locked:
            kfd.lock.acquire(kfd.number + 1, run)
        else:
            run()

    return Operation(begin)
