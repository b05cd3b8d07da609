"""Host threads: they walk their steps, call HIP, and wait."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusim.driver.kfd_process import KfdProcess
from gpusim.engine.environment import Environment
from gpusim.engine.mutex import Mutex
from gpusim.engine.record import Chain, Recorder
from gpusim.engine.stages import Stages, run_stages
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind
from gpusim.rundata import StepData
from gpusim.runtime import memory
from gpusim.runtime.forking import ChildCalls
from gpusim.runtime.operation import Operation
from gpusim.workload.meeting import Meeting

if TYPE_CHECKING:
    from gpusim.workload.process import ProgramProcess
    from gpusim.workload.steps import Step

Steps = Generator[Any, Any, None]


class ThreadEnds(Exception):
    """The process of a thread has died while the thread waited: it does not come back from the kernel."""


class StepRun:
    """One execution of a step: what is known of it until its end."""

    __slots__ = ("bytes", "facts", "label", "operation", "start_ps", "stream", "suffix")

    def __init__(self, name: str, suffix: str, stream: str | None, start_ps: int) -> None:
        self.label = name + suffix  # tells this execution apart from all others of the process
        self.suffix = suffix
        self.stream = stream
        self.start_ps = start_ps
        self.bytes = 0
        self.operation: Operation | None = None
        self.facts: Mapping[str, Any] = {}  # see `StepData`

    def asks_for(self, size: int) -> None:
        """Bytes that the step moves for the program."""
        self.bytes = size

    def ends_with(self, operation: Operation) -> None:
        """The step ends when `operation` does."""
        self.operation = operation
        self.bytes = operation.size
        self.facts = operation.facts


class HostThread:
    """One thread of a program. `chain` is its critical path."""

    def __init__(self, process: ProgramProcess, name: str) -> None:
        self.process = process
        self.name = name
        self.env: Environment = process.env
        self.hip = process.calls
        recorder: Recorder = process.recorder
        self.chain = Chain(recorder, recorder.actor(f"{process.name}.{name}"))
        self.chain.time_ps = self.env.now
        self.exits = False  # the thread that the kernel tears its process down with

    # -- running steps ---------------------------------------------------------------------------------------------

    def run(self, steps: Sequence[Step]) -> Steps:
        """All steps of the thread; a failure of the simulated program ends its process."""
        try:
            yield from self.run_steps(steps, suffix="")
        except ThreadEnds:
            return
        except SimulatedFailure as failure:
            self.process.kill(failure.outcome, str(failure))

    def run_steps(self, steps: Sequence[Step], *, suffix: str) -> Steps:
        """Steps one after another."""
        for step in steps:
            if self.process.dead:
                return
            if not step.when:
                continue
            run = StepRun(step.name, suffix, step.stream, self.env.now)
            before = self.chain.sums.copy()
            try:
                yield from step.args.run(self, run)
            except SimulatedFailure as failure:
                self._close(step, run, before)
                if not self.process.goes_on:
                    raise
                self.process.note(failure)
                continue
            self._close(step, run, before)

    def run_branches(self, branches: Sequence[Sequence[Step]], *, suffix: str) -> Steps:
        """Lists of steps side by side, each on a thread of its own; goes on when all have ended."""
        yield from self.side_by_side(
            [lambda thread, steps=steps: thread.run_steps(steps, suffix=suffix) for steps in branches]  # type: ignore[misc]
        )

    def side_by_side(self, bodies: Sequence[Callable[[HostThread], Steps]]) -> Steps:
        """Run each on a thread of its own; goes on when all have ended."""
        meeting = Meeting(self.env, len(bodies) + 1)

        def branch(thread: HostThread, body: Callable[[HostThread], Steps]) -> Steps:
            try:
                yield from body(thread)
            except ThreadEnds:
                return
            except SimulatedFailure as failure:
                self.process.kill(failure.outcome, str(failure))
                return
            meeting.come(thread.chain)

        for number, body in enumerate(bodies):
            thread = HostThread(self.process, f"{self.name}.{number}")
            thread.chain.follow(self.chain.snapshot(), self.env.now)
            self.env.process(branch(thread, body))
        yield from self._meet(meeting)

    def fork(self, steps: Sequence[Step], *, suffix: str, wait: bool) -> Steps:
        """Make a child that runs steps of its own; wait for its end, or go on beside it."""
        child = self.hip.child()
        yield from child.fork(self)
        meeting = Meeting(self.env, 2)
        calls = ChildCalls(child, memory.child_touch)

        def life(thread: HostThread) -> Steps:
            try:
                yield from thread.run_steps(steps, suffix=suffix)
            except ThreadEnds:
                child.exit()
                return
            except SimulatedFailure as failure:
                self.process.note(failure)  # the parent lives
            child.exit()
            meeting.come(thread.chain)

        thread = HostThread(self.process, f"{self.name}.child")
        thread.hip = calls  # type: ignore[assignment]
        thread.chain.follow(self.chain.snapshot(), self.env.now)
        self.env.process(life(thread))
        if wait:
            yield from self._meet(meeting)

    def barrier(self, name: str, *, all_ranks: bool) -> Steps:
        """Wait for the others who name the barrier."""
        yield from self._meet(self.process.meeting(name, self.name, all_ranks=all_ranks))

    def _meet(self, meeting: Meeting) -> Steps:
        event = meeting.come(self.chain)
        if event is not None:
            yield event
            self._back()
        self.chain.released(Kind.SYNC, meeting.path, self.env.now)

    def _close(self, step: Step, run: StepRun, before: list[int]) -> None:
        """Report the step, at the end of what it asked for."""
        operation = run.operation
        if operation is None:
            self._report(step, run, run.start_ps, before, self.chain.sums)
        elif operation.done:
            self._report_operation(step, run, operation)
        else:
            operation.waiters.insert(0, lambda: self._report_operation(step, run, operation))

    def _report_operation(self, step: Step, run: StepRun, operation: Operation) -> None:
        """A step in a stream lasts from the start of its work, not from the call, to the thread that waits for it."""
        after = self.chain.sums if operation.end_ps < self.env.now else operation.path[0]
        places = [("host", f"gpu[{gpu}]")[gpu >= 0] for gpu in operation.where or ()]
        where = dict(zip(("from", "to"), places, strict=False))
        self._report(step, run, operation.start_ps, operation.path_before[0], after, where)

    def _report(
        self,
        step: Step,
        run: StepRun,
        start_ps: int,
        before: list[int],
        after: list[int],
        where: Mapping[str, str] | None = None,
    ) -> None:
        now = self.env.now
        attribution = None
        if self.process.recorder.on:
            spent = {Kind(kind): after[kind] - before[kind] for kind in range(len(after))}
            spent = {kind: value for kind, value in spent.items() if value}
            # a path that began before the step would give negative pieces: then only the spans can tell
            if all(value > 0 for value in spent.values()) and sum(spent.values()) == now - start_ps:
                attribution = spent
        self.process.report(
            StepData(
                path=f"steps.{step.name}{run.suffix}{self.process.suffix}",
                name=step.name,
                process=self.process.name,
                thread=self.name,
                kind=step.verb,
                start_ps=start_ps,
                end_ps=now,
                bytes=run.bytes,
                stream=run.stream,
                attribution=attribution,
                detail={name: getattr(step.args, name) for name in step.args.tells} | dict(where or {}),
                facts=run.facts,
            )
        )

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _back(self) -> None:
        """The wait is over. Raises ThreadEnds if the process has died meanwhile."""
        if self.process.dead and not self.exits:
            raise ThreadEnds

    def spend(self, duration_ps: int, kind: Kind) -> Steps:
        """Let time pass."""
        yield self.env.timeout(self.chain.paced(kind, duration_ps))
        self._back()
        self.chain.spend(kind, self.env.now)

    def wait_for(self, operation: Operation) -> Steps:
        """Wait for an operation to end, and pay for the return if it was not over yet."""
        if operation.done:
            self.chain.meet(Kind.SYNC, operation.path[1])
            return
        event = self.env.event()
        operation.when_done(lambda: _go(event))
        yield event
        self._back()
        self.chain.released(Kind.SYNC, operation.path, self.env.now)
        if operation.completion_ps:
            yield from self.spend(operation.completion_ps, Kind.SYNC)

    def stages(self, stages: Stages) -> Steps:
        """Spend the time of the stages; their failure is raised here."""
        stages = self.process.hip.node.on_cores(stages)
        event = self.env.event()
        run_stages(self.env, self.chain, stages, lambda: _go(event), lambda failure: _fail(event, failure))
        yield event
        self._back()

    def lock(self, mutex: Mutex, process: KfdProcess) -> Steps:
        """Wait for a mutex."""
        event = self.env.event()
        asked = self.env.now
        mutex.acquire(self.process.number + 1, lambda: _go(event))
        yield event
        if self.process.dead:
            mutex.release()
        self._back()
        if process.lock_path is None:
            return
        if self.env.now > asked:
            self.chain.released(Kind.LOCK_WAIT, process.lock_path, self.env.now)
        else:
            self.chain.meet(Kind.LOCK_WAIT, process.lock_path[1])


def _go(event: Any) -> None:
    event.succeed()


def _fail(event: Any, failure: SimulatedFailure) -> None:
    event.fail(failure)
