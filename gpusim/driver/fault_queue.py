"""Retry faults that wait for the fault worker of one GPU, without an event for each vector.

`ring_order` knows in which order the worker meets them. Here they are counted by registered range, because the faults
of a range that was restored less than 2 ms ago are dropped: as long as nothing else waits, the worker only drops, and
what it drops until the first of these windows ends is counted by arithmetic:

- a page whose vector was dropped sends again each period, so that n waiting pages cost n * cost_ps a period, and the
  worker is busy with them all the time once that is more than the period;
- if it is not, the first re-send of the range whose window has ended is the next that it can serve.

The step-by-step mode (`stepwise_worker`) simulates each send, and is the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Final

import numpy as np

from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.ring_order import RingOrder
from gpusim.driver.svm_range import SvmRange
from gpusim.driver.waiting import Granule, Group
from gpusim.engine.environment import Environment
from gpusim.hardware.gpuvm import Region, Vm
from gpusim.hardware.retry import Fault, first_send_after

_DRAWS: Final = 1 << 12
_NOTHING: Final = 1 << 62  # asleep until something comes


class FaultQueue:
    """See the module. `window_end` gives the time before which faults of a range are dropped.

    `free_ps` is when the worker is done with what is known of. `unit_pages` are the pages that one service maps, as far
    as they are in one range: the least that is told apart.
    """

    def __init__(
        self,
        *,
        cam: int,
        period_ps: int,
        delivery_ps: int,
        cost_ps: int,
        unit_pages: int,
        env: Environment,
        processes: Mapping[Vm, KfdProcess],
        window_end: Callable[[SvmRange | None], int],
        thrown: dict[int, int],
        random: np.random.Generator,
    ) -> None:
        self._cam = cam
        self._period = period_ps
        self._delivery = delivery_ps
        self._cost = cost_ps
        self._unit = unit_pages
        self._shift = unit_pages.bit_length() - 1
        self._env = env
        self._processes = processes
        self._window_end = window_end
        self._groups: dict[SvmRange, Group] = {}
        self._windows: list[tuple[int, int, Group]] = []  # by their ends; a group's last entry counts
        self._order = 0
        self._pages = 0
        self._shut = 0  # pages in windows
        self._asleep_ps = (
            _NOTHING  # until then nothing can be served, by what is known; 0: the first vector can
        )
        self._all_sent = False  # the worker was busy for so long that each waiting page has sent again
        self.free_ps = 0
        draws: list[float] = random.random(_DRAWS).tolist()
        self.ring = RingOrder(cam, cost_ps=cost_ps, delivery_ps=delivery_ps, thrown=thrown, draws=draws)

    def __len__(self) -> int:
        return self._pages

    # -- arrival ---------------------------------------------------------------------------------------------------

    def arrive(self, fault: Fault) -> bool:
        """Take a fault; True if the worker has to look again at when it starts."""
        region = fault.region
        page = fault.page
        key = (region.first_page + page) >> self._shift
        granule: Granule | None = region.pending.get(key)
        if granule is None:
            granule = self._open(key, region, page)
        elif page in granule.faults:  # the CAM knows it
            return False
        granule.faults[page] = fault
        self._pages += 1
        group = granule.group
        self.ring.sent(granule)
        if group is None:
            return self._asleep_ps > 0
        group.pages += 1
        if group.ready_ps:
            self._shut += 1
        return group.ready_ps < self._asleep_ps

    def _open(self, key: int, region: Region, page: int) -> Granule:
        """A granule of which a page waits now, in the group of its range."""
        process = self._processes[region.vm]
        granule = region.pending[key] = Granule(key, region, process)
        svm = process.ranges.find(region.first_page + page)
        if svm is not None and (svm.registered or self._window_end(svm) > self._env._now):
            self._join(granule, svm)
        return granule

    def _join(self, granule: Granule, svm: SvmRange) -> Group:
        group = self._groups.get(svm)
        if group is None:
            group = self._groups[svm] = Group(svm)
            self._close(group, self._window_end(svm))
        granule.group = group
        group.granules[granule] = None
        return group

    def _close(self, group: Group, until_ps: int) -> None:
        """Faults of the group are dropped until then."""
        if until_ps <= self._env._now or until_ps == group.ready_ps:
            return
        if not group.ready_ps:
            self._shut += group.pages
        group.ready_ps = until_ps
        self._order += 1
        heappush(self._windows, (until_ps, self._order, group))

    def _expire(self, now: int) -> None:
        """Groups whose window has ended can be served."""
        windows = self._windows
        while windows and (windows[0][0] <= now or windows[0][2].ready_ps != windows[0][0]):
            ready_ps, _, group = heappop(windows)
            if group.ready_ps == ready_ps:
                group.ready_ps = 0
                self._shut -= group.pages

    # -- service ---------------------------------------------------------------------------------------------------

    def next_start(self, now: int) -> int | None:
        """When the worker gets to a fault that it can serve, or has to look again; None if none waits."""
        if 0 < self._asleep_ps < _NOTHING:
            self._dropped_until(now)
        start = max(self.free_ps, now)
        self._expire(start)
        if self._pages > self._shut:
            self._asleep_ps = 0
            self.free_ps, granule = self.ring.meet(start)
            return self.free_ps if granule is not None else None
        self._asleep_ps = _NOTHING
        if not self._pages:
            self.free_ps, _ = self.ring.meet(self.free_ps)
            return None
        self._asleep_ps = ready_ps = self._windows[0][0]
        if self._idles(self._pages):
            self._asleep_ps = ready_ps = self._first_send(self._windows[0][2], ready_ps)
        return ready_ps

    def _idles(self, waiting: int) -> bool:
        """Does the worker run out of vectors to drop?"""
        return waiting * self._cost < self._period

    def _first_send(self, group: Group, ready_ps: int) -> int:
        """When the first vector of a group that is sent again and again arrives, from `ready_ps` on."""
        sent = ready_ps - self._delivery
        faults = [fault for granule in group.granules for fault in granule.faults.values()]
        return min(first_send_after(sent, fault.tick_ps, self._period) for fault in faults) + self._delivery

    def busy_until(self, now: int) -> None:
        """A service ends now: each page that waits has sent again meanwhile."""
        self.free_ps = now
        self._asleep_ps = _NOTHING
        self._all_sent = True

    def _dropped_until(self, now: int) -> None:
        """Count what the worker dropped while nothing could be served: bounded by the time it had."""
        idle, waiting = now - self.free_ps, self._shut
        if idle <= 0 or not waiting:
            return
        idles = self._idles(waiting)
        sent = waiting * idle / self._period + (min(waiting, self._cam) if self._all_sent else 0)
        met = min(idle / self._cost, sent) if self._cost else sent
        self._all_sent = False
        ring = self.ring
        dropped = max(0.0, met - ring.go_round(int(met)))
        for ready_ps, _, group in self._windows:
            if group.ready_ps == ready_ps and group.pages:
                number = next(iter(group.granules)).process.number
                ring.skipped[number] = ring.skipped.get(number, 0.0) + dropped * group.pages / waiting
        ring.spent_ps += min(idle, round(met * self._cost))
        self.free_ps = now
        if idles:
            ring.first_ready(now)

    def pick(self, now: int) -> Granule | None:
        """The granule to serve now, which leaves the queue; None if the worker has to look again."""
        if self._asleep_ps:
            start = self.next_start(now)
            if start is None or start > now:
                return None
        self._asleep_ps = _NOTHING
        self.free_ps, granule = self.ring.meet(max(self.free_ps, now))
        if granule is None or self.free_ps > now:
            return None
        self.ring.take()
        del granule.region.pending[granule.key]
        self._leave(granule)
        return granule

    def spent_ps(self) -> int:
        """What the worker has spent on vectors since this was asked last."""
        spent, self.ring.spent_ps = self.ring.spent_ps, 0
        return spent

    def served(self, granule: Granule, svm: SvmRange | None, pages: int) -> None:
        """A granule has been served, with `pages` in all.

        What is not mapped by it (another range in the same block) waits again.
        """
        late: Granule | None = granule.region.pending.pop(granule.key, None)  # sent while it was being served
        if late is not None:
            self._leave(late)
            granule.faults |= late.faults
            self.ring.served(late)
        missing = granule.missing()
        self.ring.served(granule)
        group = self._groups.get(svm) if svm is not None else None
        if group is not None:
            if pages > self._unit:
                self._served_along(group)
            if group.pages:
                self._close(group, self._window_end(svm))
        for page in missing:
            self._return(granule, page)
        self.ring.tidy(self._pages)

    def _served_along(self, group: Group) -> None:
        """More than a granule was mapped."""
        for other in [other for other in group.granules if not other.missing()]:
            del other.region.pending[other.key]
            self._leave(other)
            self.ring.served(other)

    def _return(self, granule: Granule, page: int) -> None:
        key = granule.key
        again: Granule = granule.region.pending.get(key) or self._open(key, granule.region, page)
        again.faults[page] = granule.faults[page]
        self._count(again, 1)
        self.ring.sent(again)

    def again(self, granule: Granule, svm: SvmRange | None) -> None:
        """The vector in hand was dropped: its page sends again, and the others of its granule still wait."""
        late: Granule | None = granule.region.pending.get(granule.key)
        if late is not None:
            self._leave(late)
            late.gone = True
            for page, fault in late.faults.items():
                granule.faults[page] = fault
                self.ring.sent(granule)
        granule.region.pending[granule.key] = granule
        granule.group = None
        if svm is not None:
            self._close(self._join(granule, svm), self._window_end(svm))
        self._count(granule, len(granule.faults))
        self.ring.sent(granule)

    def too_soon(self, granule: Granule) -> None:
        """The vector in hand was dropped by the recent-restore rule, which its range came under meanwhile."""
        number, skipped = granule.process.number, self.ring.skipped
        skipped[number] = skipped.get(number, 0.0) + 1.0

    def skipped_by(self, number: int) -> int:
        """Vectors of a process that the recent-restore rule dropped."""
        return round(self.ring.skipped.get(number, 0.0))

    def stale_by(self, number: int) -> int:
        """Vectors of a process that were dropped because it had unmapped memory since they came."""
        return self.ring.stale.get(number, 0)

    def unmapped(self, process: KfdProcess) -> None:
        """Addresses of a process go away."""
        if 0 < self._asleep_ps < _NOTHING:
            self._dropped_until(self._env._now)
        self.ring.unmapped(process.number, self._env._now)

    def mapped_by_others(self, granule: Granule) -> None:
        """All pages of a granule that was picked have been mapped meanwhile."""
        self.ring.served(granule)

    def _leave(self, granule: Granule) -> None:
        """It does not wait any more."""
        self._count(granule, -len(granule.faults))
        group = granule.group
        if group is not None:
            del group.granules[granule]
            if not group.granules:
                group.ready_ps = 0
                del self._groups[group.svm]

    def _count(self, granule: Granule, pages: int) -> None:
        self._pages += pages
        group = granule.group
        if group is not None:
            group.pages += pages
            if group.ready_ps:
                self._shut += pages

    def drop(self, process: KfdProcess) -> None:
        """The process has died: nobody waits for its pages any more. Its vectors are thrown away as they come up."""
        for vm in process.vms.values():
            if vm not in self._processes:
                continue
            for region in vm.regions.values():
                for granule in region.pending.values():
                    self._leave(granule)
                    self.ring.served(granule)
                region.pending.clear()
