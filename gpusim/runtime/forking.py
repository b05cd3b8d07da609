"""fork: a child that shares its parent's pages copy-on-write, and cannot use HIP.

The kernel write-protects all pages that are shared, and tells the MMU notifier of each VMA: GPUs lose their mappings,
and the first write of either side copies. Only pages in RAM are shared; those in VRAM stay the parent's until the
child touches them; if the parent has freed them by then, the child finds empty pages. A child can fork as well. Left
out: exec, and pages on the swap device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpusim.engine.stages import Stages
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind
from gpusim.linux.address_space import RAM, Vma, VmaKind
from gpusim.linux.notifier import Event
from gpusim.linux.sharing import Frames
from gpusim.runtime.allocation import Allocation
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.mappings import locked


class Child:
    """The memory of a forked child: copies of the VMAs of its parent, which may be a child itself."""

    def __init__(self, hip: Hip, parent: Child | None = None) -> None:
        self.hip = hip
        self._parent = parent
        self._copies: dict[Vma, Vma] = {}  # by what they are copies of
        self._allocations: dict[str, Allocation] = {}

    def fork(self, thread: Thread) -> Steps:
        """The system call, in the parent."""
        if self._parent is not None:  # no GPU maps a child's memory
            yield from thread.stages(self._fork(list(self._parent._copies.values())))
            return
        inherited = (VmaKind.ANONYMOUS, VmaKind.FILE)
        vmas = [vma for vma in self.hip.kfd.mm if vma.kind in inherited and not vma.gone]
        yield from locked(self.hip, thread, self._fork(vmas))

    def _fork(self, vmas: list[Vma]) -> Stages:
        node, kfd = self.hip.node, self.hip.kfd
        yield Kind.HOST_ALLOC, node.driver.costs.ioctl
        for vma in vmas:
            if self._parent is None:
                yield from kfd.invalidate(vma, vma.first, vma.last, Event.PROTECTION_PAGE)
            pages = vma.count(vma.first, vma.last, RAM)
            yield Kind.HOST_ALLOC, pages * node.host_spec.pages.hmm_walk  # one entry of the page table copied
            if vma.gone:
                continue
            frames = Frames(vma.pages) if vma.frames is None else vma.frames
            copy = self._copies[vma] = frames.fork(vma)
            if vma.backing is not None:  # the child faults on pages of the file by itself
                copy.backing = vma.backing.again(copy)
        inherited = self.hip.live if self._parent is None else self._parent._allocations.values()
        for own in inherited:
            mine = self._copies.get(own.vma)
            if mine is not None:
                self._allocations[own.name] = Allocation(own.name, own.size, own.allocator, own.gpu, mine)

    def allocation(self, name: str) -> Allocation:
        """A buffer as the child sees it."""
        found = self._allocations.get(name)
        if found is None:
            raise SimulatedFailure(
                "hip_error",
                f"hipErrorNotInitialized: {name!r} of {self.hip.kfd.name} is not memory that a child inherits",
            )
        return found

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
        """A CPU access of the child: what lies in VRAM comes back for all, a write breaks the sharing."""
        yield from self._pull(allocation.vma, first, last, bring_back)
        what = f"{self.hip.kfd.name}: a child's touch of {allocation.name!r}"
        yield from thread.stages(
            self.hip.node.paging.fault_in(allocation.vma, first, last, what, write=write, trap=True)
        )

    def _pull(self, copy: Vma, first: int, last: int, bring_back: Callable[[Vma, int, int], Steps]) -> Steps:
        """Pages first..last that lay in VRAM at the fork come to RAM, as far as they are still there."""
        found = next(vma for vma, own in self._copies.items() if own is copy)
        origin: Vma | None = found
        if self._parent is not None:
            if not found.gone:
                yield from self._parent._pull(found, first, last, bring_back)
        elif self.hip.kfd.mm.find(found.first) is found:
            yield from bring_back(found, first, last)
        else:
            origin = None
        if copy.frames is not None:
            copy.frames.share(origin, copy, first - copy.first, last - copy.first + 1)

    def exit(self) -> None:
        """The child ends: its own pages are freed, and those that nobody else maps any more."""
        for copy in self._copies.values():
            if copy.backing is not None:
                copy.backing.close()
            self.hip.node.host.give_back(copy.leave_ram(copy.first, copy.last), copy.numa)
            copy.vanish()


class ChildCalls:
    """What steps of a child can call: memory, and nothing of HIP."""

    def __init__(self, child: Child, touch: Callable[..., Steps]) -> None:
        self._child = child
        self._touch = touch

    def child(self) -> Child:
        """What a fork of this child will see of its memory."""
        return Child(self._child.hip, self._child)

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
