"""File I/O as the kernel does it: pread, pwrite, fdatasync, and direct I/O on pages of a GPU.

Every call is a generator of stages for the thread that makes it (`engine/stages.py`) and returns the bytes moved,
which is short at the end of the file. A call that fails raises CallError with its errno.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial

from gpusim.engine.cores import Cores
from gpusim.engine.express import Express
from gpusim.engine.flows import Flow, Network
from gpusim.engine.stages import REACH, Do, Early, Stage, Stages, Transfer, Until
from gpusim.errors import CallError
from gpusim.hardware.drive import EXPRESS_BYTES
from gpusim.hardware.fabric import HOST, HOST_MEMORY
from gpusim.kinds import Kind
from gpusim.linux.file import Ahead, File, Inode, Journal
from gpusim.linux.io_costs import IoCosts
from gpusim.linux.page_cache import PageCache
from gpusim.linux.readahead import Readahead
from gpusim.linux.writeback import Writeback
from gpusim.spec import PAGE_BYTES

Bytes = Generator[Stage, int, int]
PAGE_CACHE_LINK = "host.page_cache"
#: a copy reads and writes memory
_COPY = ((PAGE_CACHE_LINK, 1.0), (HOST_MEMORY, 2.0))
#: what a file system that does not report its alignment takes (`hipfile.md` 1.4)
_ALIGN = 4096


class FileIo:
    """The file I/O of a node. `distance(drive, gpu)` is negative where no peer-to-peer transfer is possible."""

    def __init__(
        self,
        costs: IoCosts,
        *,
        network: Network,
        express: Express,
        cache: PageCache,
        distance: Callable[[str, int], int],
        linked: bool = False,
    ) -> None:
        """`linked`: spans are recorded, so each request tells what it would have taken alone."""
        self.linked = linked
        self.costs = costs
        self.cache = cache
        self.writeback = Writeback(costs, cache, network.env)
        self._readahead = Readahead(costs, cache, network.env if linked else None)
        self._network = network
        self._express = express
        self._distance = distance
        self._copy_lanes = express.path(_COPY)
        self.cores: Cores | None = None  # where its threads may have to wait for one

    # -- reading ---------------------------------------------------------------------------------------------------

    def pread(self, file: File, offset: int, size: int, *, direct: bool = False) -> Bytes:
        """Read into host memory, through the page cache or directly."""
        inode = file.inode
        costs = self.costs
        if file.no_bytes is not None:
            yield Kind.FILE_SYSTEM, costs.syscall
            raise CallError(file.no_bytes)
        if direct:
            self._check_direct(file, offset, size)
        size = max(0, min(size, inode.size - offset))
        if direct:
            yield from self._direct_read(inode, offset, size, HOST, costs.syscall + costs.direct)
            return size
        reached = yield Kind.FILE_SYSTEM, costs.syscall
        if not size:
            return 0
        first, last = offset // PAGE_BYTES, (offset + size - 1) // PAGE_BYTES
        if self.holds_all(inode):
            self.cache.missing(inode, first, last)
        else:
            yield from self._bring_in(inode, first, last)
            reached = yield ()
        yield from self._copy(size, costs.cache_read, reached)
        return size

    # -- for those who map a file ----------------------------------------------------------------------------------

    @property
    def window_pages(self) -> int:
        """What a page fault that finds nothing in memory reads at once."""
        return max(1, self.costs.readahead // PAGE_BYTES)

    @staticmethod
    def holds_all(inode: Inode) -> bool:
        """Is all of a file in memory?"""
        return inode.memory_only or inode.cached * PAGE_BYTES >= inode.size

    def page_in(self, inode: Inode, first: int, last: int) -> Stages:
        """Have pages first..last of a file in memory, a window at a time."""
        window = self.window_pages
        for page in range(first, last + 1, window):
            yield from self._bring_in(inode, page, min(last, page + window - 1))

    def dirty(self, inode: Inode, first: int, last: int) -> None:
        """Pages first..last are written to through a mapping."""
        if not inode.memory_only:
            self.cache.insert(inode, first, last, dirty=True)
            self.writeback.dirtied(inode)

    def throttle(self) -> Stages:
        """Who dirties pages waits while there are too many."""
        while self.writeback.over_limit:
            yield Transfer(Kind.WRITEBACK, self.writeback.when_below)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _bring_in(self, inode: Inode, first: int, last: int) -> Stages:
        """Have pages first..last in the page cache; the next window too, for a sequential reader."""
        readahead = self._readahead
        reader = readahead.comes(inode, first, last)
        if reader is not None:
            for window in reader.windows:
                if window.first <= last and not window.done:
                    yield self._wait_for(window)
        for start, end in self.cache.missing(inode, first, last):
            stream = readahead.stream(inode, end - start + 1)
            yield self._fetching(inode, start, end, stream)
        readahead.goes_on(inode, first, last, reader)

    def _wait_for(self, window: Ahead) -> Transfer:
        """For what was asked for ahead: alone it would take what is left of what that would."""
        if not self.linked:
            return Transfer(Kind.DRIVE, window.when_done)

        def start(done: Callable[[], None]) -> None:
            wait.alone_ps = max(1, window.alone_end_ps - self._network.env.now)
            window.when_done(done)

        wait = Transfer(Kind.DRIVE, start)
        return wait

    def _fetching(self, inode: Inode, first: int, last: int, stream: float | None) -> Transfer:
        alone = None
        if self.linked:
            size = (last - first + 1) * PAGE_BYTES
            alone = inode.device.alone_ps(first * PAGE_BYTES, size, HOST, write=False, stream=stream)
        return Transfer(Kind.DRIVE, partial(self._fetch, inode, first, last, stream), alone_ps=alone)

    def _fetch(
        self, inode: Inode, first: int, last: int, stream: float | None, done: Callable[[], None]
    ) -> None:
        def fetched() -> None:
            self.cache.insert(inode, first, last, dirty=False)
            done()

        size = (last - first + 1) * PAGE_BYTES
        inode.device.submit(first * PAGE_BYTES, size, HOST, fetched, write=False, stream=stream)

    # -- writing ---------------------------------------------------------------------------------------------------

    def pwrite(self, file: File, offset: int, size: int, *, direct: bool = False) -> Bytes:
        """Write from host memory, into the page cache or directly."""
        inode, costs, cache = file.inode, self.costs, self.cache
        if file.no_bytes is not None:
            yield Kind.FILE_SYSTEM, costs.syscall
            raise CallError(file.no_bytes)
        if offset + size > inode.size:
            self._claim(file, offset + size)
        if direct:
            self._check_direct(file, offset, size)
            yield from self._direct_write(inode, offset, size, HOST, costs.syscall + costs.direct)
            return size
        yield Kind.FILE_SYSTEM, costs.syscall
        if not size:
            return 0
        first, last = offset // PAGE_BYTES, (offset + size - 1) // PAGE_BYTES
        yield from self._read_edges(inode, offset, size)
        new = cache.insert(inode, first, last, dirty=not inode.memory_only)
        reached = yield Kind.PAGE_CACHE, new * costs.cache_page
        yield from self._copy(size, costs.cache_write, reached)
        self._grow(inode, offset + size)
        if not inode.memory_only:
            self.writeback.dirtied(inode)
            yield from self.throttle()
        return size

    def _read_edges(self, inode: Inode, offset: int, size: int) -> Stages:
        """A page that is written in part, lies in the file and is not in memory has to be read first."""
        for at in (offset, offset + size):
            page = at // PAGE_BYTES
            if at % PAGE_BYTES and page * PAGE_BYTES < inode.size and not inode.memory_only:
                for start, end in self.cache.missing(inode, page, page):
                    yield self._fetching(inode, start, end, None)

    def submit_direct(
        self, file: File, offset: int, size: int, done: Callable[[int], None], *, write: bool
    ) -> Stages:
        """io_submit of one request with O_DIRECT: `done` is called with the bytes moved when the drive has done it.

        Raises CallError as pread and pwrite do. What the page cache has of its pages is written out before.
        """
        inode, costs = file.inode, self.costs
        if file.no_bytes is not None:
            yield Kind.FILE_SYSTEM, costs.syscall
            raise CallError(file.no_bytes)
        self._check_direct(file, offset, size)
        if not write:
            size = max(0, min(size, inode.size - offset))
        elif offset + size > inode.size:
            self._claim(file, offset + size)
        if inode.cached or inode.writing:
            yield from self._write_out(inode, offset, size)
            if write and size:
                self.cache.invalidate(inode, offset // PAGE_BYTES, (offset + size - 1) // PAGE_BYTES)
        yield Kind.FILE_SYSTEM, costs.syscall + costs.direct

        def moved() -> None:
            if write:
                self._grow(inode, offset + size)
            done(size)

        if size:
            yield Do(partial(inode.device.submit, offset, size, HOST, moved, write=write))
        else:
            yield Do(moved)

    def _direct_read(self, inode: Inode, offset: int, size: int, target: int, cost_ps: int) -> Stages:
        """`cost_ps` of CPU time, then a request to the drive."""
        if inode.dirty or inode.writing:
            yield from self._write_out(inode, offset, size)
        yield from self._request(inode, offset, size, target, False, cost_ps)

    def _direct_write(self, inode: Inode, offset: int, size: int, target: int, cost_ps: int) -> Stages:
        if inode.cached and size:
            yield from self._write_out(inode, offset, size)
            self.cache.invalidate(inode, offset // PAGE_BYTES, (offset + size - 1) // PAGE_BYTES)
        yield from self._request(inode, offset, size, target, True, cost_ps)
        if size:
            self._grow(inode, offset + size)

    def _request(
        self, inode: Inode, offset: int, size: int, target: int, write: bool, cost_ps: int
    ) -> Stages:
        begun = yield ()
        if not size:
            yield Kind.FILE_SYSTEM, cost_ps
            return
        if size <= EXPRESS_BYTES:
            end = inode.device.reserve(offset, size, target, begun + cost_ps, write=write)
            if end >= 0:
                yield from self._at_drive(inode, offset, size, target, write, cost_ps, end - begun - cost_ps)
                return
        yield Kind.FILE_SYSTEM, cost_ps
        reached = yield ()
        alone = self.alone_ps(inode, offset, size, target, write=write)
        start = partial(self._drive, inode, offset, size, target, write, at_ps=reached)
        yield Early(Kind.DRIVE, start, alone)

    def alone_ps(self, inode: Inode, offset: int, size: int, target: int, *, write: bool) -> int | None:
        """What a request would take at the drive with nobody else there; None where nobody records it."""
        return inode.device.alone_ps(offset, size, target, write=write) if self.linked else None

    def _at_drive(
        self, inode: Inode, offset: int, size: int, target: int, write: bool, cost_ps: int, drive_ps: int
    ) -> Stages:
        """A small request whose time at the drive is known."""
        if self.linked:
            reached = yield Kind.FILE_SYSTEM, cost_ps
            alone = self.alone_ps(inode, offset, size, target, write=write)
            yield Until(Kind.DRIVE, reached + drive_ps, alone_ps=alone)
        else:
            yield Kind.FILE_SYSTEM, cost_ps, Kind.DRIVE, drive_ps
        yield REACH

    def _write_out(self, inode: Inode, offset: int, size: int) -> Stages:
        """Direct I/O waits until what the cache holds of its pages is on the drive, and for all that is on its way."""
        last = (offset + max(1, size) - 1) // PAGE_BYTES
        if inode.writing or self.cache.is_dirty(inode, offset // PAGE_BYTES, last):
            yield Transfer(Kind.WRITEBACK, partial(self.writeback.sync, inode))

    @staticmethod
    def _claim(file: File, end: int) -> None:
        """May the file become so long? Raises CallError ENOSPC: a block device ends, and so does what files lie on."""
        inode, volume = file.inode, file.inode.volume
        if file.type == "block" or (volume is not None and volume.used + end - inode.size > volume.capacity):
            raise CallError("ENOSPC")

    @staticmethod
    def _grow(inode: Inode, end: int) -> None:
        if end > inode.size:
            if inode.volume is not None:
                inode.volume.used += end - inode.size
            inode.size = end
            inode.extended = True

    def fdatasync(self, file: File) -> Stages:
        """Dirty pages go to the drive; then a journal commit if the file has grown, else a flush."""
        inode, costs = file.inode, self.costs
        yield Kind.FILE_SYSTEM, costs.syscall
        if inode.memory_only:
            return
        dirty = inode.dirty
        if dirty or inode.writing:
            if dirty and file.journal is Journal.JOURNAL:  # data go to the journal first
                yield Transfer(Kind.WRITEBACK, partial(self._drive, inode, 0, dirty * PAGE_BYTES, HOST, True))
            yield Transfer(Kind.WRITEBACK, partial(self.writeback.sync, inode))
        if inode.extended:
            inode.extended = False
            if file.commits:
                yield Kind.FILE_SYSTEM, costs.journal
                commit = partial(self._drive, inode, 0, costs.journal_size, HOST, True)
                yield Transfer(Kind.WRITEBACK, commit)
        yield Transfer(Kind.WRITEBACK, inode.device.flush)

    # -- direct I/O between a drive and a GPU ------------------------------------------------------------------------

    def dma(
        self, file: File, offset: int, size: int, *, gpu: int, write: bool, at_ps: int | None = None
    ) -> Bytes:
        """VFS direct I/O on pages of VRAM: one flow from the drive over switches and root ports to the GPU, or back.

        Alignment is the caller's to check, as the driver does. `at_ps` is the time that it has reached, if it knows.
        """
        inode, cost = file.inode, self.costs.direct
        if not write:
            size = max(0, min(size, inode.size - offset))
        if 0 < size <= EXPRESS_BYTES:
            begun = (yield ()) if at_ps is None else at_ps
            end = self.reserve(file, offset, size, gpu=gpu, write=write, at_ps=begun)
            if end >= 0:
                yield from self._at_drive(inode, offset, size, gpu, write, cost, end - begun - cost)
                return size
        if write:
            if offset + size > inode.size:
                self._claim(file, offset + size)
            yield from self._direct_write(inode, offset, size, gpu, cost)
        else:
            yield from self._direct_read(inode, offset, size, gpu, cost)
        return size

    @staticmethod
    def plain(file: File, offset: int, size: int) -> bool:
        """Is direct I/O on this part a matter of the drive alone? Nothing is in memory, and all lies in the file."""
        inode = file.inode
        return size > 0 and not inode.cached and not inode.writing and offset + size <= inode.size

    def reserve(self, file: File, offset: int, size: int, *, gpu: int, write: bool, at_ps: int) -> int:
        """`dma` of a small and plain request at `at_ps`, now or later, by arithmetic alone; returns its end.

        It spends `costs.direct` on the CPU and the rest at the drive. -1 where it has to wait for something, does not
        lie in the file as it is, or is not small: then it is for `dma`.
        """
        if size > EXPRESS_BYTES or not self.plain(file, offset, size):
            return -1
        return file.inode.device.reserve(offset, size, gpu, at_ps + self.costs.direct, write=write)

    def p2p_distance(self, file: File, gpu: int) -> int:
        """How far the GPU is from the file's drive; negative: they cannot reach each other."""
        drives = file.device.drives
        return min(self._distance(drive.name, gpu) for drive in drives)

    # -- the rest --------------------------------------------------------------------------------------------------

    def drop_caches(self, file: File | None) -> Stages:
        """Clean pages of one file, or of all, leave memory."""
        inode = file.inode if file is not None else None
        yield Kind.FILE_SYSTEM, self.costs.syscall
        if inode is None or not inode.memory_only:
            yield Do(lambda: self._drop(inode))

    def _drop(self, inode: Inode | None) -> None:
        self.cache.drop(inode)

    def _check_direct(self, file: File, offset: int, size: int) -> None:
        """Raises CallError EINVAL where direct I/O is not possible."""
        if not file.supports_o_direct or file.inode.memory_only:
            raise CallError("EINVAL")
        align = _ALIGN if file.dio_offset_align is None else file.dio_offset_align
        if not align or offset % align or size % align:
            raise CallError("EINVAL")

    @staticmethod
    def _drive(
        inode: Inode,
        offset: int,
        size: int,
        target: int,
        write: bool,
        done: Callable[[], None],
        at_ps: int | None = None,
    ) -> None:
        inode.device.submit(offset, size, target, done, write=write, at_ps=at_ps)

    def _copy(self, size: int, rate: float, reached_ps: int) -> Stages:
        """The thread copies between the page cache and its buffer; all threads share what memory gives."""
        if size <= EXPRESS_BYTES and self._express.idle(self._copy_lanes):
            alone = int(size * 1e12 / rate)
            end = max(reached_ps + alone, self._express.reserve(self._copy_lanes, size, reached_ps))
            yield Until(Kind.PAGE_CACHE, end, alone_ps=max(1, alone))
            yield REACH
        else:
            yield self._copying(size, rate)

    def _copying(self, size: int, rate: float) -> Transfer:
        def move(ended: Callable[[Flow], None]) -> Flow:
            return self._network.transfer(_COPY, size, cap_bytes_per_s=rate, done=ended)

        def start(done: Callable[[], None]) -> None:
            if self.cores is None:
                copied.on(move(lambda _: done()))
            else:
                copied.on(self.cores.move(move, lambda _: done()))

        copied = Transfer(Kind.PAGE_CACHE, start)
        return copied
