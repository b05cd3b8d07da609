"""What every step of a host thread has in common."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar

from gpusim.spec import Spec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun

#: what a step's behaviour yields: events of the engine that the thread waits for
StepProcess = Generator[Any, Any, None]


class StepSpec(Spec):
    """Arguments of one verb, and what it does when a host thread reaches it."""

    verb: ClassVar[str]
    takes_stream: ClassVar[bool] = False  # may the step name a stream?

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        """Do it. The step ends when this returns, or when the operation given to `step.ends_with` ends."""
        raise NotImplementedError  # pragma: no cover

    def buffers(self) -> dict[str, str]:
        """Buffers that the step names: argument -> buffer, for the reference check."""
        return {}
