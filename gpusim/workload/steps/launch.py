"""launch: a kernel on a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepProcess, StepSpec

if TYPE_CHECKING:
    from gpusim.workload.program import HostThread, StepRun


class Launch(StepSpec):
    """Launch a kernel over the buffers that it reads and writes."""

    verb: ClassVar[str] = "launch"
    tells: ClassVar[tuple[str, ...]] = ("kernel",)
    takes_stream: ClassVar[bool] = True

    kernel: str = Field(description="a kernel of `kernels`")
    reads: tuple[str, ...] = Field(default=(), description="buffers read")
    writes: tuple[str, ...] = Field(default=(), description="buffers written")
    atomics: tuple[str, ...] = Field(default=(), description="buffers that atomics read and write at once")
    executes: tuple[str, ...] = Field(
        default=(),
        description="buffers with code: each wavefront fetches from their pages before it does a step",
    )
    gpu: str = Field(default="gpu0", description="the GPU, as the process sees them: gpu0, gpu1, ...")
    wait: bool = Field(default=False, description="the thread waits for the kernel's end")

    def buffers(self) -> dict[str, str]:
        lists = {
            "reads": self.reads,
            "writes": self.writes,
            "atomics": self.atomics,
            "executes": self.executes,
        }
        return {f"{key}[{i}]": name for key, names in lists.items() for i, name in enumerate(names)}

    def run(self, thread: HostThread, step: StepRun) -> StepProcess:
        operation = thread.hip.launch(
            thread,
            self.kernel,
            reads=self.reads,
            writes=self.writes,
            atomics=self.atomics,
            executes=self.executes,
            gpu=self.gpu,
            stream=step.stream,
        )
        step.ends_with(operation)
        if self.wait:
            yield from thread.wait_for(operation)
