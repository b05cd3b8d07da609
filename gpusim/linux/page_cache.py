"""Which pages of files are in memory: ranges, recency, dirtiness; the state only, no time passes here."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from gpusim.linux.address_space import HostMemory

if TYPE_CHECKING:
    from gpusim.linux.file import Inode

#: pages of one block: the grain of recency and of eviction
BLOCK_PAGES = 512
_FULL = (1 << BLOCK_PAGES) - 1


class Block:
    """512 pages of a file: bit masks of those present and those dirty."""

    __slots__ = ("dirty", "present")

    def __init__(self) -> None:
        self.present = 0
        self.dirty = 0


class PageCache:
    """Pages of all files, at most as many as host memory has free; the block used longest ago goes first.

    `dirty` counts dirty pages. Costs about 200 bytes per 2 MiB that are cached. Left out: the two lists of Linux and
    refaults, folios, and eviction page by page.
    """

    def __init__(self, host: HostMemory) -> None:
        self._host = host
        self._blocks: OrderedDict[tuple[Inode, int], Block] = OrderedDict()
        self.pages = 0
        self.dirty = 0
        self.evicted = 0

    @property
    def room(self) -> int:
        """Pages that the cache may hold now."""
        return self._host.pages - self._host.used

    def missing(self, inode: Inode, first: int, last: int) -> list[tuple[int, int]]:
        """Runs of pages of first..last that are not in memory; those that are become the most recent."""
        runs: list[tuple[int, int]] = []
        blocks = self._blocks
        page = first
        while page <= last:
            index = page // BLOCK_PAGES
            base = index * BLOCK_PAGES
            end = min(last, base + BLOCK_PAGES - 1)
            block = blocks.get((inode, index))
            if block is None:
                _extend(runs, page, end)
            else:
                blocks.move_to_end((inode, index))
                wanted = _mask(page - base, end - base)
                lacking = wanted & ~block.present
                while lacking:
                    low = (lacking & -lacking).bit_length() - 1
                    run = lacking >> low
                    length = (~run & (run + 1)).bit_length() - 1
                    _extend(runs, base + low, base + low + length - 1)
                    lacking &= ~_mask(low, low + length - 1)
            page = end + 1
        return runs

    def insert(self, inode: Inode, first: int, last: int, *, dirty: bool) -> int:
        """Pages first..last are in memory from now on; how many of them are new. Others go if there is no room."""
        blocks = self._blocks
        new = 0
        page = first
        while page <= last:
            index = page // BLOCK_PAGES
            base = index * BLOCK_PAGES
            end = min(last, base + BLOCK_PAGES - 1)
            key = (inode, index)
            block = blocks.get(key)
            if block is None:
                block = blocks[key] = Block()
            else:
                blocks.move_to_end(key)
            mask = _mask(page - base, end - base)
            new += (mask & ~block.present).bit_count()
            block.present = _shared(block.present | mask)
            if dirty:
                added = (mask & ~block.dirty).bit_count()
                self.dirty += added
                inode.dirty += added
                block.dirty = _shared(block.dirty | mask)
                inode.dirty_blocks[index] = block
            page = end + 1
        self.pages += new
        inode.cached += new
        if self.pages > self.room:
            self._shrink()
        return new

    def _shrink(self) -> None:
        """Evict blocks without dirty pages, the oldest first, until there is room; dirty ones get another round."""
        excess = self.pages - self.room
        victims: list[tuple[tuple[Inode, int], Block]] = []
        spared: list[tuple[Inode, int]] = []
        for key, block in self._blocks.items():
            if excess <= 0:
                break
            if block.dirty or any(mapping.pinned for mapping in key[0].mappings):
                spared.append(key)
            else:
                victims.append((key, block))
                excess -= block.present.bit_count()
        for key, block in victims:
            self.evicted += block.present.bit_count()
            self._forget(key, block)
        for key in spared:
            self._blocks.move_to_end(key)

    def _forget(self, key: tuple[Inode, int], block: Block) -> None:
        count = block.present.bit_count()
        self.pages -= count
        key[0].cached -= count
        del self._blocks[key]
        _tell_lost(key[0], key[1] * BLOCK_PAGES, BLOCK_PAGES)

    def clean(self, inode: Inode, most: int) -> int:
        """Mark up to about `most` dirty pages of a file as clean, a block at a time; how many that was."""
        done = 0
        blocks = inode.dirty_blocks
        while blocks and done < most:
            index = next(iter(blocks))
            block = blocks.pop(index)
            done += block.dirty.bit_count()
            block.dirty = 0
            for mapping in inode.mappings:
                mapping.cleaned(index * BLOCK_PAGES, (index + 1) * BLOCK_PAGES - 1)
        self.dirty -= done
        inode.dirty -= done
        return done

    def is_dirty(self, inode: Inode, first: int, last: int) -> bool:
        """Is a page of first..last dirty?"""
        for index, block in inode.dirty_blocks.items():
            base = index * BLOCK_PAGES
            low, high = max(first - base, 0), min(last - base, BLOCK_PAGES - 1)
            if low <= high and block.dirty & _mask(low, high):
                return True
        return False

    def drop(self, inode: Inode | None) -> int:
        """Clean pages of one file or of all go, but for those that somebody maps; how many that was."""
        before = self.pages
        for key in [key for key in self._blocks if inode is None or key[0] is inode]:
            block = self._blocks[key]
            kept = block.dirty
            for mapping in key[0].mappings:
                kept |= block.present & mapping.mapped(key[1] * BLOCK_PAGES, (key[1] + 1) * BLOCK_PAGES - 1)
            if not kept:
                self._forget(key, block)
            else:
                lost = (block.present & ~kept).bit_count()
                block.present = kept
                self.pages -= lost
                key[0].cached -= lost
        return before - self.pages

    def invalidate(self, inode: Inode, first: int, last: int) -> None:
        """Pages first..last go, clean or dirty: direct I/O has written past them."""
        for index in range(first // BLOCK_PAGES, last // BLOCK_PAGES + 1):
            key = (inode, index)
            block = self._blocks.get(key)
            if block is None:
                continue
            base = index * BLOCK_PAGES
            keep = ~_mask(max(first, base) - base, min(last - base, BLOCK_PAGES - 1))
            lost = (block.present & ~keep).bit_count()
            cleaned = (block.dirty & ~keep).bit_count()
            block.present &= keep
            block.dirty &= keep
            self.pages -= lost
            inode.cached -= lost
            self.dirty -= cleaned
            inode.dirty -= cleaned
            _tell_lost(inode, max(first, base), min(last, base + BLOCK_PAGES - 1) - max(first, base) + 1)
            if not block.dirty:
                inode.dirty_blocks.pop(index, None)
            if not block.present:
                del self._blocks[key]


def _tell_lost(inode: Inode, first: int, pages: int) -> None:
    for mapping in inode.mappings:
        mapping.lost(first, first + pages - 1)


def _mask(first: int, last: int) -> int:
    if first == 0 and last == BLOCK_PAGES - 1:
        return _FULL
    return ((1 << (last - first + 1)) - 1) << first


def _shared(mask: int) -> int:
    """One object for all full masks."""
    return _FULL if mask == _FULL else mask


def _extend(runs: list[tuple[int, int]], first: int, last: int) -> None:
    if runs and runs[-1][1] == first - 1:
        runs[-1] = (runs[-1][0], last)
    else:
        runs.append((first, last))
