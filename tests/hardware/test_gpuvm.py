"""Page tables of one buffer as wavefronts see them."""

from hypothesis import given
from hypothesis import strategies as st

from gpusim.hardware.gpuvm import HOST, INVALID, LOCAL, Region, Vm, Waiter

PAGES = 1500  # some blocks of 512, and a part of one


class Waiting(Waiter):
    def __init__(self):
        self.valid_ps = None

    def valid_at(self, time_ps):
        assert self.valid_ps is None, "told twice"
        self.valid_ps = time_ps

    def sends_pending(self, now_ps):
        return 1


def wait(region, page, waiter):
    waiter.page = page
    region.wait(page, waiter)


def region():
    return Region(Vm("app", 1, retry=True), "x", 0x1000, PAGES)


def test_nothing_is_valid_at_first():
    assert region().valid.count(INVALID) == PAGES


def test_a_mapping_releases_those_who_waited_for_its_pages():
    x, here, there = region(), Waiting(), Waiting()
    wait(x, 10, here)
    wait(x, 600, there)
    assert x.map(0, 511, LOCAL, 42) == 1
    assert here.valid_ps == 42
    assert there.valid_ps is None
    assert x.waiters() == 1


def test_waiters_for_other_pages_of_a_block_stay():
    x, here, there = region(), Waiting(), Waiting()
    wait(x, 10, here)
    wait(x, 11, there)
    x.map(10, 10, HOST, 42)
    assert (here.valid_ps, there.valid_ps) == (42, None)


def test_an_unmap_tells_who_is_on_the_way_before_the_pages_are_gone():
    x, seen = region(), []
    x.map(0, 99, LOCAL, 0)
    x.on_invalidate.append(lambda first, last: seen.append((first, last, x.valid[first])))
    assert x.unmap(10, 19) is True
    assert seen == [(10, 19, LOCAL)]
    assert x.valid.count(LOCAL) == 90


def test_an_unmap_of_what_is_not_mapped_tells_nobody():
    x, seen = region(), []
    x.on_invalidate.append(lambda first, last: seen.append(first))
    assert x.unmap(0, PAGES - 1) is False
    assert seen == []


def test_the_dead_are_forgotten():
    x, waiting = region(), Waiting()
    wait(x, 3, waiting)
    x.drop_waiters()
    x.map(0, PAGES - 1, LOCAL, 5)
    assert waiting.valid_ps is None


pages = st.integers(0, PAGES - 1)
scripts = st.lists(st.tuples(st.sampled_from(["map", "unmap", "wait"]), pages, pages), max_size=40)


@given(scripts)
def test_every_waiter_is_told_once_when_its_page_becomes_valid(script):
    x, model, waiting = region(), [INVALID] * PAGES, []
    for now, (what, one, other) in enumerate(script):
        first, last = min(one, other), max(one, other)
        if what == "wait" and not model[one]:
            waiting.append((one, Waiting()))
            wait(x, *waiting[-1])
        elif what == "map":
            state = LOCAL if now % 2 else HOST
            due = [w for page, w in waiting if w.valid_ps is None and first <= page <= last]
            assert x.map(first, last, state, now) == len(due)
            assert all(w.valid_ps == now for w in due)
            model[first : last + 1] = [state] * (last + 1 - first)
        elif what == "unmap":
            assert x.unmap(first, last) == any(model[first : last + 1])
            model[first : last + 1] = [INVALID] * (last + 1 - first)
    assert list(x.valid) == model
    assert x.waiters() == sum(w.valid_ps is None for _, w in waiting)


# -- fragments


def fragments(pages=4 * 512, first_page=1 << 18):
    return Region(Vm("app", 1, retry=True), "x", first_page, pages)


def test_vram_is_contiguous_and_host_memory_is_scattered():
    region = fragments()
    region.map(0, 1023, LOCAL, 0)
    region.map(1024, 2047, HOST, 0)
    assert list(region.fragments) == [9, 9, 0, 0]
    assert region.fragment_counts(2048) == {9: 2, 0: 1024}


def test_who_maps_host_memory_may_know_that_it_is_contiguous():
    region = fragments()
    region.map(0, 2047, HOST, 0, 9)
    assert region.fragment_counts(2048) == {9: 4}


def test_a_granule_of_64_kib_makes_fragments_of_64_kib():
    region = fragments()
    region.map(512, 527, LOCAL, 0)
    region.map(528, 543, LOCAL, 0)
    assert region.fragments[1] == 4


def test_the_end_of_a_buffer_is_translated_in_what_fits_in():
    region = fragments(pages=512 + 100)
    region.map(0, 611, LOCAL, 0)
    assert list(region.fragments) == [9, 6]
    assert region.fragment_counts(612) == {9: 1, 6: 2}


def test_a_page_of_its_own_splits_its_block():
    region = fragments()
    region.map(0, 511, LOCAL, 0)
    region.map(7, 7, HOST, 0)
    assert region.fragments[0] == 0


def test_an_address_that_is_not_aligned_limits_fragments():
    region = fragments(first_page=(1 << 18) + 16)
    region.map(0, 511, LOCAL, 0)
    assert region.fragments[0] == 4


@given(
    st.lists(st.tuples(st.integers(0, 1535), st.integers(1, 600), st.sampled_from([LOCAL, HOST])), max_size=8)
)
def test_fragments_cover_the_pages_of_a_buffer_once(maps):
    region = fragments(pages=1536)
    for first, pages, state in maps:
        region.map(first, min(1535, first + pages - 1), state, 0)
    assert sum(count << shift for shift, count in region.fragment_counts(1536).items()) == 1536
