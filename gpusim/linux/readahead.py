"""Reading a file ahead of its readers: which readers are sequential, and what is on its way for them."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.engine.environment import Environment
from gpusim.hardware.fabric import HOST
from gpusim.linux.file import Ahead, Inode, Reader
from gpusim.linux.io_costs import IoCosts
from gpusim.linux.page_cache import PageCache
from gpusim.spec import PAGE_BYTES

Done = Callable[[], None]
#: sequential readers of one file that are told apart
_READERS = 64


class Readahead:
    """A reader that goes on where one ended before is sequential: the next window is read while he uses this one.

    Left out: the growth of the window in its first rounds, and what an application asks for with `posix_fadvise`.
    """

    def __init__(self, costs: IoCosts, cache: PageCache, linked: Environment | None = None) -> None:
        """`linked` is given where spans are recorded: what is under way then says how long it would take alone."""
        self._costs = costs
        self._cache = cache
        self._linked = linked

    def window(self, pages: int) -> int:
        """Pages that one request of the page cache reads for a reader that asks for `pages` at a time."""
        return max(self._costs.readahead, min(pages * PAGE_BYTES, self._costs.largest_request)) // PAGE_BYTES

    def stream(self, inode: Inode, pages: int) -> float | None:
        """The rate of a reader that waits for `pages`, with two windows in flight (bytes a second); None: the drive's
        for one request, which is enough for them.
        """
        if pages <= self.window(pages):
            return None
        read = inode.device.drives[0].spec.read
        window = self.window(pages) * PAGE_BYTES
        return 2 * window * 1e12 / (read.latency + window * 1e12 / read.stream)

    def comes(self, inode: Inode, first: int, last: int) -> Reader | None:
        """A reader asks for pages first..last. None: he was not here before. Entering his newest window starts the
        next one.
        """
        reader = inode.streams.pop(first, None)
        if reader is None:
            return Reader() if first == 0 else None
        reader.windows = [window for window in reader.windows if window.last >= first]
        if reader.windows and reader.windows[-1].first <= last <= reader.windows[-1].last:
            self._launch(inode, reader, reader.windows[-1].last + 1, last - first + 1)
        return reader

    def goes_on(self, inode: Inode, first: int, last: int, reader: Reader | None) -> None:
        """The reader has pages first..last; if he has outrun his windows, the next one starts."""
        if reader is None:
            reader = Reader()
        elif not reader.windows or reader.windows[-1].last <= last:
            self._launch(inode, reader, last + 1, last - first + 1)
        streams = inode.streams
        streams[last + 1] = reader
        while len(streams) > _READERS:
            del streams[next(iter(streams))]

    def _launch(self, inode: Inode, reader: Reader, first: int, pages: int) -> None:
        """Read the window that begins at `first`, for a reader that asks for `pages` at a time."""
        last = min(first + self.window(pages) - 1, (inode.size - 1) // PAGE_BYTES)
        if last < first:
            return
        window = Ahead(first, last)
        reader.windows.append(window)
        self._fetch(inode, window, self._cache.missing(inode, first, last))

    def _fetch(self, inode: Inode, ahead: Ahead, runs: list[tuple[int, int]]) -> None:
        if not runs:
            ahead.done = True
            return
        first, last = runs[0][0], runs[-1][1]

        def fetched() -> None:
            self._cache.insert(inode, first, last, dirty=False)
            ahead.done = True
            for call in ahead.waiting:
                call()
            ahead.waiting.clear()

        offset, size = first * PAGE_BYTES, sum(end - start + 1 for start, end in runs) * PAGE_BYTES
        if self._linked is not None:
            alone = inode.device.alone_ps(offset, size, HOST, write=False)
            ahead.alone_end_ps = self._linked.now + alone
        inode.device.submit(offset, size, HOST, fetched, write=False)
