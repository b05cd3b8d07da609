"""How many threads and workers of a scenario can want a CPU core at once, at most.

Where that is no more than the cores of the node, nobody can ever wait for one, and the cores are left out of the
simulation. The bound counts each thread of a program, whatever it does; streams, since calls go on in them beside the
thread; the threads of hipFile's pool; and, where there is memory that faults, the workers of the kernel and interrupts.
A thread that waits for others on its behalf (branches, a child, a batch) does not count beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpusim.runtime.allocation import IN_VRAM, Allocator
from gpusim.scenario.schema import Process, Scenario
from gpusim.workload.steps import Step


def most_runnable(scenario: Scenario, *, gpus: int, cores: int) -> int:
    """The bound for a node of so many GPUs and cores."""
    hipfile = scenario.runtime.hipfile
    pool = (hipfile.pool_threads if hipfile is not None else None) or cores
    total = sum(_process(process, pool) for process in scenario.processes)
    if any(_faults(process) for process in scenario.processes):
        total += 2 * gpus + len(
            scenario.processes
        )  # a worker and its interrupts for each, and the restore work
    return total


def _process(process: Process, pool: int) -> int:
    threads = sum(_width(steps, pool) for steps in process.threads.values())
    names = {
        step.stream or "null" for steps in process.threads.values() for step in _all(steps) if _goes_on(step)
    }
    return threads + len(names)


def _width(steps: Sequence[Step], pool: int) -> int:
    """Threads at work at once in a list of steps."""
    most, beside = 1, 0
    for step in steps:
        args = step.args
        inner = getattr(args, "steps", ())
        if step.verb == "parallel":
            most = max(most, sum(_width(branch, pool) for branch in getattr(args, "branches", ())))
        elif step.verb == "fork" and not getattr(args, "wait", True):
            beside += _width(inner, pool)  # the child goes on
        elif inner:
            most = max(most, _width(inner, pool))
        elif step.verb in ("file_read", "file_write"):
            most = max(most, getattr(args, "threads", 1))
        elif step.verb == "file_batch":
            most = max(most, min(pool, getattr(args, "threads", 1) * getattr(args, "capacity", 1)))
    return most + beside


def _goes_on(step: Step) -> bool:
    """Does the thread go on while the step's work is done?"""
    args = step.args
    if step.verb == "fork":
        return False
    api = getattr(args, "api", None)
    return getattr(args, "wait", True) is False or getattr(args, "async_", False) is True or api == "async"


def _all(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from _all(getattr(step.args, "steps", ()))
        for branch in getattr(step.args, "branches", ()):
            yield from _all(branch)


def _faults(process: Process) -> bool:
    """Is there memory that the kernel's workers have to do with?"""
    quiet = {*IN_VRAM, Allocator.HIP_HOST_MALLOC}
    return any(Allocator(buffer.allocator.value) not in quiet for buffer in process.buffers.values())
