"""The 2 ms rule where a fault has waited for the SVM mutex (`kfd_svm.md` 2, step 12).

The driver reads the time when the worker takes a vector up, and compares it with the mutex held: a fault that waited
while its range was restored for another GPU is dropped, and sent again until 2 ms have passed.
"""

import pytest

from tests.programs import MS, launch, run

TWO = [
    launch(reads="x", gpu="gpu0", wait=False, stream="one"),
    launch(reads="x", gpu="gpu1", wait=False, stream="two", name="other"),
    {"synchronize": {}},
]
MODES = {
    "grouped": {},
    "stepwise": {"stepwise": True},
    "each vector": {"driver": {"service": "per_vmid"}},
    "merging": {"driver": {"throttle": "merge"}},
}


def two_gpus(mode, *, recent_skip="2ms", allocator="hipMallocManaged"):
    keys = dict(MODES[mode])
    keys["driver"] = {**keys.get("driver", {}), "recent_skip": recent_skip}
    return run(TWO, buffers={"x": f"2MiB {allocator}"}, gpus=2, node="mi210-xgmi", **keys)


def pause(ran):
    """From the first service's end to when the worker takes up the second fault for good; 0 if it had before."""
    rows = ran.data.tables["faults"]
    return max(0, rows["started_ps"].max() - rows["mapped_ps"].min())


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_that_waited_for_another_gpus_service_of_its_range_is_too_soon(mode):
    ran = two_gpus(mode)
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 2
    assert ran.faults["skipped_recent"] > 0
    assert 2 * MS <= pause(ran) < 2.1 * MS


@pytest.mark.parametrize("mode", MODES)
def test_without_the_rule_it_is_served_when_it_gets_the_mutex(mode):
    ran = two_gpus(mode, recent_skip="off")
    assert ran.faults["serviced"] == 2
    assert ran.faults["skipped_recent"] == 0
    assert pause(ran) == 0
