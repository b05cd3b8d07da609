"""A simulated program: its process, threads, and the calls that its steps make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from gpusim.engine.environment import Environment
from gpusim.engine.record import Recorder
from gpusim.engine.stages import Stages
from gpusim.errors import InputError, Problem, SimulatedFailure
from gpusim.linux.address_space import Rights
from gpusim.rundata import ProcessData, StepData
from gpusim.runtime import atomics, attributes, copies, mappings, memory, reclaim, registration, xnack
from gpusim.runtime import prefetch as prefetching
from gpusim.runtime.advice import Access, Advice
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.batch_copies import Entry, memcpy_batch
from gpusim.runtime.files import Files
from gpusim.runtime.forking import Child
from gpusim.runtime.hip import Hip
from gpusim.runtime.launch import launch as launch_kernel
from gpusim.runtime.operation import Operation
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.kernels import Kernels
from gpusim.workload.meeting import Meeting
from gpusim.workload.program import HostThread, Steps, ThreadEnds

if TYPE_CHECKING:
    from gpusim.workload.steps import Step

Part = tuple[int, int]  # first byte and size

_FILL = "hipMemset"


class Ranks:
    """Barriers that all instances of a process share."""

    def __init__(self) -> None:
        self.meetings: dict[tuple[str, str], Meeting] = {}
        self.members: list[ProgramProcess] = []


class ProgramProcess:
    """One process of the scenario. `suffix` is `[rank]` where it has several instances."""

    def __init__(
        self,
        name: str,
        *,
        number: int,
        suffix: str,
        env: Environment,
        recorder: Recorder,
        hip: Hip,
        files: Files | None,
        kernels: Kernels,
        threads: Mapping[str, Sequence[Step]],
        at_start: Sequence[str],
        ranks: Ranks,
        goes_on: bool,
        report: Callable[[StepData], None],
        killed: Callable[[ProgramProcess], Stages],
        find: Callable[[str], Sequence[ProgramProcess]],
    ) -> None:
        self.name = name
        self.number = number
        self.suffix = suffix
        self.env = env
        self.recorder = recorder
        self.hip = hip
        self.calls = Calls(hip, kernels, files)
        self.goes_on = goes_on
        self.report = report
        self.dead = False
        self.outcome = "completed"
        self.error: str | None = None
        self.end_ps = 0
        self.notes: list[str] = []
        self.last_path: HostThread | None = None
        self.ends: list[int] = []  # the last spans of threads that have ended
        self._threads = threads
        self._at_start = at_start
        self._ranks = ranks
        self._killed = killed
        self.find = find  # processes by name: all ranks, or one by `name[rank]`
        self._meetings: dict[str, Meeting] = {}
        self._open = 0
        ranks.members.append(self)

    def start(self) -> None:
        """Begin: allocate what no `alloc` step names, then run all threads."""
        self._open = 1
        self.env.process(self._main())

    def _main(self) -> Steps:
        loader = HostThread(self, "start")
        try:
            for name in self._at_start:
                yield from memory.alloc(self.hip, loader, name)
        except ThreadEnds:
            return
        except SimulatedFailure as failure:
            self.kill(failure.outcome, str(failure))
            return
        self._open = len(self._threads)
        if not self._threads:
            self._ended(loader)
        for name, steps in self._threads.items():
            thread = HostThread(self, name)
            thread.chain.follow(loader.chain.snapshot(), self.env.now)
            self.env.process(self._thread(thread, steps))

    def _thread(self, thread: HostThread, steps: Sequence[Step]) -> Steps:
        yield from thread.run(steps)
        if self.dead:
            return
        try:
            for operation in self.hip.outstanding(None):  # a process ends when its streams have
                yield from thread.wait_for(operation)
        except ThreadEnds:
            return
        self.ends.append(thread.chain.row)
        self._open -= 1
        if self._open <= 0:
            self._ended(thread)

    def _ended(self, thread: HostThread) -> None:
        """`thread` is the last that the process had."""
        for device in self.hip.node.devices:  # others may go on: what HBM has moved, it has moved until now
            device.gpu.hbm.settle(self.env.now)
        self.end_ps = self.env.now
        self.last_path = thread

    @property
    def finished(self) -> bool:
        return self.dead or self.last_path is not None

    def kill(self, outcome: str, error: str) -> None:
        """The process dies of an error of its own; others go on."""
        if not self.dead:
            self._die(outcome, error, HostThread(self, "exit"), lambda _: None)

    def sigkill(self, by: HostThread) -> None:
        """Somebody kills it. That is no error: it ends early, when the kernel has taken back what it held."""
        if self.finished:
            return
        thread = HostThread(self, "exit")
        thread.chain.follow(by.chain.snapshot(), self.env.now)
        error = "; ".join([*self.notes, f"killed by {by.process.name}.{by.name} (SIGKILL)"])
        self._die("completed", error, thread, self._ended)

    def _die(self, outcome: str, error: str, thread: HostThread, ended: Callable[[HostThread], None]) -> None:
        self.dead = True
        self.hip.kfd.dead = True
        self.outcome = outcome
        self.error = error
        self.end_ps = self.env.now
        self.hip.die()
        thread.exits = True
        teardown = self._killed(self)

        def exit_() -> Steps:
            yield from thread.stages(teardown)
            ended(thread)

        self.env.process(exit_())

    def note(self, failure: SimulatedFailure) -> None:
        """An error that the program takes notice of and goes on (`on_error: continue`)."""
        self.notes.append(str(failure))

    def meeting(self, name: str, thread: str, *, all_ranks: bool) -> Meeting:
        """The barrier of a name that is not complete yet."""
        if all_ranks:
            key = (name, thread)
            found = self._ranks.meetings.get(key)
            if found is None or found.come_so_far == found.parties:
                found = self._ranks.meetings[key] = Meeting(self.env, len(self._ranks.members))
            return found
        own = self._meetings.get(name)
        if own is None or own.come_so_far == own.parties:
            own = self._meetings[name] = Meeting(self.env, self._parties(name))
        return own

    def _parties(self, name: str) -> int:
        return sum(sum(_come_to(steps, name)) for steps in self._threads.values())

    def data(self) -> ProcessData:
        error = self.error if self.error is not None else "; ".join(self.notes) or None
        return ProcessData(self.name, self.outcome, error, self.end_ps)


def _come_to(steps: Sequence[Step], name: str) -> tuple[bool, int]:
    """Does the host thread of these steps come to the barrier of a name, and how many of its branches do?"""
    itself, branches = False, 0
    for step in steps:
        args = step.args
        if not step.when:
            continue
        if step.verb == "barrier":
            itself |= getattr(args, "name", None) == name and getattr(args, "scope", None) == "threads"
        repeated, more = _come_to(getattr(args, "steps", ()), name)
        itself |= repeated
        branches += more + sum(sum(_come_to(branch, name)) for branch in getattr(args, "branches", ()))
    return itself, branches


class Calls:
    """What steps call: HIP, with the kernels of the scenario at hand."""

    def __init__(self, hip: Hip, kernels: Kernels, files: Files | None) -> None:
        self._hip = hip
        self._files = files
        self._kernels = kernels
        self._launches = 0
        kernels.add(_FILL, KernelSpec())

    @property
    def files(self) -> Files:
        """hipFile and POSIX file calls. Raises InputError where the CPU profile has no numbers for them."""
        if self._files is None:
            message = "the CPU profile of the node has no numbers for file calls (`io` and `hipfile`)"
            raise InputError(
                [
                    Problem(
                        message, path="system.node", legal="a node with drives: `gpusim profiles` lists them"
                    )
                ]
            )
        return self._files

    def allocation(self, name: str) -> Allocation:
        return self._hip.allocation(name)

    def declared_size(self, name: str) -> int:
        return self._hip.declared_size(name)

    def alloc(self, thread: HostThread, name: str) -> Steps:
        yield from memory.alloc(self._hip, thread, name)

    def set_xnack(self, thread: HostThread, *, enabled: bool) -> Steps:
        yield from xnack.set_xnack(self._hip, thread, enabled=enabled)

    def free(self, thread: HostThread, name: str) -> Steps:
        yield from memory.free(self._hip, thread, name)

    def drop_caches(self, thread: HostThread, file: str | None) -> Steps:
        """Clean pages of one file, or of all, leave the page cache."""
        file_io = self._hip.node.file_io
        if file_io is not None:
            yield from thread.stages(file_io.drop_caches(self._hip.files[file] if file is not None else None))

    def host_touch(
        self, thread: HostThread, allocation: Allocation, first: int, size: int, *, write: bool
    ) -> Steps:
        yield from memory.host_touch(self._hip, thread, allocation, first, size, write=write)

    def host_atomics(
        self, thread: HostThread, allocation: Allocation, first: int, size: int, *, times: int
    ) -> Steps:
        yield from atomics.host_atomics(self._hip, thread, allocation, first, size, times=times)

    def advise(
        self, thread: HostThread, allocation: Allocation, part: Part, advice: Advice, device: str
    ) -> Steps:
        yield from attributes.advise(self._hip, thread, allocation, part, advice, device)

    def set_attributes(
        self,
        thread: HostThread,
        allocation: Allocation,
        part: Part,
        *,
        preferred: str | None,
        prefetch: str | None,
        granularity: int | None,
        access: Mapping[str, Access],
        set_flags: Sequence[str],
        clear_flags: Sequence[str],
    ) -> Steps:
        hip = self._hip
        changes = attributes.Changes(
            preferred=None if preferred is None else hip.location(preferred),
            prefetch=None if prefetch is None else hip.location(prefetch),
            granularity=granularity,
            access={hip.location(gpu): word for gpu, word in access.items()},
            add=attributes.flags_of(set_flags),
            clear=attributes.flags_of(clear_flags),
        )
        call = "hsa_amd_svm_attributes_set"
        yield from attributes.set_attributes(hip, thread, allocation, part, changes, call)

    def munmap(self, thread: HostThread, allocation: Allocation, part: Part) -> Steps:
        yield from mappings.munmap(self._hip, thread, allocation, part)

    def mprotect(self, thread: HostThread, allocation: Allocation, part: Part, rights: Rights) -> Steps:
        yield from mappings.mprotect(self._hip, thread, allocation, part, rights)

    def host_register(self, thread: HostThread, allocation: Allocation, part: Part) -> Steps:
        yield from registration.host_register(self._hip, thread, allocation, part)

    def host_unregister(self, thread: HostThread, allocation: Allocation, part: Part) -> Steps:
        yield from registration.host_unregister(self._hip, thread, allocation, part)

    def swap_out(self, thread: HostThread, allocation: Allocation, part: Part) -> Steps:
        yield from reclaim.swap_out(self._hip, thread, allocation, part)

    def collapse(self, thread: HostThread, allocation: Allocation, part: Part) -> Steps:
        yield from reclaim.collapse(self._hip, thread, allocation, part)

    def compact(self, thread: HostThread) -> Steps:
        yield from reclaim.compact(self._hip, thread)

    def child(self) -> Child:
        """What a fork of this process will see of its memory."""
        return Child(self._hip)

    def memcpy(
        self,
        thread: HostThread,
        dst: str,
        src: str,
        *,
        dst_offset: int | None,
        src_offset: int | None,
        size: int | None,
        stream: str | None,
    ) -> Operation:
        return copies.memcpy(
            self._hip,
            thread,
            dst,
            src,
            dst_offset=dst_offset,
            src_offset=src_offset,
            size=size,
            stream=stream,
        )

    def memcpy_batch(self, thread: HostThread, entries: Sequence[Entry], *, stream: str | None) -> Operation:
        return memcpy_batch(self._hip, thread, entries, stream)

    def memset(
        self, thread: HostThread, buffer: str, *, size: int | None, gpu: str, stream: str | None
    ) -> Operation:
        """A fill kernel."""
        _, length = self._hip.allocation(buffer).slice(None, size)
        return self.launch(thread, _FILL, reads=(), writes=(buffer,), gpu=gpu, stream=stream, size=length)

    def prefetch(
        self,
        thread: HostThread,
        buffer: str,
        *,
        to: str,
        offset: int | None,
        size: int | None,
        stream: str | None,
    ) -> Operation:
        return prefetching.prefetch(self._hip, thread, buffer, to=to, offset=offset, size=size, stream=stream)

    def launch(
        self,
        thread: HostThread,
        kernel: str,
        *,
        reads: Sequence[str],
        writes: Sequence[str],
        gpu: str,
        stream: str | None,
        size: int | None = None,
        atomics: Sequence[str] = (),
        executes: Sequence[str] = (),
    ) -> Operation:
        self._launches += 1
        return launch_kernel(
            self._hip,
            thread,
            self._kernels,
            kernel,
            reads=reads,
            writes=writes,
            gpu=gpu,
            stream=stream,
            number=self._launches,
            size=size,
            atomics=atomics,
            executes=executes,
        )

    def record(self, thread: HostThread, event: str, *, stream: str | None) -> None:
        self._hip.record(thread, event, stream)

    def event(self, name: str) -> Operation:
        return self._hip.event(name)

    def wait_in_stream(self, thread: HostThread, event: Operation, *, stream: str) -> None:
        self._hip.wait_in_stream(thread, event, stream)

    def outstanding(self, stream: str | None) -> list[Operation]:
        return self._hip.outstanding(stream)
