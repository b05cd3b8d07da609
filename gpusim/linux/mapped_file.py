"""A file in the address space of a process: `mmap`, its page faults, and what becomes of its pages.

Page i of the VMA is page i of the file. A fault finds its page in the page cache, or has a window around it read from
the drive, which it waits for; later windows are read ahead of a sequential reader. A fault maps 64 KiB of what is
there. A store to a shared mapping makes its page dirty, and once more after each writeback; a store to a private one
makes a copy, which is memory of the process and no longer of the file. Where the page cache drops or cleans a page,
all who map it lose the mapping, GPUs too.

Left out: how the window of readahead grows, `madvise`, second chances of pages that are in use, huge pages of files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpusim.engine.stages import Stages
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind
from gpusim.linux.address_space import FILE, FILE_WRITE, NOWHERE, RAM, Vma
from gpusim.linux.file import File
from gpusim.linux.file_io import FileIo
from gpusim.linux.io_costs import MappedFileCosts
from gpusim.linux.notifier import Event
from gpusim.linux.paging import Paging
from gpusim.spec import PAGE_BYTES

#: rounds in which a fault finds that its page has left memory again, before it gives up
_ROUNDS = 16

#: works through stages without anybody who waits, and calls at their end
Run = Callable[[Stages, Callable[[], None]], None]
#: pages first..last are about to lose their mappings; nobody waits for that
Notify = Callable[[Vma, int, int, Event], None]


class MappedFile:
    """The file behind a VMA. `shared`: stores go to the file."""

    def __init__(
        self,
        file: File,
        vma: Vma,
        *,
        io: FileIo,
        costs: MappedFileCosts,
        paging: Paging,
        notify: Notify,
        run: Run,
        shared: bool,
    ) -> None:
        self.file = file
        self.shared = shared
        self.costs = costs
        self._vma = vma
        self._io = io
        self._paging = paging
        self._notify = notify
        self._run = run
        self._reading: set[tuple[int, int]] = set()
        file.inode.mappings.append(self)

    def again(self, vma: Vma) -> MappedFile:
        """The same file behind another VMA: a child inherits it, which has no GPU to be told of anything."""
        return MappedFile(
            self.file,
            vma,
            io=self._io,
            costs=self.costs,
            paging=self._paging,
            notify=lambda *_: None,
            run=self._run,
            shared=self.shared,
        )

    def close(self) -> None:
        """The mapping is gone."""
        self.file.inode.mappings.remove(self)

    @property
    def pinned(self) -> bool:
        """Is it registered with a GPU?"""
        return bool(self._vma.pins)

    # -- page faults -----------------------------------------------------------------------------------------------

    def fault_in(self, first: int, last: int, what: str, *, write: bool, trap: bool) -> Stages:
        """As `Paging.fault_in`. Pages beyond the end of the file are an error, as in Linux."""
        vma = self._vma
        end = vma.first + -(-self.file.size // PAGE_BYTES) - 1
        if last > end:
            raise SimulatedFailure(
                "sigbus" if trap else "vm_fault",
                f"{'SIGBUS' if trap else 'memory access fault'}: {what}: {max(first, end + 1) * PAGE_BYTES:#x} lies "
                f"beyond the end of file {self.file.name!r}",
            )
        rounds = 0
        while vma.count(first, last, NOWHERE) and not vma.gone:
            if rounds == _ROUNDS:
                raise SimulatedFailure(
                    "host_out_of_memory", f"{what}: the page cache has no room for {self.file.name!r}"
                )
            rounds += 1
            for start, stop in self._runs(first, last, NOWHERE):
                yield from self._map(start, stop, trap=trap)
        if write and not vma.gone:
            yield from self._write(first, last, what, trap=trap)

    def _runs(self, first: int, last: int, place: int) -> list[tuple[int, int]]:
        """Where pages of first..last lie at `place`: first and last page of each run."""
        vma, found = self._vma, []
        where, base = vma.where, vma.first
        one = bytes([place])
        at, end = where.find(one, first - base, last - base + 1), last - base + 1
        while at >= 0:
            stop = at + 1
            rest = where[at:end]
            stop = at + len(rest) - len(rest.lstrip(one))
            found.append((base + at, base + stop - 1))
            at = where.find(one, stop, end)
        return found

    def _map(self, first: int, last: int, *, trap: bool) -> Stages:
        """Pages first..last, none of which is mapped: read what is not in memory, and map what is then."""
        vma, inode, io = self._vma, self.file.inode, self._io
        base = vma.first
        if io.holds_all(inode):
            io.cache.missing(inode, first - base, last - base)  # they are in use
            yield from self._enter(first, last, trap=trap)
            return
        window = io.window_pages
        page = first
        while page <= last and not vma.gone:
            stop = min(last, page + window - 1)
            if stop - page + 1 < window:  # a lone fault reads around itself
                low = max(0, page - base - (window - (stop - page + 1)) // 2)
            else:
                low = page - base
            high = min(max(low + window - 1, stop - base), -(-inode.size // PAGE_BYTES) - 1)
            if io.cache.missing(inode, page - base, stop - base):
                yield from io.page_in(inode, low, high)
            else:
                yield from io.page_in(inode, page - base, stop - base)
            for start, end in self._present(page, stop):
                yield from self._enter(start, end, trap=trap)
            page = stop + 1

    def _present(self, first: int, last: int) -> list[tuple[int, int]]:
        """Runs of first..last that are in the page cache now and not mapped yet."""
        base, found = self._vma.first, []
        page = first
        for start, end in [
            *self._io.cache.missing(self.file.inode, first - base, last - base),
            (last + 1 - base, 0),
        ]:
            if page < start + base:
                found += self._runs(page, start + base - 1, NOWHERE)
            page = end + base + 1
        return found

    def _enter(self, first: int, last: int, *, trap: bool) -> Stages:
        vma = self._vma
        start, end = first - vma.first, last - vma.first + 1
        vma.where[start:end] = vma.where[start:end].replace(bytes([NOWHERE]), bytes([FILE]))
        count = end - start
        traps = (
            -(-count * PAGE_BYTES // self.costs.fault_around) * self._paging.spec.pages.fault if trap else 0
        )
        yield Kind.PAGE_CACHE, traps + count * self.costs.map

    def _write(self, first: int, last: int, what: str, *, trap: bool) -> Stages:
        """Stores to first..last, which are all mapped."""
        vma, cost = self._vma, self._paging.spec.pages
        count = vma.count(first, last, FILE)
        if not count:
            return
        trapped = cost.fault if trap else 0
        runs = self._runs(first, last, FILE)
        start, end = first - vma.first, last - vma.first + 1
        if self.shared:
            vma.where[start:end] = vma.where[start:end].replace(bytes([FILE]), bytes([FILE_WRITE]))
            inode = self.file.inode
            for low, high in runs:
                self._io.dirty(inode, low - vma.first, high - vma.first)
            yield Kind.PAGE_CACHE, count * (trapped + self.costs.make_writable)
            yield from self._io.throttle()
            return
        self._paging.host.take(count, what)
        vma.where[start:end] = vma.where[start:end].replace(bytes([FILE]), bytes([RAM]))
        yield Kind.PAGE_ALLOC, count * (trapped + cost.alloc), Kind.PAGE_COPY, self._paging.copy_ps(count)
        for low, high in runs:
            self._notify(vma, low, high, Event.CLEAR)

    def would_read(self, first: int, last: int) -> bool:
        """Has any page of first..last to come from the drive?"""
        base, inode = self._vma.first, self.file.inode
        end = min(last, base + -(-inode.size // PAGE_BYTES) - 1)
        if end < first or self._io.holds_all(inode):
            return False
        return bool(self._io.cache.missing(inode, first - base, end - base))

    def start_reading(self, first: int, last: int) -> None:
        """Read first..last without waiting for it."""
        key = (first, last)
        if key not in self._reading:
            self._reading.add(key)
            base = self._vma.first
            end = min(last - base, -(-self.file.size // PAGE_BYTES) - 1)
            stages = self._io.page_in(self.file.inode, first - base, end)
            self._run(stages, partial(self._reading.discard, key))

    # -- what the page cache tells ---------------------------------------------------------------------------------

    def mapped(self, first: int, last: int) -> int:
        """A mask of the pages first..last of the file that are mapped."""
        part = self._vma.where[first : last + 1]
        return sum(1 << number for number, place in enumerate(part) if place in (FILE, FILE_WRITE))

    def lost(self, first: int, last: int) -> None:
        """Pages first..last of the file leave memory."""
        self._change(first, last, {FILE: NOWHERE, FILE_WRITE: NOWHERE}, Event.CLEAR)

    def cleaned(self, first: int, last: int) -> None:
        """Pages first..last of the file are being written back: the next store has to fault again."""
        self._change(first, last, {FILE_WRITE: FILE}, Event.PROTECTION_PAGE)

    def _change(self, first: int, last: int, places: dict[int, int], event: Event) -> None:
        vma = self._vma
        end = min(last + 1, len(vma.where))
        if first >= end or vma.gone:
            return
        part = vma.where[first:end]
        hit = [number for old in places for number in (part.find(old), part.rfind(old)) if number >= 0]
        if not hit:
            return
        for old, new in places.items():
            part = part.replace(bytes([old]), bytes([new]))
        vma.where[first:end] = part
        self._notify(vma, vma.first + first + min(hit), vma.first + first + max(hit), event)
