"""Cache levels: the closed forms give what caches that are walked line by line give, and rates keep to Little's law."""

import random
from collections import OrderedDict
from itertools import pairwise

import pytest

from gpusim.hardware.caches import Served, ring_share, set_share, uniform_share
from gpusim.hardware.gpu_spec import CacheSpec, Indexing, Replacement
from tests.programs import machine

WAYS = 16


def cache(replacement=Replacement.LRU, indexing=Indexing.EVEN, size=1 << 20):
    return CacheSpec.model_construct(
        size=size,
        instances=1,
        ways=WAYS,
        replacement=replacement,
        indexing=indexing,
        bandwidth=1e12,
        latency=1,
    )


def walked(load, replacement, indexing, sets=256, rounds=12, warm=4):
    """Hits of a real cache of `sets` sets under a ring of lines in random order."""
    rng = random.Random(3)
    lines = list(range(round(load * sets * WAYS)))
    place = {line: (line % sets if indexing is Indexing.EVEN else rng.randrange(sets)) for line in lines}
    rng.shuffle(lines)
    held = [OrderedDict() for _ in range(sets)]  # line -> used since the marks were cleared
    hits = 0
    for number in range(rounds):
        for line in lines:
            its = held[place[line]]
            if line in its:
                hits += number >= warm
                its.move_to_end(line)
            elif len(its) == WAYS:
                if replacement is Replacement.LRU:
                    its.popitem(last=False)
                elif replacement is Replacement.RANDOM:
                    del its[rng.choice(list(its))]
                else:
                    del its[rng.choice([other for other, used in its.items() if not used])]
            its[line] = True
            if len(its) == WAYS and all(its.values()):
                for other in its:
                    its[other] = other == line
    return hits / ((rounds - warm) * len(lines))


@pytest.mark.parametrize("replacement", Replacement)
@pytest.mark.parametrize("indexing", Indexing)
@pytest.mark.parametrize("load", [0.5, 0.95, 1.1, 1.5, 2.0])
def test_a_ring_hits_what_a_cache_walked_line_by_line_hits(replacement, indexing, load):
    closed = ring_share(load, cache(replacement, indexing))
    assert closed == pytest.approx(walked(load, replacement, indexing), abs=0.06)


def test_a_ring_that_fits_hits_and_one_line_more_a_set_loses_all_under_lru():
    assert ring_share(1.0, cache()) == 1.0
    assert ring_share(17 / 16, cache()) == 0.0


@pytest.mark.parametrize("replacement", Replacement)
def test_more_lines_in_a_set_never_hit_more(replacement):
    shares = [set_share(lines, WAYS, replacement) for lines in range(1, 5 * WAYS)]
    assert shares[:WAYS] == [1.0] * WAYS
    assert all(later <= earlier + 0.03 for earlier, later in pairwise(shares))


def test_what_a_near_level_holds_the_next_one_does_not_serve_again():
    caches = machine(node="mi300x-pcie5").hardware.node.devices[0].gpu.caches
    served = caches.independent(
        uniform_share(64 << 20)
    )  # 32 KiB of L1, 4 MiB of L2, all in the Infinity Cache
    l1, l2, infinity, hbm = served.shares
    assert l1 == pytest.approx(1 / 2048)
    assert l1 + l2 == pytest.approx(1 / 16)
    assert infinity == pytest.approx(15 / 16)
    assert hbm == 0


def test_the_first_pass_misses_and_the_others_hit_what_fits():
    caches = machine(node="mi300x-pcie5").hardware.node.devices[0].gpu.caches
    assert caches.passes(128 << 20, 1).hbm == 1
    assert caches.passes(128 << 20, 4).hbm == pytest.approx(1 / 4)  # Infinity Cache
    assert caches.passes(1 << 30, 4).hbm == 1


@pytest.mark.parametrize("waves", [1, 100, 1000, 10_000])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_rate_times_loaded_latency_is_what_is_in_flight(waves, share):
    served = Served((1 - share, share), (100_000, 300_000), (1e15, 1e12), loaded=1.5)
    rate = served.rate(256.0, waves) * waves
    use = min(1.0, rate * share / 1e12)
    latency_s = ((1 - share) * 100e-9) + share * 300e-9 * (1 + 0.5 * use)
    assert rate * latency_s == pytest.approx(waves * 256.0, rel=1e-6)


def test_a_full_cache_limits_all_waves_together():
    served = Served((1.0, 0.0), (100_000, 300_000), (1e12, 1e12))
    assert served.rate(256.0, 1000) * 1000 == pytest.approx(1e12)
