"""record, wait and synchronize: order between streams and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Record(StepSpec):
    """hipEventRecord: the event is complete when all earlier work of the stream is."""

    verb: ClassVar[str] = "record"
    takes_stream: ClassVar[bool] = True

    event: str = Field(description="the event's name")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        thread.hip.record(thread, self.event, stream=step.stream)
        yield from ()  # this step never waits


class Wait(StepSpec):
    """With a stream: hipStreamWaitEvent. Without: the thread waits (hipEventSynchronize)."""

    verb: ClassVar[str] = "wait"
    takes_stream: ClassVar[bool] = True

    event: str = Field(description="an event that a `record` step names")

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        operation = thread.hip.event(self.event)
        if step.stream is None:
            yield from thread.wait_for(operation)
        else:
            thread.hip.wait_in_stream(thread, operation, stream=step.stream)


class Synchronize(StepSpec):
    """With a stream: hipStreamSynchronize. Without: wait for all streams of the process."""

    verb: ClassVar[str] = "synchronize"
    takes_stream: ClassVar[bool] = True

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        for operation in thread.hip.outstanding(step.stream):
            yield from thread.wait_for(operation)
