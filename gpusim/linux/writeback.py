"""Dirty pages on their way to the drives: the flusher of each device, and writers that have to wait for it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from gpusim.engine.environment import Environment, Timer
from gpusim.hardware.fabric import HOST
from gpusim.linux.block_device import BlockDevice
from gpusim.linux.file import Inode
from gpusim.linux.io_costs import IoCosts
from gpusim.linux.page_cache import PageCache
from gpusim.spec import PAGE_BYTES

Done = Callable[[], None]


class Writeback:
    """Writes dirty pages out in rounds of `writeback` bytes, one round at a time on each device.

    It begins when more than `background_ratio` of free memory is dirty and ends below that; above `dirty_ratio`
    writers wait. A file that has been dirty for longer than `dirty_age.expire` is written whole, when the flusher looks
    for such files the next time. Left out: bandwidth estimation and the throttling of writers before the limit, and the
    order of inodes.
    """

    def __init__(self, costs: IoCosts, cache: PageCache, env: Environment) -> None:
        self._costs = costs
        self._env = env
        self._timer: Timer | None = None
        self.wanted: Callable[[], bool] = lambda: True  # is there still a program?
        self._due: dict[BlockDevice, dict[Inode, None]] = {}  # files that are too old
        self._cache = cache
        self._inodes: dict[BlockDevice, dict[Inode, None]] = {}
        self._busy: set[BlockDevice] = set()
        self._held: list[Done] = []
        self.written_bytes = 0

    @property
    def _background(self) -> int:
        return int(self._cache.room * self._costs.background_ratio)

    @property
    def _limit(self) -> int:
        return int(self._cache.room * self._costs.dirty_ratio)

    def dirtied(self, inode: Inode) -> None:
        """Pages of a file have become dirty."""
        self._inodes.setdefault(inode.device, {})[inode] = None
        if inode.dirty_since_ps < 0:
            inode.dirty_since_ps = self._env.now
        age = self._costs.dirty_age
        if self._timer is None and age is not None:
            self._timer = self._env.call_at(self._env.now + age.wakeup, self._wake)
        if self._cache.dirty > self._background:
            for device in self._inodes:
                if device not in self._busy:
                    self._round(device)

    @property
    def over_limit(self) -> bool:
        """Do writers have to wait?"""
        return self._cache.dirty > self._limit

    def when_below(self, call: Done) -> None:
        """Call when writers may go on."""
        self._held.append(call)

    def sync(self, inode: Inode, done: Done) -> None:
        """Write all dirty pages of a file, and wait for those that are on their way."""
        pages = self._clean(inode, inode.dirty)
        if pages:
            self._write(inode, pages * PAGE_BYTES)
        if inode.writing:
            inode.waiting.append(done)
        else:
            done()

    def _wake(self) -> None:
        """The flusher looks for files that are too old."""
        age = self._costs.dirty_age
        assert age is not None
        self._timer = None
        if not self.wanted():
            return
        now, dirty = self._env.now, False
        for device, inodes in self._inodes.items():
            for inode in inodes:
                if inode.dirty:
                    dirty = True
                    if now - inode.dirty_since_ps >= age.expire:
                        self._due.setdefault(device, {})[inode] = None
        if dirty:
            self._timer = self._env.call_at(now + age.wakeup, self._wake)
        for device in list(self._due):
            if device not in self._busy:
                self._round(device)

    def _clean(self, inode: Inode, most: int) -> int:
        pages = self._cache.clean(inode, most)
        if not inode.dirty:
            inode.dirty_since_ps = -1
        return pages

    def _round(self, device: BlockDevice) -> None:
        due = self._due.get(device, {})
        inodes = self._inodes[device]
        for inode in [*due, *inodes]:
            most = self._costs.writeback // PAGE_BYTES
            if inode.mappings and inode not in due:  # those who map a page lose it: no more than has to be
                most = min(most, max(1, self._cache.dirty - self._background))
            if inode not in due and self._cache.dirty <= self._background:
                break
            pages = self._clean(inode, most)
            if pages:
                self._busy.add(device)
                self._write(inode, pages * PAGE_BYTES, lambda: self._rounded(device))
                return
            due.pop(inode, None)
            inodes.pop(inode, None)
        if not due:
            self._due.pop(device, None)

    def _rounded(self, device: BlockDevice) -> None:
        self._busy.discard(device)
        if device in self._due or self._cache.dirty > self._background:
            self._round(device)

    def _write(self, inode: Inode, size_bytes: int, then: Done | None = None) -> None:
        inode.writing += size_bytes
        self.written_bytes += size_bytes

        def written() -> None:
            inode.writing -= size_bytes
            if then is not None:
                then()
            if not self.over_limit and self._held:
                held, self._held = self._held, []
                for call in held:
                    call()
            if not inode.writing:
                waiting, inode.waiting = inode.waiting, []
                for call in waiting:
                    call()

        # many requests at once: no limit of a single one
        inode.device.submit(0, size_bytes, HOST, written, write=True, stream=inf)
