"""How much a scenario asks of the simulator, before it runs: model steps, counted from what its steps say.

A file request, a step of a wavefront in memory that has to be fetched, and a step of a program are a model step each.
Counts are upper ends for kernels: memory that is resident costs less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpusim.quantity import format_size, parse_size
from gpusim.scenario.resolve import resolve
from gpusim.scenario.schema import Process, Scenario
from gpusim.scenario.step_reader import nested_steps
from gpusim.scenario.words import Allocator, OnError
from gpusim.workload.steps import Step
from gpusim.workload.steps.allocation import Alloc
from gpusim.workload.steps.control import Repeat
from gpusim.workload.steps.files import FileBatch, FileTransfer
from gpusim.workload.steps.launch import Launch

#: model steps from which a warning is due: minutes
MANY = 20_000_000
#: model steps that are simulated in a second, roughly: for a warning only
_A_SECOND = 30_000
#: simulated time of a file request of a job that goes on for a time: the least that one takes
_REQUEST_PS = 10_000_000
#: and the rate of all of them together at most: what a link or two carry
_BYTES_PER_PS = 0.064
_FATAL = frozenset({Allocator.MALLOC, Allocator.HEAP, Allocator.STACK, Allocator.MMAP})
_RESIDENT = frozenset({Allocator.HIP_MALLOC, Allocator.HSA_POOL})


@dataclass(frozen=True, slots=True)
class Effort:
    """What one step of a program costs: `count` model steps in all rounds, of which `what` says the kind."""

    step: str
    count: int
    what: str
    remedy: str


def efforts(scenario: Scenario) -> list[Effort]:
    """Of all steps, the largest first."""
    found = [
        effort
        for process in scenario.processes
        if not _too_large(process, scenario)
        for steps in process.threads.values()
        for effort in _before_the_end(steps, process, scenario)
    ]
    return sorted(found, key=lambda effort: -effort.count)


def _too_large(process: Process, scenario: Scenario) -> bool:
    """Does the process die before its first step, because its hipMalloc buffers exceed the memory of a GPU?"""
    if process.on_error is not OnError.STOP:
        return False
    later = {getattr(step.args, "buffer") for step in _all(process) if isinstance(step.args, Alloc)}  # noqa: B009
    asked = Counter[str]()
    for name, buffer in process.buffers.items():
        if buffer.allocator in _RESIDENT and name not in later:
            asked[buffer.gpu or "gpu0"] += buffer.size
    if not asked:
        return False
    return max(asked.values()) > max(parse_size(gpu["hbm"]["size"]) for gpu in resolve(scenario).gpus)


def _before_the_end(steps: Iterable[Step], process: Process, scenario: Scenario) -> Iterator[Effort]:
    """The steps of a thread up to a launch that kills the process: on memory of malloc with XNACK off."""
    registered = any(step.verb == "host_register" for step in _all(process))
    off = process.env.get("HSA_XNACK", "").strip() == "0" and not registered
    for step in steps:
        if off and step.when and isinstance(step.args, Launch):
            used = (process.buffers.get(name) for name in step.args.buffers().values())
            if any(buffer is not None and buffer.allocator in _FATAL for buffer in used):
                return
        yield from _of((step,), 1, process, scenario)


def _all(process: Process) -> Iterator[Step]:
    """Every step of a process, also those inside others."""
    waiting = [step for steps in process.threads.values() for step in steps]
    while waiting:
        step = waiting.pop()
        yield step
        for key, depth in nested_steps(type(step.args)).items():
            inner = getattr(step.args, key)
            waiting += inner if depth == 1 else [one for branch in inner for one in branch]


def warning(scenario: Scenario) -> str | None:
    """A line that says that a run will take very long, and what to do about it; None where it will not."""
    found = efforts(scenario)
    total = sum(effort.count for effort in found)
    if total < MANY:
        return None
    most = found[0]
    return (
        f"{scenario.name}: about {total:,} model steps, which take {_long(total / _A_SECOND)} or so; most of them are "
        f"{most.what} of step {most.step}: {most.remedy}"
    )


def _of(steps: Iterable[Step], rounds: int, process: Process, scenario: Scenario) -> Iterator[Effort]:
    for step in steps:
        if not step.when:
            continue
        yield _one(step, rounds, process, scenario)
        inside = rounds * step.args.times if isinstance(step.args, Repeat) else rounds
        for key, depth in nested_steps(type(step.args)).items():
            inner = getattr(step.args, key)
            for branch in [inner] if depth == 1 else inner:
                yield from _of(branch, inside, process, scenario)


def _one(step: Step, rounds: int, process: Process, scenario: Scenario) -> Effort:
    args = step.args
    if isinstance(args, FileTransfer | FileBatch):
        count = _requests(args, process)
        what = f"{count:,} file requests of {format_size(args.io_size)}"
        remedy = "a larger `io_size` or a smaller part of the file answers most questions as well"
    elif isinstance(args, Launch):
        kernel = scenario.kernels[args.kernel]
        count = 1 + sum(_fetched(name, process) for name in args.buffers().values()) // kernel.step
        what = f"{count:,} wavefront steps of {format_size(kernel.step)}"
        remedy = "a larger `step` of the kernel or smaller buffers answer most questions as well"
    elif isinstance(args, Repeat):
        count = args.times
        what = f"{count:,} rounds"
        remedy = "fewer `times` answer most questions as well: the rounds come to be alike"
    else:
        count, what, remedy = 1, "single steps", "leave them out, or repeat them less often"
    if rounds > 1:
        what, remedy = (
            f"{rounds:,} times {what}",
            "fewer `times` of the repeat around it, or less in each round",
        )
    return Effort(step.name, count * rounds, what, remedy)


def _requests(args: FileTransfer | FileBatch, process: Process) -> int:
    if isinstance(args, FileBatch):
        size = None if args.entries is None else args.entries * args.io_size
        depth, offsets = args.capacity, (0, 0)
    else:
        size = sum(piece.size * piece.count for piece in args.pieces) or args.size
        depth, offsets = args.depth, (args.file_offset or 0, args.buffer_offset or 0)
    if args.duration is not None:
        ends = args.threads * depth * -(-args.duration // _REQUEST_PS)
        ends = min(ends, int(args.duration * _BYTES_PER_PS) // args.io_size + 1)
        return ends if size is None else min(ends, -(-size // args.io_size))
    if size is None:
        names = (args.file,) if isinstance(args.file, str) else args.file
        file = min((process.files[name].size for name in names if name in process.files), default=0)
        buffer = process.buffers[args.buffer].size if args.buffer in process.buffers else file
        size = max(0, min(file - offsets[0], buffer - offsets[1]))
    return -(-size // args.io_size)


def _fetched(name: str, process: Process) -> int:
    """Bytes of a buffer that a kernel may have to wait for."""
    buffer = process.buffers.get(name)
    return 0 if buffer is None or buffer.allocator in _RESIDENT else buffer.size


def _long(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} seconds"
