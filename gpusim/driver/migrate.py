"""Moving pages between RAM and VRAM, as stages that pay each cost where its mechanism runs (`kfd_svm.md` 3.1-3.3)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator
from enum import StrEnum
from struct import Struct
from typing import TYPE_CHECKING, Final

from gpusim.driver.driver_spec import DriverSpec
from gpusim.driver.events import EventLog
from gpusim.driver.gart import GartWindows
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.svm_range import CPU, SvmRange
from gpusim.driver.switches import PeerMigration
from gpusim.driver.tries import empty
from gpusim.driver.vram import SvmBo, Vram
from gpusim.engine.flows import Flow
from gpusim.engine.stages import Do, Stage, Stages, Transfer, Until
from gpusim.hardware.flights import Flights
from gpusim.hardware.gpu import Gpu
from gpusim.kinds import Kind
from gpusim.linux.address_space import RAM, SWAPPED, VRAM, HostMemory, Vma
from gpusim.linux.host_spec import PageCosts
from gpusim.linux.notifier import Event
from gpusim.spec import PAGE_BYTES

if TYPE_CHECKING:
    from gpusim.driver.eviction import Eviction


_ROW: Final = Struct("5q")


# plain numbers: to look up a member of an enum takes as long as much of a stage
_FIXED: Final = int(Kind.DRIVER_FIXED)
_DEVICE_PAGE: Final = int(Kind.DEVICE_PAGE)
_BO_CLEAR: Final = int(Kind.BO_CLEAR)
_LOCK_WAIT: Final = int(Kind.LOCK_WAIT)
_SDMA_COPY: Final = int(Kind.SDMA_COPY)
_DMA_MAP: Final = int(Kind.DMA_MAP)
_PAGE_ALLOC: Final = int(Kind.PAGE_ALLOC)


class Trigger(StrEnum):
    """Why pages move: the words of the KFD events."""

    PREFETCH = "PREFETCH"
    PAGEFAULT_GPU = "PAGEFAULT_GPU"
    PAGEFAULT_CPU = "PAGEFAULT_CPU"
    TTM_EVICTION = "TTM_EVICTION"


class MigrationLog:
    """The `migrations` table: one row per migrate call that moved data or placed pages."""

    def __init__(self) -> None:
        self.process: list[str] = []
        self.origin: list[int] = []
        self.target: list[int] = []
        self.trigger: list[Trigger] = []
        self.numbers = array("q")  # start_ps, end_ps, page, pages, bytes of each row

    def add(
        self,
        process: str,
        origin: int,
        target: int,
        trigger: Trigger,
        numbers: tuple[int, int, int, int, int],
    ) -> None:
        self.process.append(process)
        self.origin.append(origin)
        self.target.append(target)
        self.trigger.append(trigger)
        self.numbers.frombytes(_ROW.pack(*numbers))


class Migration:
    """The migrate calls of one GPU's pages."""

    def __init__(
        self,
        *,
        gpu: Gpu,
        vram: Vram,
        host: HostMemory,
        pages: PageCosts,
        driver: DriverSpec,
        log: MigrationLog,
        events: EventLog,
    ) -> None:
        self._events = events
        self._gpu = gpu
        self._vram = vram
        self._host = host
        # plain numbers: each fault asks for all of them
        self._migrate_ps, self._bo_create_ps = driver.costs.migrate, driver.costs.bo_create
        self._setup_ps, self._finish_ps = pages.migrate_setup, pages.migrate_finish
        self._device_page_ps, self._dma_map_ps, self._alloc_ps = pages.device_page, pages.dma_map, pages.alloc
        self._clear_chunk, self._gart_window = driver.svm.clear_chunk, driver.svm.gart_window
        self._job_ps, self._clear_rate = gpu.spec.sdma.job, gpu.spec.sdma.clear_rate
        self._cleared: dict[int, int] = {}  # what clearing so many bytes takes, job included
        self._index = gpu.index
        self._peers = driver.switches.peer_migration
        self._log = log
        self.windows = GartWindows(gpu.env, f"{gpu.name}.gart")

    def connect(self, eviction: Eviction) -> None:
        """Wire it to what makes room in its VRAM."""
        self._eviction = eviction

    def to_vram(
        self, process: KfdProcess, vma: Vma, svm: SvmRange, first: int, last: int, trigger: Trigger
    ) -> Generator[Stage, int, bool]:
        """Move pages first..last of a range into this GPU's VRAM; pages that were never touched get cleared ones.

        False if KFD's limit does not admit the range beside what hipMalloc holds: its pages stay where they are.
        """
        count = last - first + 1
        present = vma.count(first, last, VRAM + self._index)
        if present == count or process.dead or not vma.movable(first, last):
            return True  # nothing to collect
        if not self._vram.reserve(svm.pages):
            return False
        try:
            yield from self._to_vram(process, vma, svm, first, last, trigger, present)
        finally:
            self._vram.release(svm.pages)
        return True

    def _to_vram(
        self,
        process: KfdProcess,
        vma: Vma,
        svm: SvmRange,
        first: int,
        last: int,
        trigger: Trigger,
        present: int,
    ) -> Stages:
        """`present` of the pages are there."""
        gpu, vram = self._gpu, self._vram
        place = VRAM + self._index
        count = last - first + 1
        creates = svm.bo_on != gpu.index
        if creates:
            if vram.free < svm.pages:
                yield from self._eviction.make_room(svm.pages)
            if vma.gone:
                return  # its process died while this waited
            svm.bo = bo = SvmBo(process, svm, gpu.env._now)
            svm.bo_on = self._index
            vram.add(bo)
        start = yield _FIXED, self._migrate_ps + (self._bo_create_ps if creates else 0)
        if creates:
            yield from self._clear(svm, start)
        parts = vma.movable(first, last)  # what is pinned is not collected
        populated = _count(vma, parts, RAM)
        if vma.backing is None:
            found = 0
            for begin, stop in parts:
                found += stop - begin + 1
            moving = found - present - vma.count(first, last, SWAPPED)  # HMM reads those back when it maps
        else:  # what a file has and nobody has touched is not collected
            moving = populated
        # collected, copied, and refused then: only anonymous memory may move
        kept = 0 if vma.backing is None else sum(vma.of_file(begin, stop) for begin, stop in parts)
        self._announce(process, svm, (start, first, count), (CPU, gpu.index), trigger)
        if populated or kept or svm.mapped:
            collected, copied = moving + kept, populated + kept
            yield _DEVICE_PAGE, collected * self._setup_ps
            if svm.mapped:  # one flag a range: the flush comes even if this granule was not mapped
                yield from process.invalidate(vma, first, last, Event.MIGRATE)
            yield _DEVICE_PAGE, collected * self._device_page_ps
            yield from self._copy(
                copied * PAGE_BYTES, copied * self._dma_map_ps, gpu.host_ways[vma.memory_node].h2d
            )
            end = yield _DEVICE_PAGE, collected * self._finish_ps
        else:
            end = yield (
                _DEVICE_PAGE,
                moving * (self._setup_ps + self._device_page_ps + self._finish_ps),
            )
        if vma.gone:
            return
        parts = vma.movable(first, last)
        if vma.backing is not None:
            moving = _count(vma, parts, RAM)  # a CPU thread may have made copies of more
            if not moving:
                if not svm.vram_pages:
                    self.drop_bo(svm)
                self._announce_end(process, (end, first, count), (CPU, gpu.index), trigger)
                return
        for begin, stop in parts:  # a CPU thread may have touched more meanwhile
            self._host.give_back(vma.leave_ram(begin, stop), vma.numa)
            vma.gather(begin, stop, place)
        svm.vram_pages += vma.count(first, last, place) - present  # some may have gone to swap meanwhile
        self._log.add(
            process.name, CPU, gpu.index, trigger, (start, end, first, moving, populated * PAGE_BYTES)
        )
        self._announce_end(process, (end, first, count), (CPU, gpu.index), trigger)
        self._events.count(process.number, "page_in", moving)

    def take_over(
        self, process: KfdProcess, vma: Vma, svm: SvmRange, old: Migration, trigger: Trigger
    ) -> Generator[Stage, int, bool]:
        """All pages of a range leave the VRAM of another GPU: to RAM, or here if the driver knew peer copies.

        False if some are still there after three tries (-EDEADLK).
        """
        if self._peers is PeerMigration.THROUGH_RAM or not self._vram.reserve(svm.pages):
            if (yield from empty(old, process, vma, svm, trigger, self._events)):
                return True
            self._events.count(process.number, "migrate_deadlocks")
            process.remark(
                f"A move of {vma.name} from gpu[{old._gpu.index}] to gpu[{self._gpu.index}] was given up after "
                "three tries (-EDEADLK): a CPU thread had faulted on a page of it and waited for the driver's lock."
            )
            return False
        try:
            yield from self._peer_copy(process, vma, svm, old, trigger)
        finally:
            self._vram.release(svm.pages)
        return True

    def _peer_copy(
        self, process: KfdProcess, vma: Vma, svm: SvmRange, old: Migration, trigger: Trigger
    ) -> Stages:
        gpu, source = self._gpu, old._gpu
        yield from self._eviction.make_room(svm.pages)
        if vma.gone:
            return
        bo = SvmBo(process, svm, gpu.env.now)
        self._vram.add(bo)
        start = yield _FIXED, self._migrate_ps + self._bo_create_ps
        yield from self._clear(svm, start)
        there = VRAM + source.index
        ways = (source.index, gpu.index)
        moving = vma.count(svm.first, svm.last, there)
        self._announce(process, svm, (start, svm.first, svm.pages), ways, trigger)
        yield _DEVICE_PAGE, moving * self._setup_ps
        if svm.mapped:
            yield from process.invalidate(vma, svm.first, svm.last, Event.MIGRATE)
        yield _DEVICE_PAGE, moving * self._device_page_ps
        yield from self._copy(moving * PAGE_BYTES, moving * self._dma_map_ps, source.copies_to[gpu.index][0])
        end = yield _DEVICE_PAGE, moving * self._finish_ps
        yield Do(_nothing)
        if process.dead:
            self._vram.remove(bo)
            return
        first, last = svm.first - vma.first, svm.last - vma.first + 1
        vma.where[first:last] = vma.where[first:last].replace(bytes([there]), bytes([VRAM + gpu.index]))
        old.drop_bo(svm)
        svm.bo, svm.bo_on, svm.mapped = bo, gpu.index, svm.mapped and not process.xnack
        numbers = (start, end, svm.first, moving, moving * PAGE_BYTES)
        self._log.add(process.name, *ways, trigger, numbers)
        self._announce_end(process, (end, svm.first, svm.pages), ways, trigger)

    def _clear(self, svm: SvmRange, reached: int) -> Stages:
        """SDMA clears a new buffer object, in chunks, as one turn at the windows."""
        gpu = self._gpu
        windows = self.windows
        behind = windows.taken  # by a copy, whose end is not known
        if behind:
            reached = yield Transfer(_LOCK_WAIT, windows.take)
        elif windows.free_ps > reached:
            reached = yield Until(_LOCK_WAIT, windows.free_ps)
        left = svm.pages * PAGE_BYTES
        while left > 0:
            size = min(left, self._clear_chunk)
            left -= size
            service = self._clear_ps(size)
            start, end = gpu.sdma.reserve(service, max(reached, gpu.env._now))
            gpu.engines.job(gpu.env._now, start, end, size)
            if not behind:
                windows.book(start, end)
            reached = yield Until(_BO_CLEAR, end, alone_ps=service)
        if behind:
            yield Do(windows.release)

    def _clear_ps(self, size: int) -> int:
        """What it takes an SDMA engine to clear so many bytes."""
        known = self._cleared.get(size)
        if known is None:
            alone = self._job_ps + round(size * 1e12 / self._clear_rate)
            known = self._cleared[size] = self._gpu.recorder.paced(_BO_CLEAR, alone)
        return known

    def _copy(self, size: int, mapping_ps: int, path: tuple[tuple[str, float], ...]) -> Stages:
        """Copy through GART windows while the CPU maps the next pages: the longer of the two sets the pace."""
        if size == 0:
            return
        gpu, windows = self._gpu, self.windows
        # two jobs a window: write the GART entries, then copy
        jobs = 2 * self._job_ps * -(-size // self._gart_window)
        spent = yield _SDMA_COPY, jobs
        yield Transfer(_LOCK_WAIT, windows.take)
        again = windows.again_ps(jobs, spent)
        if again:
            yield _SDMA_COPY, again
        yield sdma_transfer(gpu, path, size, (_DMA_MAP, mapping_ps), then=windows.release)

    def to_ram(
        self, process: KfdProcess, vma: Vma, svm: SvmRange, first: int, last: int, trigger: Trigger
    ) -> Stages:
        """Move the pages of first..last that lie in this GPU's VRAM to host memory, unmapping them everywhere.

        Those that a CPU thread holds stay. If it is all of them, the call finds nothing to copy.
        """
        gpu = self._gpu
        place = VRAM + gpu.index
        moving = vma.count(first, last, place)
        if not moving:
            return
        held = vma.held_at(first, last, place) if vma.held else []
        moving -= len(held)
        start = yield _FIXED, self._migrate_ps
        span = last - first + 1
        self._announce(process, svm, (start, first, span), (gpu.index, CPU), trigger)
        yield _DEVICE_PAGE, moving * self._setup_ps
        if svm.mapped:  # else no GPU has seen it, no queue stops, and nothing is to be restored
            yield from process.invalidate(vma, first, last, Event.MIGRATE)
        if not moving:
            end = yield ()
            self._announce_end(process, (end, first, span), (gpu.index, CPU), trigger)
            return
        self._host.take(moving, f"{process.name}: migration of {vma.name} to RAM", vma.numa)
        yield _PAGE_ALLOC, moving * self._alloc_ps
        yield from self._copy(
            moving * PAGE_BYTES, moving * self._dma_map_ps, gpu.host_ways[vma.memory_node].d2h
        )
        end = yield _DEVICE_PAGE, moving * self._finish_ps
        yield Do(_nothing)  # who waits for the memory gets it at the end
        if vma.gone:
            self._host.give_back(moving, vma.numa)
            return
        if process.xnack and first == svm.first and last == svm.last:
            svm.mapped = False
        _move_from(vma, first, last, place)
        for page in held:
            vma.where[page - vma.first] = place
        svm.vram_pages -= moving
        if svm.vram_pages == 0:
            self.drop_bo(svm)
        self._log.add(process.name, gpu.index, CPU, trigger, (start, end, first, moving, moving * PAGE_BYTES))
        self._announce_end(process, (end, first, span), (gpu.index, CPU), trigger)
        self._events.count(process.number, "page_out", moving)

    def _announce(
        self,
        process: KfdProcess,
        svm: SvmRange,
        part: tuple[int, int, int],
        ways: tuple[int, int],
        trigger: Trigger,
    ) -> None:
        """MIGRATE_START of `part` (time, first page, pages)."""
        if self._events.on:
            hints = (svm.attributes.prefetch, svm.attributes.preferred)
            self._events.migrate_start(part[0], process.number, *part[1:], ways, hints, trigger)

    def _announce_end(
        self, process: KfdProcess, part: tuple[int, int, int], ways: tuple[int, int], trigger: Trigger
    ) -> None:
        if self._events.on:
            self._events.migrate_end(part[0], process.number, *part[1:], ways, trigger)

    def drop_bo(self, svm: SvmRange) -> None:
        """The last page of a range has left: the buffer object goes with its last range."""
        if svm.bo_on == self._gpu.index and svm.bo is not None:
            bo, svm.bo, svm.bo_on = svm.bo, None, CPU
            del bo.ranges[svm]
            if not bo.ranges:
                self._vram.remove(bo)


def _count(vma: Vma, parts: list[tuple[int, int]], place: int) -> int:
    """Pages of the parts that lie at `place`."""
    if len(parts) == 1:
        return vma.count(*parts[0], place)
    return sum(vma.count(begin, end, place) for begin, end in parts)


def _nothing() -> None:
    """A moment that other work can see."""


def _move_from(vma: Vma, first: int, last: int, place: int) -> None:
    """Pages of first..last that lie at `place` come to RAM; never-touched ones stay nowhere."""
    start, end = first - vma.first, last - vma.first + 1
    part = vma.where[start:end]
    vma.where[start:end] = part.replace(bytes([place]), bytes([RAM]))


def sdma_transfer(
    gpu: Gpu,
    path: tuple[tuple[str, float], ...],
    size: int,
    beside: tuple[int, int] | None = None,
    flights: Flights | None = None,
    then: Callable[[], None] | None = None,
) -> Transfer:
    """A copy by one SDMA engine along `path`; `beside` as in `Transfer`. `flights` are those of the queue's owner.

    `then` is called when the engine is ready.
    """
    pace = gpu.recorder.pace(_SDMA_COPY)
    way = path if pace == 1.0 else tuple((name, cost * pace) for name, cost in path)

    def start(done: Callable[[], None]) -> None:
        begun = gpu.env.now
        gpu.engines.copy_begins(begun)

        def landed(moved: int) -> None:
            gpu.engines.copy_ends(gpu.env.now, begun, moved)
            if then is not None:
                then()
            done()

        def fly(ended: Callable[[Flow], None]) -> Flow:
            cap = gpu.spec.sdma.rate / pace
            return copied.on(gpu.network.transfer(way, size, cap_bytes_per_s=cap, done=ended))

        if flights is None:
            fly(lambda _: landed(size))
        else:
            flights.fly(fly, landed)

    copied = Transfer(_SDMA_COPY, start, beside)
    return copied
