"""The page cache: ranges, recency, dirtiness."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.linux.address_space import HostMemory
from gpusim.linux.page_cache import PageCache
from tests.storage import GIB, Rig


def cache_of(pages):
    rig = Rig()
    return PageCache(HostMemory(pages * 4096)), rig.file().inode, rig.file().inode


def test_what_was_inserted_is_there_and_the_gaps_are_missing():
    cache, inode, _ = cache_of(10_000)
    assert cache.insert(inode, 10, 19, dirty=False) == 10
    assert cache.insert(inode, 15, 24, dirty=False) == 5
    assert cache.missing(inode, 0, 30) == [(0, 9), (25, 30)]
    assert cache.missing(inode, 12, 20) == []


def test_a_run_goes_on_over_the_blocks():
    cache, inode, _ = cache_of(10_000)
    cache.insert(inode, 0, 9, dirty=False)
    cache.insert(inode, 2000, 2009, dirty=False)
    assert cache.missing(inode, 0, 3000) == [(10, 1999), (2010, 3000)]


def test_the_block_used_longest_ago_goes_first():
    cache, inode, other = cache_of(1024)
    cache.insert(inode, 0, 511, dirty=False)
    cache.insert(other, 0, 511, dirty=False)
    cache.missing(inode, 0, 0)  # used again
    cache.insert(inode, 512, 1023, dirty=False)
    assert cache.missing(inode, 0, 1023) == []
    assert cache.missing(other, 0, 511) == [(0, 511)]


def test_dirty_pages_stay_when_caches_are_dropped_and_when_memory_is_short():
    cache, inode, other = cache_of(1024)
    cache.insert(inode, 0, 99, dirty=True)
    cache.insert(inode, 100, 199, dirty=False)
    assert cache.drop(None) == 100
    cache.insert(other, 0, 1023, dirty=False)
    assert cache.missing(inode, 0, 99) == []
    assert cache.clean(inode, 1000) == 100
    assert cache.drop(inode) == 100
    assert inode.cached == 0


def test_memory_that_programs_take_is_not_the_caches():
    host = HostMemory(1024 * 4096)
    cache, inode = PageCache(host), Rig().file().inode
    cache.insert(inode, 0, 511, dirty=False)
    host.take(600, "a program")
    cache.insert(inode, 512, 1023, dirty=False)
    assert cache.pages <= 1024 - 600 + 512  # by blocks


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["read", "write", "clean", "drop", "cut"]),
            st.integers(0, 3000),
            st.integers(0, 900),
        )
    )
)
def test_pages_are_counted_exactly(operations):
    """Held against sets of pages."""
    cache, inode, _ = cache_of(GIB // 4096)
    present, dirty = set(), set()
    for what, first, length in operations:
        pages = set(range(first, first + length + 1))
        if what in ("read", "write"):
            new = cache.insert(inode, first, first + length, dirty=what == "write")
            assert new == len(pages - present)
            present |= pages
            dirty |= pages if what == "write" else set()
        elif what == "clean":
            assert cache.clean(inode, 1 << 40) == len(dirty)
            dirty = set()
        elif what == "drop":
            cache.drop(inode)
            present &= dirty
        else:
            cache.invalidate(inode, first, first + length)
            present -= pages
            dirty -= pages
    assert cache.pages == inode.cached == len(present)
    assert cache.dirty == inode.dirty == len(dirty)
    lacking = {page for start, end in cache.missing(inode, 0, 4000) for page in range(start, end + 1)}
    assert lacking == set(range(4001)) - present
