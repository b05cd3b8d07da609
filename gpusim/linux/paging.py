"""Page faults of the CPU and of HMM: they give pages memory, read them back from swap, and break sharing.

Whoever needs pages first..last of a VMA works through `fault_in`; what is there already costs nothing here. Left out:
automatic NUMA balancing, the reverse map, memory cgroups, and the compaction that allocating a huge page may need.
"""

from __future__ import annotations

from typing import Final

from gpusim.engine.environment import Environment
from gpusim.engine.server import Server
from gpusim.engine.stages import Stages, Until
from gpusim.errors import InputError, Problem, SimulatedFailure
from gpusim.kinds import Kind
from gpusim.linux.address_space import HUGE_PAGES, NOWHERE, RAM, SWAPPED, HostMemory, Vma
from gpusim.linux.host_spec import HostSpec, SwapSpec
from gpusim.spec import PAGE_BYTES

# plain numbers: to look up a member of an enum takes as long as much of a stage
_ALLOC: Final = int(Kind.PAGE_ALLOC)
_ZERO: Final = int(Kind.PAGE_ZERO)


class Paging:
    """The pages of one node. `host` is its memory."""

    def __init__(
        self, spec: HostSpec, *, env: Environment, host: HostMemory, far_thread: float = 1.0
    ) -> None:
        """`far_thread` is what a thread gets of memory of another NUMA node."""
        self._far_thread = far_thread
        self.spec = spec
        self.host = host
        self._env = env
        self._cost = spec.pages
        self._swap = Server(env, "host.swap")
        self._reading: set[tuple[Vma, int]] = set()
        self.swapped = 0  # pages on the swap device

    def fault_in(self, vma: Vma, first: int, last: int, what: str, *, write: bool, trap: bool) -> Stages:
        """Give all pages of first..last memory that `write` may write to.

        With `trap` a CPU thread comes here by a page fault each time, else it is HMM that walks. `what` names the
        access in the message when host memory does not suffice.
        """
        if vma.gone:
            return
        if vma.backing is not None:
            yield from vma.backing.fault_in(first, last, what, write=write, trap=trap)
        swapped = vma.count(first, last, SWAPPED)
        if swapped:
            yield from self._swap_in(vma, first, last, swapped, what)
        missing = vma.count(first, last, NOWHERE) if vma.backing is None else 0
        if missing:
            yield from self._allocate(vma, first, last, missing, what, trap=trap)
        if write and vma.shared is not None:
            yield from self._break_sharing(vma, first, last, what, trap=trap)

    def _allocate(self, vma: Vma, first: int, last: int, missing: int, what: str, *, trap: bool) -> Stages:
        self.host.take(missing, what, vma.numa)
        cost, huge = self._cost, self.spec.huge
        trapped = cost.fault if trap else 0
        blocks = 0
        if vma.wants_huge and huge is not None:
            blocks = self._huge_blocks(vma, first, last)
        start, end = first - vma.first, last - vma.first + 1
        vma.where[start:end] = vma.where[start:end].replace(bytes([NOWHERE]), bytes([RAM]))
        base = missing - blocks * HUGE_PAGES
        alloc, zero = base * (cost.alloc + trapped), base * cost.zero
        if huge is not None:
            alloc += blocks * (huge.alloc + trapped)
            zero += blocks * huge.zero
        zero = self.by_thread(vma, zero)
        yield _ALLOC, alloc, _ZERO, zero

    def _huge_blocks(self, vma: Vma, first: int, last: int) -> int:
        """Whole blocks that nobody has touched become huge pages; how many."""
        made = 0
        base = vma.first // HUGE_PAGES * HUGE_PAGES - vma.first
        for block in vma.blocks(first, last):
            start = base + block * HUGE_PAGES
            if vma.where.count(NOWHERE, start, start + HUGE_PAGES) == HUGE_PAGES:
                vma.make_huge(block)
                made += 1
        return made

    def _break_sharing(self, vma: Vma, first: int, last: int, what: str, *, trap: bool) -> Stages:
        """Copy-on-write: each page that others map too becomes a copy of its own; the last one keeps the page."""
        frames, shared = vma.frames, vma.shared
        assert frames is not None
        assert shared is not None
        start, end = first - vma.first, last - vma.first + 1
        if shared.count(0, start, end) == end - start:
            return
        copied, kept = frames.counts(vma, start, end)
        self.host.take(copied, what, vma.numa)
        frames.leave(vma, start, end)
        cost = self._cost
        yield _ALLOC, copied * cost.alloc + (copied + kept) * (cost.fault if trap else 0)
        yield Kind.PAGE_COPY, self.by_thread(vma, self.copy_ps(copied))

    def by_thread(self, vma: Vma, duration_ps: int) -> int:
        """What takes a thread so long in memory that is near takes it longer in pages of a VMA that are far."""
        return round(duration_ps / self._far_thread) if vma.numa > 0 else duration_ps

    def copy_ps(self, pages: int) -> int:
        """One thread copies pages."""
        return round(pages * PAGE_BYTES * 1e12 / self.spec.copy_bandwidth)

    def hmm_walk_ps(self, vma: Vma, first: int, last: int) -> int:
        """hmm_range_fault over pages that are there."""
        count = last - first + 1
        huge = self.spec.huge
        if vma.huge is None or huge is None:
            return count * self._cost.hmm_walk
        blocks = vma.huge_in(first, last)
        return (count - blocks * HUGE_PAGES) * self._cost.hmm_walk + blocks * huge.hmm_walk

    # -- swap ------------------------------------------------------------------------------------------------------

    def swap_device(self, who: str) -> SwapSpec:
        """Raises InputError if the node has none."""
        if self.spec.swap is None:
            raise InputError(
                [
                    Problem(
                        f"{who}: this node has no swap device",
                        path="system.node",
                        legal="a CPU profile with `swap: {size, write, read, latency, cluster}`",
                    )
                ]
            )
        return self.spec.swap

    def swap_out(self, vma: Vma, first: int, last: int) -> Stages:
        """Write the RAM pages of first..last to the swap device and free them. They are unmapped everywhere already."""
        device = self.swap_device(f"swap_out of {vma.name}")
        pages = vma.count(first, last, RAM)
        if not pages or vma.gone:
            return
        if (self.swapped + pages) * PAGE_BYTES > device.size:
            raise SimulatedFailure("host_out_of_memory", f"swap_out of {vma.name}: the swap device is full")
        _, end = self._swap.reserve(round(pages * PAGE_BYTES * 1e12 / device.write))
        yield Until(Kind.SWAP_IO, end)
        start, stop = first - vma.first, last - vma.first + 1
        pages = vma.count(first, last, RAM)  # some may have come or gone while the drive was at work
        freed = vma.leave_ram(first, last)
        vma.split_huge(first, last)
        vma.where[start:stop] = vma.where[start:stop].replace(bytes([RAM]), bytes([SWAPPED]))
        self.host.give_back(freed, vma.numa)
        self.swapped += pages

    def swap_in_ps(self, pages: int) -> int:
        """Reading pages on the fault path: each cluster is waited for."""
        device = self.swap_device("swap_in")
        reads = -(-pages * PAGE_BYTES // device.cluster)
        return reads * device.latency + round(pages * PAGE_BYTES * 1e12 / device.read)

    def _swap_in(self, vma: Vma, first: int, last: int, pages: int, what: str) -> Stages:
        self.host.take(pages, what, vma.numa)
        self.forget_swapped(pages)
        start, end = first - vma.first, last - vma.first + 1
        vma.where[start:end] = vma.where[start:end].replace(bytes([SWAPPED]), bytes([RAM]))
        reached = yield _ALLOC, pages * (self._cost.fault + self._cost.alloc)
        _, done = self._swap.reserve(self.swap_in_ps(pages), max(reached, self._env.now))
        yield Until(Kind.SWAP_IO, done)

    def free_ps(self, vma: Vma, first: int, last: int) -> int:
        """Unmap pages and free those that are the process's own."""
        used = last - first + 1 - vma.count(first, last, NOWHERE)
        if vma.backing is None:
            return used * self._cost.free
        of_file = vma.of_file(first, last)
        return (used - of_file) * self._cost.free + of_file * vma.backing.costs.map

    def would_sleep(self, vma: Vma, first: int, last: int) -> bool:
        """Has any page of first..last to be read from a drive?"""
        if vma.backing is not None and vma.backing.would_read(first, last):
            return True
        return bool(vma.count(first, last, SWAPPED))

    def start_reading(self, vma: Vma, first: int, last: int, what: str) -> None:
        """Read swapped pages, or those of a file, without waiting for it; they are in RAM when it has ended."""
        if vma.backing is not None:
            vma.backing.start_reading(first, last)
            return
        if (vma, first) in self._reading:
            return
        pages = vma.count(first, last, SWAPPED)
        self.host.take(pages, what, vma.numa)
        self._reading.add((vma, first))
        _, end = self._swap.reserve(self.swap_in_ps(pages))

        def ended() -> None:
            self._reading.discard((vma, first))
            here = vma.count(first, last, SWAPPED)
            start, stop = first - vma.first, last - vma.first + 1
            vma.where[start:stop] = vma.where[start:stop].replace(bytes([SWAPPED]), bytes([RAM]))
            self.host.give_back(pages - here, vma.numa)  # what has gone meanwhile
            self.forget_swapped(here)

        self._env.call_at(end, ended)

    def forget_swapped(self, pages: int) -> None:
        """Pages on the swap device are no longer needed there."""
        self.swapped -= pages
