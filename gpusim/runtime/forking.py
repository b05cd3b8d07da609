"""fork: a child that shares its parent's pages copy-on-write, and cannot use HIP.

The kernel write-protects all pages that are shared, and tells the MMU notifier of each VMA: GPUs lose their mappings,
and the first write of either side copies. Only pages in RAM are shared; those in VRAM stay the parent's until the
child touches them. Left out: exec, pages on the swap device, several children at once, and children that outlive a free
of the parent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusim.engine.stages import Stages
from gpusim.errors import NotSupportedYet, Problem, SimulatedFailure
from gpusim.kinds import Kind
from gpusim.linux.address_space import FILE, FILE_WRITE, NOWHERE, RAM, SWAPPED, VRAM, Vma, VmaKind
from gpusim.linux.notifier import Event
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.mappings import locked


class Child:
    """The memory of a forked child: copies of the parent's VMAs, with what is shared marked in both."""

    def __init__(self, hip: Hip) -> None:
        self.hip = hip
        self._copies: dict[Vma, Vma] = {}
        self._marks: dict[Vma, bytearray] = {}
        self._originals: dict[Vma, bytearray] = {}  # pages that parent and child began with together

    def fork(self, thread: Thread) -> Steps:
        """The system call, in the parent. Raises NotSupportedYet while another child lives."""
        if self.hip.kfd.has_child:
            raise NotSupportedYet(
                [
                    Problem(
                        "fork while another child of the process lives is not supported yet",
                        path=f"processes.{self.hip.kfd.name}",
                        legal="fork with wait: true",
                    )
                ]
            )
        self.hip.kfd.has_child = True
        inherited = (VmaKind.ANONYMOUS, VmaKind.FILE)
        vmas = [vma for vma in self.hip.kfd.mm if vma.kind in inherited and not vma.gone]
        yield from locked(self.hip, thread, self._fork(vmas))

    def _fork(self, vmas: list[Vma]) -> Stages:
        node, kfd = self.hip.node, self.hip.kfd
        yield Kind.HOST_ALLOC, node.driver.costs.ioctl
        for vma in vmas:
            pages = vma.count(vma.first, vma.last, RAM)
            yield from kfd.invalidate(vma, vma.first, vma.last, Event.PROTECTION_PAGE)
            yield Kind.HOST_ALLOC, pages * node.host_spec.pages.hmm_walk  # one entry of the page table copied
            copy = Vma(vma.name, vma.first, vma.pages, vma.kind, in_place=vma.in_place)
            copy.where = vma.where.translate(_INHERITED)
            if vma.backing is not None:  # the child faults on pages of the file by itself
                copy.backing = vma.backing.again(copy)
            shared = vma.where.translate(_is_ram())
            vma.shared, copy.shared = shared, bytearray(shared)
            self._marks[vma] = shared
            self._originals[vma] = bytearray(shared)
            self._copies[vma] = copy

    def allocation(self, name: str) -> Allocation:
        """A buffer as the child sees it."""
        own = self.hip.allocation(name)
        copy = self._copies.get(own.vma)
        if copy is None:
            raise SimulatedFailure(
                "hip_error",
                f"hipErrorNotInitialized: {name!r} of {self.hip.kfd.name} is not memory that a child inherits",
            )
        return Allocation(own.name, own.size, own.allocator, own.gpu, copy)

    def touch(
        self,
        thread: Thread,
        allocation: Allocation,
        first: int,
        last: int,
        *,
        write: bool,
        bring_back: Callable[[Vma, int, int], Steps],
    ) -> Steps:
        """A CPU access of the child: what lies in VRAM comes back for both, a write breaks the sharing."""
        copy = allocation.vma
        parent = next(vma for vma, child in self._copies.items() if child is copy)
        start, end = first - copy.first, last - copy.first + 1
        if not parent.gone:
            yield from bring_back(parent, first, last)
            self._share_what_came_back(parent, copy, start, end)
        what = f"{self.hip.kfd.name}: a child's touch of {allocation.name!r}"
        yield from thread.stages(
            self.hip.node.paging.fault_in(copy, first, last, what, write=write, trap=True)
        )

    def _share_what_came_back(self, parent: Vma, copy: Vma, start: int, end: int) -> None:
        """Pages that lay in VRAM at the fork, and now are in RAM, are shared as well."""
        if parent.shared is None or copy.shared is None:
            return
        here, there = _bytes(parent.where, start, end), _bytes(copy.where, start, end)
        fresh = (here == RAM) & (there >= VRAM) & (there < FILE)
        if fresh.any():
            for page in (start + np.flatnonzero(fresh)).tolist():
                copy.where[page] = RAM
                parent.shared[page] = copy.shared[page] = self._originals[parent][page] = 1

    def exit(self) -> None:
        """The child ends: its own pages, and originals that only it had left, are freed."""
        host = self.hip.node.host
        self.hip.kfd.has_child = False
        for vma, copy in self._copies.items():
            assert copy.shared is not None
            if copy.backing is not None:
                copy.backing.close()
            shared = _bytes(copy.shared) == 1
            host.give_back(int(((_bytes(copy.where) == RAM) & ~shared).sum()))
            if not vma.gone and vma.shared is self._marks[vma]:
                originals = _bytes(self._originals[vma]) == 1
                host.give_back(int((originals & (_bytes(vma.shared) == 0)).sum()))
                vma.shared = None


_INHERITED = bytes(NOWHERE if place in (SWAPPED, FILE, FILE_WRITE) else place for place in range(256))


def _bytes(values: bytearray | bytes, start: int = 0, end: int | None = None) -> NDArray[np.uint8]:
    """A copy as an array."""
    return np.frombuffer(bytes(values[start:end]), dtype=np.uint8)


def _is_ram() -> bytes:
    table = bytearray(256)
    table[RAM] = 1
    return bytes(table)


class ChildCalls:
    """What steps of a child can call: memory, and nothing of HIP."""

    def __init__(self, child: Child, touch: Callable[..., Steps]) -> None:
        self._child = child
        self._touch = touch

    def allocation(self, name: str) -> Allocation:
        return self._child.allocation(name)

    def host_touch(self, thread: Any, allocation: Allocation, first: int, size: int, *, write: bool) -> Steps:
        """A CPU access of the child."""
        yield from self._touch(self._child, thread, allocation, first, size, write=write)

    def host_atomics(
        self, thread: Any, allocation: Allocation, first: int, size: int, *, times: int
    ) -> Steps:
        """The child's memory is its own: no GPU updates it."""
        for _ in range(times):
            yield from self.host_touch(thread, allocation, first, size, write=True)

    def outstanding(self, stream: str | None) -> list[Any]:
        return []

    def __getattr__(self, name: str) -> Any:
        raise SimulatedFailure(
            "hip_error", f"hipErrorNotInitialized: HIP cannot be used in a forked child (step {name})"
        )
