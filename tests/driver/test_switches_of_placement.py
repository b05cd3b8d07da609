"""The switches placement, unit, recent_skip, hmm and peer_migration: what each of their values does."""

import pytest

from tests.programs import MIB, launch, run, touch

MANAGED = {"x": "8MiB hipMallocManaged"}
PREFER = {"advise": {"buffer": "x", "advice": "set_preferred_location", "device": "gpu0"}}


@pytest.mark.parametrize(("rule", "moved"), [("kfd", 8 * MIB), ("preferred_is_node", 0)])
def test_placement_without_a_preferred_location(rule, moved):
    """The driver migrates by the access bit; the white paper's rule maps host memory unless told otherwise."""
    ran = run([touch("x"), launch(reads="x")], buffers=MANAGED, driver={"placement": rule})
    assert ran.migrated("host_to_device") == moved


@pytest.mark.parametrize("rule", ["kfd", "preferred_is_node"])
def test_placement_at_the_preferred_location_is_the_same(rule):
    ran = run([touch("x"), PREFER, launch(reads="x")], buffers=MANAGED, driver={"placement": rule})
    assert ran.migrated("host_to_device") == 8 * MIB


@pytest.mark.parametrize(("unit", "faults"), [("page", 2048), ("granule", 4), ("range", 1)])
def test_unit_says_how_much_one_fault_serves(unit, faults):
    ran = run([touch("x"), launch(reads="x")], buffers=MANAGED, driver={"unit": unit, "recent_skip": "off"})
    assert ran.faults["serviced"] == faults


def test_recent_skip_holds_a_range_back():
    on = run([touch("x"), launch(reads="x")], buffers=MANAGED)
    off = run([touch("x"), launch(reads="x")], buffers=MANAGED, driver={"recent_skip": "off"})
    assert on.duration("scale") > off.duration("scale") + 3 * 2e-3 * 0.9
    assert off.faults["skipped_recent"] == 0 < on.faults["skipped_recent"]


@pytest.mark.parametrize("hmm", ["may_sleep", "non_blocking"])
def test_hmm_that_may_not_sleep_lets_the_worker_serve_others_meanwhile(hmm):
    """One buffer has to be read from swap; faults of the other wait for the drive only where the walk sleeps."""
    buffers = {"x": "4MiB malloc", "y": "4MiB malloc"}
    steps = [
        touch("x"),
        touch("y"),
        {"swap_out": {"buffer": "x"}},
        launch("a", reads="x", wait=False, stream="one"),
        launch("b", reads="y", wait=True, stream="two"),
        {"synchronize": {}},
    ]
    kernels = {"a": {"pattern": "stream"}, "b": {"pattern": "stream"}}
    ran = run(steps, buffers=buffers, driver={"hmm": hmm}, kernels=kernels)
    assert ran.outcome == "completed"
    reading = 4 * MIB / 3e9 + 2 * 64 * 80e-6
    other = ran.step("b").end_ps - ran.step("b").start_ps
    if hmm == "may_sleep":
        assert other / 1e12 > 0.5 * reading
    else:
        assert other / 1e12 < 0.5 * reading
    assert ran.duration("a") > 0.9 * reading
