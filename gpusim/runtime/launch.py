"""Launching a kernel: from the call to its first wavefront, and its buffers as the GPU sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gpusim.driver.attributes import SvmFlag
from gpusim.engine.record import Chain, Snapshot
from gpusim.errors import InputError, Problem, SimulatedFailure
from gpusim.hardware.access import AccessStream, Client
from gpusim.hardware.coherence import SharedLines
from gpusim.hardware.dispatch import Dispatch
from gpusim.hardware.engine_faults import EngineFault
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import INVALID, PEER, Region
from gpusim.kinds import Kind
from gpusim.runtime.allocation import IN_VRAM, Allocation
from gpusim.runtime.atomics import lines_of
from gpusim.runtime.hip import Hip, Thread
from gpusim.runtime.operation import Operation
from gpusim.runtime.watched import Watched


@dataclass(frozen=True, slots=True)
class Argument:
    """A buffer argument of a launch: its page tables on the GPU and what the kernel does to it."""

    region: Region
    size: int
    read: bool
    write: bool
    atomic: bool = False  # reads and writes at once
    execute: bool = False  # holds the kernel's code
    coherent: bool = False  # memory that the CPU may share: its atomics go further than L2


@dataclass(frozen=True, slots=True)
class Use:
    """What a launch does with a buffer."""

    allocation: Allocation
    read: bool = False
    write: bool = False
    atomic: bool = False
    execute: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a kernel does on a GPU: its accesses, wavefronts in flight, and what one of them can move."""

    stream: AccessStream
    slots: int
    cap_bytes_per_s: float
    link_cap_bytes_per_s: float
    hbm_share: float  # of the bytes moved: the rest comes from a cache


class Program(Protocol):
    """Kernels by name; the workload provides it."""

    grouped: bool

    def loads(self, kernel: str, *, xnack: bool) -> bool:
        """Does the code object load in this XNACK mode?"""
        ...

    def duration_ps(self, kernel: str) -> int | None:
        """Its contention-free time, if that is given."""
        ...

    def asked_bytes(self, kernel: str, walked: int, lanes: int) -> int:
        """Bytes that its lanes ask for; `walked` is what one walk through its buffers reads and writes."""
        ...

    def plan(
        self, kernel: str, arguments: Sequence[Argument], gpu: Gpu, *, xnack: bool, number: int
    ) -> Plan: ...


def launch(
    hip: Hip,
    thread: Thread,
    program: Program,
    kernel: str,
    *,
    reads: Sequence[str],
    writes: Sequence[str],
    gpu: str,
    stream: str | None,
    number: int,
    size: int | None = None,
    atomics: Sequence[str] = (),
    executes: Sequence[str] = (),
) -> Operation:
    """Submit a kernel launch; `number` tells launches apart for what they draw.

    `size` limits the part of each buffer that the kernel works on. `executes` names buffers with code.
    """
    device = hip.device(gpu).gpu
    if not program.loads(kernel, xnack=hip.kfd.xnack):
        mode = "on" if hip.kfd.xnack else "off"
        raise SimulatedFailure(
            "hip_error",
            f"hipErrorNoBinaryForGpu: kernel {kernel!r} of {hip.kfd.name} is not built for XNACK {mode}; "
            "set HSA_XNACK to match, or build it for `any`",
        )
    names = list(dict.fromkeys([*reads, *writes, *atomics]))
    buffers = [
        Use(
            hip.allocation(name),
            read=name in reads or name in atomics,
            write=name in writes or name in atomics,
            atomic=name in atomics,
        )
        for name in names
    ]
    code = [Use(hip.allocation(name), execute=True) for name in executes]
    if not buffers and program.duration_ps(kernel) is None:
        raise InputError(
            [
                Problem(
                    f"kernel {kernel!r} is launched without buffers, and has no duration",
                    path=f"processes.{hip.kfd.name}",
                    legal="`reads` or `writes` in the launch, or `duration` in the kernel",
                )
            ]
        )
    for allocation in [use.allocation for use in (*buffers, *code)]:
        if allocation.allocator in IN_VRAM and allocation.gpu != device.index:
            _enable_peer(hip, allocation, device)
    facts: dict[str, Any] = {"gpu": device.index}
    operation = Operation(
        _begin(hip, program, kernel, [*buffers, *code] if buffers else [], device, number, size, facts)
    )
    operation.facts = facts
    operation.where = (device.index, device.index)
    operation.completion_ps = device.spec.compute.completion
    moved = sum((size or use.allocation.size) * (use.read + use.write) for use in buffers)
    operation.size = program.asked_bytes(kernel, moved, device.spec.compute.lanes)
    return hip.submit(thread, operation, stream)


def _enable_peer(hip: Hip, allocation: Allocation, gpu: Gpu) -> None:
    """hipDeviceEnablePeerAccess, which a program calls once: another GPU's memory is mapped where it is."""
    region = hip.kfd.region(allocation.vma, gpu.index)
    if region.valid[0] == INVALID:
        region.map(0, region.pages - 1, PEER + allocation.gpu, hip.env.now)


def _begin(
    hip: Hip,
    program: Program,
    kernel: str,
    buffers: Sequence[Use],
    gpu: Gpu,
    number: int,
    size: int | None,
    facts: dict[str, Any],
) -> Callable[[Snapshot, Callable[[Snapshot], None]], None]:
    env, kfd, recorder = hip.env, hip.kfd, hip.node.recorder

    def begin(path: Snapshot, done: Callable[[Snapshot], None]) -> None:
        chain = Chain(recorder, recorder.actor(f"{kfd.name}.{kernel}") if recorder.spans else 0)
        chain.follow(path, env.now)

        def computed() -> None:
            chain.spend(Kind.COMPUTE, env.now)
            done(chain.snapshot())

        shared: list[SharedLines] = []
        running: list[Dispatch] = []

        def ended(path: Snapshot) -> None:
            for lines in shared:
                lines.end(running[0])
            done(path)

        def start() -> None:
            chain.spend(Kind.LAUNCH, env.now)
            if not buffers:  # nothing to wait for: it computes for as long as it says
                length = chain.paced(Kind.COMPUTE, program.duration_ps(kernel) or 0)
                env.call_at(env.now + length, computed)
                return
            for use in buffers:
                if use.execute:
                    _remark_code(hip, use.allocation)
                if (use.write or use.atomic) and kfd.may_be_read_only(use.allocation.vma):
                    kfd.region(use.allocation.vma, gpu.index).track_writes()
            arguments = [
                Argument(
                    kfd.region(use.allocation.vma, gpu.index),
                    use.allocation.size if use.execute else size or use.allocation.size,
                    use.read,
                    use.write,
                    atomic=use.atomic,
                    execute=use.execute,
                    coherent=_fine_grained(hip, use.allocation),
                )
                for use in buffers
            ]
            plan = program.plan(kernel, arguments, gpu, xnack=kfd.xnack, number=number)
            dispatch = Dispatch(
                gpu,
                kfd.vms[gpu.index],
                Watched(plan.stream, kfd, env) if hip.node.follows_use else plan.stream,
                name=f"{kfd.name}.{kernel}[{number}]",
                slots=plan.slots,
                cap_bytes_per_s=plan.cap_bytes_per_s,
                link_cap_bytes_per_s=plan.link_cap_bytes_per_s,
                hbm_share=plan.hbm_share,
                grouped=program.grouped,
                done=ended,
            )
            facts.update(
                _facts(plan, dispatch), coherent=any(one.atomic and one.coherent for one in arguments)
            )
            running.append(dispatch)
            shared.extend(_shared_lines(hip, buffers))
            for lines in shared:
                lines.begin(dispatch)
            _read_descriptor(hip, gpu, chain, buffers, lambda: gpu.start(dispatch, chain.snapshot()))

        delay = chain.paced(Kind.LAUNCH, gpu.spec.compute.launch)
        env.call_at(env.now + delay, lambda: None if kfd.dead else start())

    return begin


def _fine_grained(hip: Hip, allocation: Allocation) -> bool:
    """May others see the memory while a kernel works on it, so that its atomics go further than L2?

    hipMalloc memory is coarse-grained; SVM ranges are where COHERENT has been cleared, but for EXT_COHERENT.
    """
    if allocation.allocator in IN_VRAM:
        return False
    vma = allocation.vma
    ranges = hip.kfd.ranges.within(vma.first, vma.last)
    return not ranges or any(
        svm.attributes.has(SvmFlag.COHERENT) or svm.attributes.has(SvmFlag.EXT_COHERENT) for svm in ranges
    )


def _remark_code(hip: Hip, allocation: Allocation) -> None:
    """Say so where code lies in ranges whose page-table entries have no execute bit."""
    vma = allocation.vma
    if allocation.is_svm and not all(
        svm.attributes.has(SvmFlag.GPU_EXEC) for svm in hip.kfd.ranges.within(vma.first, vma.last)
    ):
        hip.kfd.remark(
            f"Code in {allocation.name} runs here without GPU_EXEC. The driver maps such a range without the execute "
            "bit, so that the GPU could not fetch from it: set the flag with svm_attributes."
        )


def _read_descriptor(
    hip: Hip, gpu: Gpu, chain: Chain, buffers: Sequence[Use], then: Callable[[], None]
) -> None:
    """The command processor reads the kernel's descriptor, which lies before its code: it may have to fault for it."""
    for use in buffers:
        if use.execute and use.allocation.is_svm and hip.kfd.xnack:
            region = hip.kfd.region(use.allocation.vma, gpu.index)
            if region.valid[0] == INVALID:
                EngineFault(
                    gpu, region, 0, write=False, client=Client.COMMAND_PROCESSOR, chain=chain, done=then
                ).send()
                return
    then()


def _shared_lines(hip: Hip, buffers: Sequence[Use]) -> list[SharedLines]:
    """Lines of buffers that the kernel's atomics and CPU threads may update at the same time."""
    found = []
    apu = any(device.apu for device in hip.node.devices)
    for use in buffers:
        if use.atomic and (apu or use.allocation.allocator not in IN_VRAM):
            lines = lines_of(hip, use.allocation.vma, use.allocation.size)
            if lines is not None:
                found.append(lines)
    return found


def _facts(plan: Plan, dispatch: Dispatch) -> dict[str, Any]:
    """What decides how long the kernel takes on mapped memory; bytes and picoseconds, `_ps` of one step."""
    stream, operands = plan.stream, plan.stream.operands
    steps = stream.steps * stream.passes
    return {
        "steps": steps,
        "slots": dispatch.slots,
        "cap": plan.cap_bytes_per_s,
        "bytes": dispatch.step_bytes * steps,
        "read_bytes": sum(operand.read_bytes for operand in operands) * steps,
        "write_bytes": sum(operand.write_bytes for operand in operands) * steps,
        "hbm_bytes": sum(operand.hbm_bytes for operand in operands) * plan.hbm_share * steps,
        "translation_ps": stream.translation_ps or 0,
        "table_reads": stream.table_reads,
        "walked_ps": stream.table_reads / dispatch.gpu.translation.reads_per_ps,
        "serial_ps": stream.serial_ps,
    }
