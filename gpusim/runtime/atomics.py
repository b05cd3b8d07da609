"""Atomics of a CPU thread on a buffer that GPUs may update at the same time."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.engine.stages import Stages, Transfer
from gpusim.errors import InputError, Problem, SimulatedFailure
from gpusim.hardware.coherence import LINE, SharedLines
from gpusim.kinds import Kind
from gpusim.linux.address_space import Vma
from gpusim.runtime.allocation import IN_VRAM, Allocation
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.mappings import check_rights
from gpusim.runtime.memory import bring_back
from gpusim.spec import ATOMIC_BYTES


def lines_of(hip: Hip, vma: Vma, size: int) -> SharedLines | None:
    """The lines of a buffer, the same for all who ask; None where the CPU profile does not know its atomics."""
    costs = hip.node.host_spec.atomics
    if costs is None:
        return None
    found = hip.lines.get(vma)
    if found is None:
        found = hip.lines[vma] = SharedLines(hip.env, costs, size)
    return found


def host_atomics(
    hip: Hip, thread: Thread, allocation: Allocation, first: int, size: int, *, times: int
) -> Steps:
    """Update each element of a part of a buffer, `times` times over."""
    apu = any(device.apu for device in hip.node.devices)
    if allocation.allocator in IN_VRAM and not apu:
        raise SimulatedFailure(
            "hip_error",
            f"atomics of a CPU thread on {allocation.name!r} of {hip.kfd.name}: they do not reach VRAM across a link",
        )
    lines = lines_of(hip, allocation.vma, allocation.size)
    if lines is None:
        raise InputError(
            [
                Problem(
                    "host_touch with access atomic: the CPU profile of this node says nothing of atomics",
                    path="system.node",
                    legal="a CPU profile with `atomics: {owned, between_cores, from_gpu}`",
                )
            ]
        )
    start, end = allocation.pages(first, size)
    wanders = allocation.is_svm and not apu  # a GPU may take the pages away between two passes
    for _ in range(times if wanders else 1):
        if allocation.is_svm:
            check_rights(hip, allocation.vma, start, end, write=True)
            yield from thread.stages(bring_back(hip, thread.chain, allocation.vma, start, end))
            what = f"{hip.kfd.name}: CPU atomics on {allocation.name!r}"
            fault_in = hip.node.paging.fault_in
            yield from thread.stages(fault_in(allocation.vma, start, end, what, write=True, trap=True))
        count = max(1, size // ATOMIC_BYTES) * (1 if wanders else times)
        yield from thread.stages(_update(hip, lines, count))


def _update(hip: Hip, lines: SharedLines, count: int) -> Stages:
    """What an atomic takes on a line of one's own is memory access, all beyond is contention."""
    ended: list[Callable[[], None] | None] = []

    def begin(begun: Callable[[], None]) -> None:
        lines.update(count, LINE // ATOMIC_BYTES, _end)
        begun()

    def _end() -> None:
        if ended and ended[0] is not None:
            ended[0]()
        else:
            ended.append(None)

    def join(done: Callable[[], None]) -> None:
        if ended:
            done()
        else:
            ended.append(done)

    costs = hip.node.host_spec.atomics
    assert costs is not None
    yield Transfer(Kind.CONTENTION, begin)
    pace = hip.node.recorder.pace(
        Kind.HOST_MEMORY
    )  # which is in the costs already, and the stage gets it again
    yield Kind.HOST_MEMORY, count * costs.owned if pace == 1.0 else round(count * costs.owned / pace)
    yield Transfer(Kind.CONTENTION, join)
