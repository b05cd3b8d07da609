"""What-if policies of eviction and prefetch: none is the driver's, and each differs where it should."""

import pytest

from tests.machine.invariants import check
from tests.programs import GRANULE, MIB, launch, machine, prefetch, repeat, run_inside, scenario, touch

SMALL = {"gpu.vram": "32MiB", "driver.svm.range_min": "2MiB"}
WHOLE = {"driver.svm.range_min": "64MiB", "driver.svm.range_max": "64MiB"}


def inside(steps, buffers, **keys):
    ran = run_inside(scenario(steps, buffers=buffers, **keys))
    check(ran)
    return ran


def evictions(ran):
    return list(ran.data.tables["migrations"]["trigger"]).count("TTM_EVICTION")


# -- eviction ----------------------------------------------------------------------------------------------------------

#: `hot` is used between the parts of a buffer that fills the VRAM once more
HOT = {"hot": "8MiB malloc", **dict.fromkeys("abcdef", "8MiB malloc")}


def reuse(policy):
    steps = [launch(writes="hot", name="first")]
    for number, name in enumerate("abcdef"):
        steps += [launch(writes=name, name=f"fill{number}"), launch(reads="hot", name=f"use{number}")]
    return inside(steps, HOT, overrides=SMALL, policy={"eviction": policy})


def test_lru_keeps_what_is_used_and_the_driver_does_not():
    driver, lru = reuse("driver"), reuse("lru")
    assert lru.faults["serviced"] == 7 * 4  # hot came once
    assert driver.faults["serviced"] > lru.faults["serviced"]
    assert lru.makespan_ps < driver.makespan_ps


def test_lru_keeps_what_a_stretch_uses():
    """Resident data are walked as one job, not step by step: that counts as use, too."""
    lru = reuse("lru")
    assert all(lru.duration(f"use{number}") < 1e-3 for number in range(6))


def test_random_keeps_a_part_of_a_cyclic_walk():
    """Cyclic over more than fits: allocation order and LRU evict exactly what comes next, a draw does not."""
    steps = [repeat(4, launch(writes="x"))]
    runs = {
        policy: inside(
            steps,
            {"x": "40MiB malloc"},
            overrides=SMALL,
            kernels={"scale": {"workgroups": 1}},
            policy={"eviction": policy},
        )
        for policy in ("driver", "lru", "random")
    }
    assert evictions(runs["random"]) < 0.8 * evictions(runs["driver"])
    assert evictions(runs["lru"]) == evictions(runs["driver"])


def test_the_same_seed_draws_the_same_victims():
    steps = [repeat(3, launch(writes="x"))]
    keys = {"overrides": SMALL, "policy": {"eviction": "random"}}
    one, two, other = (inside(steps, {"x": "48MiB malloc"}, seed=seed, **keys) for seed in (1, 1, 2))
    assert one.makespan_ps == two.makespan_ps
    assert one.makespan_ps != other.makespan_ps


# -- prefetch ----------------------------------------------------------------------------------------------------------


def managed(policy, steps=None, size="64MiB"):
    """One registered range, first touched by a kernel that walks it."""
    return inside(
        steps or [touch("x"), launch(writes="x")],
        {"x": f"{size} hipMallocManaged"},
        overrides=WHOLE,
        policy={"prefetch": policy},
    )


def test_next_serves_two_granules_with_a_fault():
    driver, ahead = managed("driver"), managed("next")
    assert driver.faults["serviced"] == 32
    assert 16 <= ahead.faults["serviced"] <= 20
    assert ahead.duration("scale") < 0.7 * driver.duration("scale")  # half as many waits of 2 ms


def test_tree_doubles_what_it_migrates():
    """In order, faults on granules 0, 1, 2, 4, 8, 16 would do: each fills the block that it makes more than half full.

    Which of the pages that wait comes first after 2 ms is chance, so it takes a few more.
    """
    ran = managed("tree")
    sizes = [int(pages) * 4096 // GRANULE for pages in ran.data.tables["migrations"]["pages"]]
    assert ran.faults["serviced"] <= 12
    assert sum(sizes) == 32
    assert max(sizes) >= 16


def test_tree_moves_what_nobody_asked_for():
    """Half is there: the first fault in the other half takes all of it along."""
    steps = [
        prefetch("x", size="32MiB"),
        {"name": "scale", "launch": {"kernel": "scale", "writes": ["x"], "wait": True}},
    ]
    part = [touch("x"), *steps]
    assert managed("tree", part).faults["serviced"] == 1
    assert managed("driver", part).faults["serviced"] == 16


def test_a_prefetch_policy_stays_within_the_range():
    ran = inside([launch(writes="x")], {"x": "16MiB malloc"}, policy={"prefetch": "tree"})
    assert ran.faults["serviced"] == 8  # ranges made on the fly are one granule each


@pytest.mark.parametrize("policy", [{"eviction": "lru"}, {"prefetch": "tree"}])
def test_a_what_if_is_called_one(policy):
    ran = inside([launch(writes="x")], {"x": f"{4 * MIB}B malloc"}, policy=policy)
    assert any("what-if" in note for note in ran.data.notes)


def test_without_a_policy_nothing_is_watched():
    assert machine().hardware.node.follows_use is False
