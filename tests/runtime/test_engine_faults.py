"""Copy engines and the command processor fault as kernels do: on the same pages, in the same ring."""

from collections import Counter

import pytest

from gpusim.kinds import Kind
from tests.programs import MIB, MS, launch, memcpy, prefetch, run, synchronize, touch

COPY = {"x": "8MiB hipMallocManaged", "d": "8MiB hipMalloc"}


def clients(ran):
    return Counter(ran.data.tables["faults"]["client"])


def test_a_copy_from_managed_memory_faults_it_in_granule_by_granule():
    """One range: its four granules come 2 ms apart."""
    ran = run([touch("x"), memcpy("d", "x")], buffers=COPY)
    assert clients(ran) == {"sdma": 4}
    assert ran.migrated("host_to_device") == 8 * MIB
    assert 6 * MS < ran.duration("memcpy") * 1e12 < 10 * MS
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_what_a_copy_waits_for_is_the_window_of_the_range():
    """The worker is idle until the next granule's fault comes, and then drops it until the 2 ms are over."""
    ran = run([touch("x"), memcpy("d", "x")], buffers=COPY)
    assert 5.5 * MS < ran.attribution[Kind.RECENT_SKIP] < 6.1 * MS
    assert ran.attribution[Kind.FAULT_DELIVERY] < 0.1 * MS


def test_a_page_that_goes_again_leaves_no_hole_in_the_path():
    """A fork takes the page away between its mapping and the engine's next send."""
    forked = {"fork": {"wait": False, "steps": [touch("x"), {"sleep": {"duration": "2ms"}}]}}
    ran = run(
        threads={"main": [touch("x", size="1MiB"), forked], "copies": [memcpy("d", "x")]},
        buffers={"x": "4MiB hipMallocManaged", "d": "4MiB hipMalloc"},
        gpus=2,
    )
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_a_copy_to_managed_memory_faults_as_well():
    ran = run([memcpy("x", "d")], buffers=COPY, driver={"recent_skip": "off"})
    assert clients(ran) == {"sdma": 4}
    assert ran.data.tables["faults"]["write"].all()


def test_a_copy_of_what_is_mapped_does_not_fault():
    ran = run([prefetch("x"), memcpy("d", "x")], buffers=COPY)
    assert ran.faults["serviced"] == 0


def test_without_xnack_the_cpu_copies():
    ran = run([touch("x"), memcpy("d", "x")], buffers=COPY, xnack=False)
    assert ran.faults["serviced"] == 0
    assert ran.link_bytes("h2d") == 8 * MIB


def test_what_is_pageable_is_copied_by_the_cpu():
    ran = run([touch("x"), memcpy("d", "x")], buffers={**COPY, "x": "8MiB malloc"})
    assert ran.faults["serviced"] == 0


@pytest.mark.parametrize("mode", [False, True], ids=["grouped", "stepwise"])
def test_a_copy_and_a_kernel_share_the_ring(mode):
    """The copy waits behind the kernel's faults, and both end; whoever comes to a granule first faults for both."""
    steps = [
        touch("x"),
        launch(writes="y", wait=False, stream="kernel"),
        memcpy("d", "x", is_async=True, stream="copy"),
        synchronize(),
    ]
    buffers = {**COPY, "y": "8MiB malloc"}
    together = run(steps, buffers=buffers, stepwise=mode)
    assert clients(together) == {"compute_unit": 4, "sdma": 4}
    alone = run([touch("x"), memcpy("d", "x")], buffers=COPY, stepwise=mode)
    assert together.duration("memcpy") > alone.duration("memcpy")


def test_vectors_of_engines_pass_through_the_rings():
    ran = run([touch("x"), memcpy("d", "x")], buffers=COPY, driver={"service": "per_vmid"})
    assert clients(ran) == {"sdma": 4}


def test_a_command_that_replays_lets_an_engine_go_on():
    ran = run(
        [touch("x"), memcpy("d", "x")], buffers=COPY, driver={"preset": "whitepaper", "unit": "granule"}
    )
    assert clients(ran) == {"sdma": 4}


def test_the_command_processor_faults_for_the_descriptor_of_a_kernel():
    ran = run(
        [touch("code"), launch(writes="d", executes=["code"])],
        buffers={"d": "8MiB hipMalloc", "code": "2MiB hipMallocManaged"},
    )
    assert clients(ran) == {"command_processor": 1}
    assert sum(ran.attribution.values()) == ran.makespan_ps
    assert run([launch(writes="d")], buffers=COPY).duration("scale") < ran.duration("scale")


@pytest.mark.parametrize(("touched_by", "said"), [("cpu", True), ("gpu", False)])
def test_an_answer_that_hangs_on_the_faults_of_copy_engines_says_so(touched_by, said):
    first = touch("x") if touched_by == "cpu" else launch(writes="x")
    copy = {"memcpy": {"dst": "d", "src": "x"}}
    ran = run([first, copy], buffers={"x": "16MiB hipMallocManaged", "d": "16MiB hipMalloc"})
    assert any("Copy engines waited" in note for note in ran.data.notes) is said
