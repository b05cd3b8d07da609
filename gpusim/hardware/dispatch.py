"""One kernel on one GPU: hands steps to wavefront slots, and groups what cannot wait.

A stretch of steps whose pages are all mapped needs no wavefronts of its own: the slots that come to it form one
weighted job on the HBM channel (and one flow a direction on the CPU link, for what lies in host memory). Only where a
page is not mapped do slots become `Wave`s that step one by one. An unmap inside a stretch cuts it there. The
step-by-step mode never groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpusim.engine.flows import Hop
from gpusim.engine.record import Snapshot
from gpusim.hardware.access import AccessStream, Order, Touch
from gpusim.hardware.gpuvm import INVALID, Region, Vm
from gpusim.hardware.lane_faults import LaneWave, send_lanes
from gpusim.hardware.memory import MemoryClass
from gpusim.hardware.stretch import Stretch
from gpusim.hardware.wavefronts import Wave
from gpusim.kinds import Kind

if TYPE_CHECKING:
    from gpusim.hardware.gpu import Gpu

Way = tuple[Hop, ...]  # links to memory elsewhere

_LEAST_BYTES = 256  # of a step that HBM carries, so that rounding to whole bytes does not show


class Dispatch:
    """A kernel in flight. `done` is told its critical path when the last wavefront has ended.

    `slots` is the most wavefronts it may have in flight; the caps are what one of them moves in bytes per second, from
    local memory and across the CPU link. Of its local bytes HBM moves `hbm_share`, a cache the rest.
    """

    def __init__(
        self,
        gpu: Gpu,
        vm: Vm,
        stream: AccessStream,
        *,
        name: str,
        slots: int,
        cap_bytes_per_s: float,
        link_cap_bytes_per_s: float,
        hbm_share: float,
        grouped: bool,
        done: Callable[[Snapshot], None],
    ) -> None:
        self.gpu = gpu
        self.env = gpu.env
        self.vm = vm
        self.stream = stream
        self.name = name
        self.actor = gpu.recorder.actor(name) if gpu.recorder.spans else 0
        self.recording = gpu.recorder.on
        self.spans = gpu.recorder.spans
        self.fault: Callable[[Wave], None] = gpu.retry.fault
        self.counters = gpu.retry.counters_of(vm)
        self.total = stream.steps * stream.passes
        self._single = stream.operands[0]
        self._step_pages = stream.step_pages
        self._steps = stream.steps
        self.slots = min(slots, self.total)
        self.share = self.slots
        self.dead = False
        self.steps_done = 0
        self._grouped = grouped
        self._done = done
        self.step_bytes = sum(operand.read_bytes + operand.write_bytes for operand in stream.operands)
        # what caches serve whole is timed by a few bytes a step on the HBM channel
        self.hbm_share = max(hbm_share, min(1.0, _LEAST_BYTES / self.step_bytes))
        hbm_bytes = sum(operand.hbm_bytes for operand in stream.operands) * self.hbm_share
        self.hbm_bytes = max(1, round(hbm_bytes))
        pace = gpu.recorder.pace
        moving_ps = self.step_bytes * 1e12 / cap_bytes_per_s * pace(Kind.COMPUTE)
        # few walkers: what all slots together ask of them in a step keeps a slot waiting at least as long; in the
        # step-by-step mode those that look up wait for them
        walked_ps = stream.table_reads * self.slots / gpu.translation.reads_per_ps
        if stream.translation_ps is None and not grouped:
            walked_ps = 0.0
        # and so do atomics that only one of them can do at a time
        self._serial_ps = serial_ps = stream.serial_ps * self.slots * pace(Kind.CONTENTION)
        self._translation_pace = pace(Kind.TRANSLATION)
        added_ps = (stream.translation_ps or 0) * self._translation_pace
        self._moving_ps = moving_ps
        self._walking_ps = max(moving_ps + added_ps, walked_ps * self._translation_pace)
        alone_ps = max(self._walking_ps, serial_ps)
        self.step_ps = alone_ps  # of a step with nobody else on the memory
        self.waiting = 1.0 - moving_ps / alone_ps  # share of a step beside moving its bytes
        self.waiting_kind = Kind.CONTENTION if serial_ps == alone_ps else Kind.TRANSLATION
        self.alone_ps = int(alone_ps * 1.01) + 2  # a step that takes longer shared the memory
        self.memory = gpu.hbm
        self.job_class: MemoryClass = gpu.hbm.job_class(hbm_bytes * 1e12 / alone_ps)
        self.runs_ahead = grouped and stream.translation_ps is not None
        self._wave: type[Wave] = Wave
        if stream.lanes:  # its instructions access a page a lane: waves wait for several pages at once
            self._wave, self.fault, self.runs_ahead = LaneWave, send_lanes, False
        self.free_ps = self.job_class.alone_ps(self.hbm_bytes)
        self._classes = [self.job_class]  # all that its wavefronts may be in
        self.far = vm.far_from  # states from here on lie behind a link
        self._link_cap = link_cap_bytes_per_s / pace(Kind.ZERO_COPY_LINK)
        self._looked_up = 0  # steps whose translations were looked up one by one
        self._next = 0  # frontier order: the next step to hand out
        self._own: dict[Wave, tuple[int, int, int]] = {}  # other orders: next step, end, stride of a wave
        self._unowned: list[tuple[int, int, int]] = []
        self._waves = 0
        self._retired = 0  # the span that joins the ends of wavefronts so far
        self._stretch: Stretch | None = None
        self._units = gpu.spec.compute.compute_units
        self._unit = 0

    def touches(self, index: int) -> Sequence[Touch]:
        """The pages of step `index`. The plainest streams are not asked: each wave comes by for each of its steps."""
        pages = self._step_pages
        if not pages:
            return self.stream.touches(index)
        if index >= self._steps:
            index %= self._steps
        first = index * pages
        return ((self._single, first, first + pages - 1),)

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self, base: Snapshot) -> None:
        """Hand out the first steps; `base` is the path that led to the launch."""
        for region in self._regions():
            region.on_invalidate.append(self._invalidated)
        if self.stream.order is not Order.FRONTIER and not self._whole_is_mapped():
            self._unowned = _split(self.total, self.slots, self.stream)
            self._next = self.total  # no frontier: each wave has its own steps
        self.fill(base)

    def fill(self, base: Snapshot) -> None:
        """Put free slots of this dispatch to work, up to its share."""
        if self.dead:
            return
        now = self.env.now
        if self._unowned:
            while self._unowned and self.in_flight < self.share and not self.dead:
                self._spawn(base, now)
            return
        free = self.share - self.in_flight
        if free > 0 and self._try_stretch(free, base):
            return
        while (
            self.in_flight < self.share
            and self._next < self.total
            and self._stretch is None
            and not self.dead  # a fault of the wave just begun may have killed the process
        ):
            self._spawn(base, now)

    @property
    def in_flight(self) -> int:
        """Slots at work, single or in a stretch."""
        return self._waves + (self._stretch.weight if self._stretch is not None else 0)

    def _spawn(self, base: Snapshot, now: int) -> None:
        wave = self._wave(self, self._unit, base, now)
        self._unit = (self._unit + 1) % self._units
        if self._unowned:
            self._own[wave] = self._unowned.pop()
        self._waves += 1
        wave.begin()

    def take(self, wave: Wave, clean: bool) -> int:
        """The next step of `wave`, or -1: its slot is needed elsewhere, joins a stretch, or there is no work.

        `clean` says that its last step found all pages mapped: only then a stretch is looked for.
        """
        step = self._next
        if step < self.total and self._stretch is None and self._waves <= self.share and not self.dead:
            if clean and self._grouped and self._try_stretch(1, None, wave):
                return -1
            self._next = step + 1
            return step
        if self._own and not self.dead:
            step, end, stride = self._own[wave]
            if step < end:
                self._own[wave] = (step + stride, end, stride)
                return step
        return -1  # with a stretch in flight the slot joins it in `retired`

    def retired(self, wave: Wave) -> None:
        """`wave` has no more steps of its own."""
        self._waves -= 1
        self._own.pop(wave, None)
        if self.dead:
            return
        if self.spans:
            self._join(wave.row)
        if self._stretch is not None and self.in_flight < self.share:
            self._stretch.reweight(self._stretch.weight + 1)
        if self.in_flight == 0 and self._next >= self.total and not self._unowned:
            self._end((wave.path()[0], self._retired))
        else:
            if self._unowned and self.in_flight < self.share:
                self.fill(wave.path())
            self.gpu.slot_freed(self, wave)

    def _join(self, row: int) -> None:
        """The kernel ends with the last of its wavefronts: their ends so far, and that of `row`, which is now."""
        before = self._retired
        self._retired = row
        if before:
            now = self.env.now
            self._retired = self.gpu.recorder.span(
                self.actor, Kind.SYNC, now, now, cause=before, queued_behind=before, released_by=row
            )

    def _end(self, path: Snapshot) -> None:
        for region in self._regions():
            region.on_invalidate.remove(self._invalidated)
        self.dead = True
        self.gpu.wave_steps += self.total
        self._count_reads(self.total)
        self.vm.steps_done += self.total
        self.gpu.ended(self, path)
        self._done(path)

    def kill(self) -> None:
        """The process has died: nothing of this dispatch goes on."""
        if self.dead:
            return
        self.dead = True
        if self._stretch is not None:
            self._stretch.cut()
            self._stretch = None
        for region in self._regions():
            region.on_invalidate.remove(self._invalidated)
        self.gpu.wave_steps += self.steps_done
        self._count_reads(self.steps_done)
        self.gpu.ended(self, None)

    def _count_reads(self, steps: int) -> None:
        """Page-table reads of the steps that were not looked up, in the mean."""
        self.gpu.expected_reads += max(0, steps - self._looked_up) * self.stream.table_reads

    def set_share(self, share: int, base: Snapshot | None) -> None:
        """The GPU hands its slots out anew; short workgroups turn over fast, so a stretch follows at once."""
        self.share = max(1, min(share, self.slots))
        stretch = self._stretch
        if stretch is not None:
            stretch.reweight(max(1, self.share - self._waves))
        elif base is not None:
            self.fill(base)

    # -- atomics that others share ---------------------------------------------------------------------------------

    @property
    def lines_use(self) -> float:
        """Share of the time of the lines that its atomics go to, if nobody else works on them."""
        return self._serial_ps / max(self._walking_ps, self._serial_ps) if self._serial_ps else 0.0

    def slow_atomics(self, factor: float) -> None:
        """Its atomics take `factor` times as long as alone: those of a stretch in flight, and of wavefronts that begin.

        Wavefronts that step one by one keep their pace until they retire.
        """
        if self.dead:
            return
        serial_ps = self._serial_ps * factor
        self.step_ps = alone_ps = max(self._walking_ps, serial_ps)
        self.waiting = 1.0 - self._moving_ps / alone_ps
        self.waiting_kind = Kind.CONTENTION if serial_ps == alone_ps else Kind.TRANSLATION
        self.alone_ps = int(alone_ps * 1.01) + 2
        self.job_class = self.gpu.hbm.job_class(self.hbm_bytes * 1e12 / alone_ps)
        self.free_ps = self.job_class.alone_ps(self.hbm_bytes)
        if self.job_class not in self._classes:
            self._classes.append(self.job_class)
        if self._stretch is not None:
            self._stretch.keep_pace()

    # -- stretches -------------------------------------------------------------------------------------------------

    def _whole_is_mapped(self) -> bool:
        return self._grouped and self.stream.mapped_run(0, self.total) >= self.total

    def _try_stretch(self, free: int, base: Snapshot | None, wave: Wave | None = None) -> bool:
        """Form a stretch from the frontier on if it is worth it: long enough for the slots in flight."""
        if not self._grouped:
            return False
        start = self._next
        if self._step_pages and self._single.valid[start % self._steps * self._step_pages] == INVALID:
            return False
        least = min(self.total - start, max(self.share, 1))
        if least <= 0 or self.stream.mapped_run(start, start + least) < least:
            return False
        run = self.stream.mapped_run(start, self.total)
        self._next = start + run
        path = base if base is not None else wave.path()  # type: ignore[union-attr]
        weight = min(free, run)
        self._stretch = Stretch(self, start, run, weight=weight, base=path, done=self._stretch_done)
        return True

    def _stretch_done(self, path: Snapshot) -> None:
        stretch = self._stretch
        assert stretch is not None
        self.steps_done += stretch.steps
        self._stretch = None
        if self._next >= self.total and self._waves == 0 and not self._unowned:
            if self.spans:
                self._join(path[1])
                path = (path[0], self._retired)
            self._end(path)
        else:
            self.fill(path)

    def _invalidated(self, region_first: int, region_last: int) -> None:
        """Pages were unmapped: cut the stretch in flight; it goes on as far as its pages are still there."""
        now = self.env.now
        self.gpu.hbm.take_back(lambda job: job.start_ps > now and job.memory_class in self._classes)
        stretch = self._stretch
        if stretch is None:
            return
        done, path = stretch.cut()
        self.steps_done += done
        self._stretch = None
        self._next = stretch.first + done
        self.env.call_at(self.env.now, lambda: self.fill(path))

    # -- what a step costs -----------------------------------------------------------------------------------------

    def translate(self, unit: int, index: int) -> int:
        """Latency that the TLB misses of step `index` add."""
        self._looked_up += 1
        return self.gpu.translation.step_ps(unit, self.stream.touches(index), self.env.now)

    def link_cap(self, way: Way, size: float) -> float:
        """Bytes a second of one wavefront for a transfer of `size` of a step's bytes."""
        return self._link_cap * self.gpu.far_pace.get(way, 1.0) * size / self.step_bytes

    def cross_link(self, index: int, resume: Callable[[], None]) -> None:
        """One step of which part lies behind a link: all its transfers at once, on when the last has ended."""
        local, ways = self.step_parts(index)
        parts = [0]

        def ended(*_: object) -> None:
            parts[0] -= 1
            if parts[0] == 0:
                resume()

        for path, size in ways:
            parts[0] += 1
            self.gpu.network.transfer(
                path,
                round(size),
                weight=1.0 / self.share,
                cap_bytes_per_s=self.link_cap(path, size) * self.share,
                done=ended,
            )
        if local:
            parts[0] += 1
            self.job_class.enter(max(1, round(local)), ended)

    def step_parts(self, index: int) -> tuple[float, list[tuple[Way, float]]]:
        """Bytes of step `index` that local memory moves, and the ways that the others take."""
        gpu = self.gpu
        local = 0.0
        ways: dict[Way, float] = {}
        seen = set()
        for operand, page, _ in self.stream.touches(index):
            if operand in seen:
                continue
            seen.add(operand)
            state = operand.region.valid[page]
            if state >= self.far:
                for size, way in (
                    (operand.read_bytes, gpu.far_reads[state]),
                    (operand.write_bytes, gpu.far_writes[state]),
                ):
                    if size:
                        ways[way] = ways.get(way, 0.0) + size
            else:
                local += operand.hbm_bytes
        return local * self.hbm_share, list(ways.items())

    def _regions(self) -> Sequence[Region]:
        return list({id(operand.region): operand.region for operand in self.stream.operands}.values())


def _split(total: int, slots: int, stream: AccessStream) -> list[tuple[int, int, int]]:
    """Steps of each wave, last wave first (they are popped): (first, end, stride)."""
    if stream.shares is not None:
        return [(first, end, 1) for first, end in reversed(stream.shares)]
    if stream.order is Order.STRIDED:
        return [(wave, total, slots) for wave in reversed(range(slots))]
    bounds = [total * wave // slots for wave in range(slots + 1)]
    return [(bounds[wave], bounds[wave + 1], 1) for wave in reversed(range(slots))]
