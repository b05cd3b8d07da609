"""Retry faults that wait for the fault worker of one GPU, in closed form.

Waiting pages are kept by granule, granules by range. What the worker would do with re-sent vectors while it is free
(drop those of a range that was restored less than 2 ms ago) is counted by arithmetic, not by events:

- up to `cam` pages have a vector in the ring; each skip or duplicate costs the worker `cost_ps`;
- a page whose vector was dropped sends again each period, so that n waiting pages cost n * cost_ps a period, and the
  worker is busy with them all the time once that is more than the period;
- a fault that can be served waits for the dropped vectors that lie ahead of it in the ring.

While none are dropped, `ring_order` keeps the order of the ring. Otherwise the order is that of arrival, and drawn
when more pages wait than the CAM holds. The step-by-step mode (`stepwise_worker`) simulates each send, and is the
reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import islice

import numpy as np

from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.ring_order import RingOrder
from gpusim.driver.svm_range import SvmRange
from gpusim.engine.environment import Environment
from gpusim.hardware.gpuvm import INVALID, Region, Vm
from gpusim.hardware.retry import Fault

_DRAWS = 1 << 12


class Granule:
    """The pages of one granule of a region that wait, and the first fault on each."""

    __slots__ = ("faults", "gone", "group", "key", "process", "region", "served")

    group: Group

    def __init__(self, key: int, region: Region, process: KfdProcess) -> None:
        self.key = key
        self.region = region
        self.process = process
        self.faults: dict[int, Fault] = {}
        self.served = False  # its vectors in the ring are thrown away as they come up
        self.gone = False  # they have been paid for

    def first(self) -> tuple[int, Fault]:
        """The page that was sent first, and its fault."""
        return next(iter(self.faults.items()))

    def missing(self) -> list[int]:
        """Pages that are not mapped yet, in the order in which they were sent."""
        if self.region.writable is not None:
            return [page for page, fault in self.faults.items() if self._open(page, fault)]
        valid = self.region.valid
        if valid.find(INVALID, min(self.faults), max(self.faults) + 1) < 0:
            return []
        return [page for page in self.faults if valid[page] == INVALID]

    def open(self) -> tuple[int, Fault] | None:
        """The first page that is not mapped yet, and its fault."""
        if self.region.writable is not None:
            return next((item for item in self.faults.items() if self._open(*item)), None)
        valid = self.region.valid
        for item in self.faults.items():
            if valid[item[0]] == INVALID:
                return item
        return None

    def _open(self, page: int, fault: Fault) -> bool:
        """Does the access still find no PTE, or none that it may use?"""
        return self.region.seen(fault.write)[page] == INVALID


class Group:
    """Granules of one range, or a granule that is in no range yet. Before `ready_ps` its faults are dropped."""

    __slots__ = ("granules", "number", "pages", "ready_ps", "svm")

    def __init__(self, svm: SvmRange | None, ready_ps: int, number: int) -> None:
        self.svm = svm
        self.number = number  # of the process
        self.ready_ps = ready_ps
        self.granules: list[Granule] = []
        self.pages = 0


class FaultQueue:
    """See the module. `window_end` gives the time before which faults of a range are dropped."""

    def __init__(
        self,
        *,
        cam: int,
        period_ps: int,
        delivery_ps: int,
        cost_ps: int,
        granule_pages: int,
        env: Environment,
        processes: Mapping[Vm, KfdProcess],
        window_end: Callable[[SvmRange | None], int],
        random: np.random.Generator,
    ) -> None:
        self._cam = cam
        self._period = period_ps
        self._delivery = delivery_ps
        self._cost = cost_ps
        self._shift = granule_pages.bit_length() - 1
        self._env = env
        self._processes = processes
        self._window_end = window_end
        self._draws: list[float] = random.random(_DRAWS).tolist()
        self._drawn = 0
        self._groups: dict[int, Group] = {}  # by id of the range
        self._ready: dict[Group, None] = {}  # in the order of their turns
        self._waiting: list[tuple[int, int, Group]] = []
        self._order = 0
        self._ready_pages = 0
        self._waiting_pages = 0
        self._just_served = 0  # pages that wait in the range served last, if it drops faults now
        self._ring = RingOrder(cam, self._draw)
        self.skipped: dict[int, float] = {}  # vectors dropped by the recent-restore rule, by process number

    def __len__(self) -> int:
        return self._ready_pages + self._waiting_pages

    # -- arrival ---------------------------------------------------------------------------------------------------

    def arrive(self, fault: Fault) -> bool:
        """Take a fault; True if the worker may have to look again at when it starts."""
        region = fault.region
        page = fault.page
        key = (region.first_page + page) >> self._shift
        granule: Granule | None = region.pending.get(key)
        if granule is None:
            granule = self._open(key, region, page)
            granule.faults[page] = fault
            self._count(granule.group, 1)
            self._ring.sent(granule)
            return True
        faults = granule.faults
        if page not in faults:  # else the CAM knows it
            faults[page] = fault
            self._ring.sent(granule)
            group = granule.group
            group.pages += 1
            if group.ready_ps:
                self._waiting_pages += 1
            else:
                self._ready_pages += 1
        return False

    def _open(self, key: int, region: Region, page: int) -> Granule:
        now = self._env._now
        self._expire(now)
        process = self._processes[region.vm]
        granule = region.pending[key] = Granule(key, region, process)
        svm = process.ranges.find(region.first_page + page)
        group = None if svm is None else self._groups.get(id(svm))
        if group is None:
            group = Group(svm, self._window_end(svm), process.number)
            if svm is not None:
                self._groups[id(svm)] = group
            self._enlist(group, now)
        granule.group = group
        group.granules.append(granule)
        return granule

    def _enlist(self, group: Group, now: int) -> None:
        if group.ready_ps > now:
            self._order += 1
            heappush(self._waiting, (group.ready_ps, self._order, group))
            self._waiting_pages += group.pages
        else:
            group.ready_ps = 0
            self._ready[group] = None
            self._ready_pages += group.pages

    def _expire(self, now: int) -> None:
        """Groups whose window has ended can be served."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            _, _, group = heappop(waiting)
            group.ready_ps = 0
            self._waiting_pages -= group.pages
            self._ready_pages += group.pages
            self._ready[group] = None

    # -- service ---------------------------------------------------------------------------------------------------

    def next_start(self, free_ps: int, now: int, was_busy: bool) -> int | None:
        """When the worker, free from `free_ps` on, gets to a fault that it can serve; None if none waits.

        `was_busy` says that it comes from a service, during which each waiting page has sent again.
        """
        start = max(free_ps, now)
        self._expire(start)
        if not self._waiting:
            first = self._ring.first()
            return max(start, first.first()[1].sent_ps + self._delivery) if first is not None else None
        if self._ready:
            sent_ps = next(iter(self._ready)).granules[0].first()[1].sent_ps
            return max(start + round(self._ahead(was_busy) * self._cost), sent_ps + self._delivery)
        if not self._waiting:
            return None
        ready_ps, _, group = self._waiting[0]
        waiting = self._waiting_pages
        if waiting * self._cost >= self._period:  # the worker never runs out of vectors to drop
            return ready_ps + round((waiting / max(1, group.pages) - 1.0) * self._cost)
        return ready_ps + self._period // (group.pages + 1) + self._delivery

    def throw_away(self) -> list[Granule]:
        """Vectors of served granules that the worker meets before the next one that it can serve, in order."""
        return [] if self._waiting else self._ring.throw_away()

    def dismiss(self, granule: Granule) -> int:
        """All pages of a granule that was picked have been mapped by others: vectors that the worker looks at."""
        if self._waiting:
            granule.gone = True
            return len(granule.faults)
        granule.served = True
        return 1

    def _ahead(self, was_busy: bool) -> float:
        """Vectors to be dropped that lie ahead of the first fault that can be served.

        Vectors of one range are dropped together and so sent again together: in the ring they follow each other. Next
        behind the one just served are the others of its range, then the range that was served longest ago.
        """
        if not was_busy or not self._just_served:
            return 0.0
        return float(min(self._just_served, self._cam))

    def charge(self, free_ps: int, start_ps: int, was_busy: bool) -> int:
        """Count the vectors that the worker dropped between two services: bounded by the time it had.

        Returns the time that they cost it.
        """
        idle = start_ps - free_ps
        waiting = self._waiting_pages
        if not waiting or idle <= 0:
            return 0
        sent = waiting * idle / self._period + (min(waiting, self._cam) if was_busy else 0)
        dropped = min(idle / self._cost, sent) if self._cost else sent
        for _, _, group in self._waiting:
            number = group.number
            self.skipped[number] = self.skipped.get(number, 0.0) + dropped * group.pages / waiting
        return min(idle, round(dropped * self._cost))

    def pick(self, now: int) -> Granule | None:
        """The granule to serve now; it leaves the queue."""
        self._expire(now)
        if not self._waiting:
            return self._pick_first()
        ready = self._ready
        if not ready:
            return None
        crowded = self._ready_pages + self._waiting_pages > self._cam
        group = next(islice(ready, int(self._draw() * len(ready)) if crowded else 0, None))
        if crowded and group.svm is not None:
            # ranges take turns: their vectors follow each other in the ring
            group = next(other for other in ready if other.svm is not None)
        granules = group.granules
        granule = granules.pop(int(self._draw() * len(granules)) if crowded else 0)
        del granule.region.pending[granule.key]
        group.pages -= len(granule.faults)
        self._ready_pages -= len(granule.faults)
        del ready[group]
        if granules:
            ready[group] = None  # the next range first
        elif group.svm is not None:
            del self._groups[id(group.svm)]
        return granule

    def _pick_first(self) -> Granule | None:
        """The granule of the first vector in the ring."""
        granule = self._ring.first()
        if granule is None or granule.served or granule.gone:
            return None  # look again, once those are thrown away
        self._ring.take()
        del granule.region.pending[granule.key]
        self._leave(granule)
        return granule

    def _draw(self) -> float:
        self._drawn = drawn = (self._drawn + 1) & (_DRAWS - 1)
        return self._draws[drawn]

    def served(self, granule: Granule, svm: SvmRange | None, now: int) -> int:
        """A granule has been served; returns how many of its vectors the worker has to throw away.

        What is not mapped by it (another range in the same block) goes back into the queue.
        """
        pages = granule.faults
        late: Granule | None = granule.region.pending.pop(granule.key, None)  # sent while it was being served
        if late is not None:
            self._leave(late)
            pages |= late.faults
            late.served = True
        missing = granule.missing()
        self._just_served = self._reset_window(svm, now) if svm is not None else 0
        for page in missing:
            self._return(granule, page)
        self._ring.tidy(len(self))
        if not self._waiting:
            granule.served = True
            return 0
        granule.gone = True
        if late is not None:
            late.gone, late.served = True, False
        in_ring = min(1.0, self._cam / max(1, len(self) + len(pages)))
        return int((len(pages) - len(missing) - 1) * in_ring)

    def _return(self, granule: Granule, page: int) -> None:
        key = granule.key
        pending = granule.region.pending
        again: Granule = pending.get(key) or self._open(key, granule.region, page)
        again.faults[page] = granule.faults[page]
        self._count(again.group, 1)
        self._ring.sent(again)

    def _leave(self, granule: Granule) -> None:
        """Take a granule out of its group."""
        group = granule.group
        group.granules.remove(granule)
        self._count(group, -len(granule.faults))
        if not group.granules:
            self._forget(group)

    def _count(self, group: Group, pages: int) -> None:
        group.pages += pages
        if group.ready_ps:
            self._waiting_pages += pages
        else:
            self._ready_pages += pages

    def _forget(self, group: Group) -> None:
        if group.svm is not None:
            self._groups.pop(id(group.svm), None)
        if group in self._ready:
            del self._ready[group]
        else:
            self._waiting = [entry for entry in self._waiting if entry[2] is not group]
            self._waiting.sort()

    def _reset_window(self, svm: SvmRange, now: int) -> int:
        """The range was restored just now: its faults are dropped for a while; how many pages wait there."""
        group = self._groups.get(id(svm))
        if group is None:
            return 0
        ready_ps = self._window_end(svm)
        if ready_ps <= now:
            return 0
        if group.ready_ps == 0:
            del self._ready[group]
            self._ready_pages -= group.pages
            self._waiting_pages += group.pages
        else:
            self._waiting = [entry for entry in self._waiting if entry[2] is not group]
            self._waiting.sort()
        group.ready_ps = ready_ps
        self._order += 1
        heappush(self._waiting, (ready_ps, self._order, group))
        return group.pages

    def drop(self, process: KfdProcess) -> None:
        """The process has died: nobody waits for its pages any more. Its vectors are thrown away as they come up."""
        for vm in process.vms.values():
            for region in vm.regions.values():
                for granule in list(region.pending.values()):
                    if granule.group in self._ready or any(
                        entry[2] is granule.group for entry in self._waiting
                    ):
                        self._leave(granule)
                        granule.served = True
                        del region.pending[granule.key]
