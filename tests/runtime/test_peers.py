"""Several GPUs: copies between them, kernels on each other's memory, and managed memory that wanders."""

import pytest

from gpusim.kinds import Kind
from tests.machine.invariants import check
from tests.programs import GIB, MIB, launch, memcpy, prefetch, process, run, run_inside, scenario, touch

FRONTIER = "mi250x-frontier"
PAIR = {"x": "1GiB hipMalloc gpu0", "y": "1GiB hipMalloc gpu1"}


def bytes_on(ran, link):
    (use,) = [use for use in ran.data.uses if use.name == link]
    return use.bytes


def copied(source, target, node=FRONTIER, gpus=8, env=None, size="1GiB"):
    """Rate of a copy from one GPU to another, in GB/s."""
    buffers = {"x": f"{size} hipMalloc gpu{source}", "y": f"{size} hipMalloc gpu{target}"}
    program = process([memcpy("y", "x", name="copy")], buffers=buffers, env=env)
    return run(processes=[program], node=node, gpus=gpus).rate("copy") / 1e9


BLIT = {"HSA_ENABLE_SDMA": "0"}


def test_a_copy_engine_is_as_fast_over_four_links_as_it_can_be():
    """LIN012: SDMA caps at about 50 GB/s whatever the number of links."""
    assert copied(0, 1) == pytest.approx(49.4, rel=0.02)


def test_a_blit_kernel_uses_all_links():
    assert copied(0, 1, env=BLIT) > 2.5 * copied(0, 1)
    assert copied(0, 6, env=BLIT) == pytest.approx(2 * copied(0, 2, env=BLIT), rel=0.02)


def test_over_one_link_the_copy_engine_is_ahead():
    """LIN015 and LIN016: 36.9 against 41.0 GB/s."""
    assert copied(0, 3) > copied(0, 3, env=BLIT)


def test_two_hops_are_as_fast_as_their_narrowest_bundle():
    assert copied(0, 3) == pytest.approx(copied(0, 2), rel=0.01)


def test_peer_sdma_is_switched_off_for_peers_only():
    blit = copied(0, 1, env={"HSA_ENABLE_PEER_SDMA": "0"})
    assert blit == copied(0, 1, env=BLIT)


def test_without_copy_engines_a_kernel_copies_from_the_host():
    buffers = {"x": "1GiB hipMalloc", "h": "1GiB hipHostMalloc"}
    steps = [memcpy("x", "h", name="copy")]
    rates = [
        run(processes=[process(steps, buffers=buffers, env={"HSA_ENABLE_SDMA": on})]).rate("copy")
        for on in "10"
    ]
    assert rates[1] == pytest.approx(0.65 * rates[0], rel=0.02)


def test_cards_without_xgmi_copy_through_the_root_complex():
    ran = run([memcpy("y", "x", name="copy")], buffers=PAIR, gpus=2)
    assert ran.link_bytes("d2h", 0) == ran.link_bytes("h2d", 1) == GIB
    assert ran.rate("copy") / 1e9 == pytest.approx(26.98, rel=0.01)


def test_a_copy_back_uses_the_other_direction():
    ran = run([memcpy("x", "y")], buffers=PAIR, node=FRONTIER, gpus=2)
    assert bytes_on(ran, "gpu[1].xgmi[0]") == GIB
    assert bytes_on(ran, "gpu[0].xgmi[1]") == 0


def test_copies_both_ways_share_nothing_but_the_coupling():
    both = [[memcpy("y", "x", name="to", stream="a")], [memcpy("x", "y", name="back", stream="b")]]
    ran = run([{"parallel": {"branches": both}}], buffers=PAIR, node=FRONTIER, gpus=2)
    assert ran.rate("to") == pytest.approx(ran.rate("back"), rel=0.01)
    assert ran.rate("to") / 1e9 == pytest.approx(49.4, rel=0.02)


# -- kernels on memory of another GPU ----------------------------------------------------------------------------------


def test_a_kernel_reads_the_memory_of_a_peer_across_xgmi():
    ran = run_inside(
        scenario([launch(reads="x", gpu="gpu1")], buffers={"x": "1GiB hipMalloc gpu0"}, node=FRONTIER, gpus=2)
    )
    check(ran)
    assert bytes_on(ran, "gpu[0].xgmi[1]") == pytest.approx(GIB, abs=20000)
    assert ran.attribution[Kind.ZERO_COPY_LINK] > 0.9 * ran.makespan_ps
    assert GIB / ran.duration("scale") / 1e9 == pytest.approx(0.729 * 200, rel=0.05)


def test_writes_go_the_other_way():
    ran = run([launch(writes="x", gpu="gpu1")], buffers={"x": "64MiB hipMalloc gpu0"}, node=FRONTIER, gpus=2)
    assert bytes_on(ran, "gpu[1].xgmi[0]") == pytest.approx(64 * MIB, abs=2000)


def test_a_kernel_on_two_memories_lasts_as_long_as_the_far_one():
    buffers = {"near": "256MiB hipMalloc gpu0", "far": "256MiB hipMalloc gpu1"}
    far, near, both = (
        run([launch(reads=reads)], buffers=buffers, node=FRONTIER, gpus=2).duration("scale")
        for reads in ("far", "near", "near far")
    )
    assert near < 0.5 * far
    assert both == pytest.approx(far, rel=0.1)


def test_stepwise_a_peer_is_as_far():
    program = {"buffers": {"x": "64MiB hipMalloc gpu0"}, "node": FRONTIER, "gpus": 2}
    grouped, stepwise = (
        run([launch(reads="x", gpu="gpu1")], stepwise=stepwise, **program).duration("scale")
        for stepwise in (False, True)
    )
    assert grouped == pytest.approx(stepwise, rel=0.1)


# -- managed memory ----------------------------------------------------------------------------------------------------


def wander(driver=None, node=FRONTIER):
    steps = [launch(writes="x", gpu="gpu0", name="first"), launch(writes="x", gpu="gpu1", name="second")]
    ran = run_inside(scenario(steps, buffers={"x": "64MiB malloc"}, node=node, gpus=2, driver=driver))
    check(ran)
    return ran


def test_managed_memory_goes_to_another_gpu_through_ram():
    """`kfd_svm.md` 2.3: no peer copy, also inside a hive."""
    ran = wander()
    assert ran.migrated("device_to_host") == ran.migrated("host_to_device") == 64 * MIB
    assert bytes_on(ran, "gpu[0].xgmi[1]") == 0


def test_with_peer_migration_it_would_go_straight():
    ran = wander(driver={"peer_migration": "direct"})
    assert ran.migrated("device_to_device") == 64 * MIB == bytes_on(ran, "gpu[0].xgmi[1]")
    assert ran.migrated("device_to_host") == ran.migrated("host_to_device") == 0
    assert ran.duration("second") < 0.8 * wander().duration("second")


def test_peer_migration_takes_pcie_where_there_is_no_xgmi():
    ran = wander(driver={"peer_migration": "direct"}, node="mi210-pcie4")
    assert ran.link_bytes("d2h", 0) == ran.link_bytes("h2d", 1) == 64 * MIB


def test_the_whole_range_leaves_at_the_first_fault():
    """A registered range of 16 MiB: all 16 MiB go to RAM, and one granule goes on (`kfd_svm.md` 2.3)."""
    steps = [
        prefetch("x"),
        launch(writes="x", gpu="gpu1", name="second"),
    ]
    kernels = {"scale": {}}
    ran = run(steps, buffers={"x": "16MiB hipMallocManaged"}, kernels=kernels, node=FRONTIER, gpus=2)
    rows = ran.data.tables["migrations"]
    out = [int(pages) for to, pages in zip(rows["to"], rows["pages"], strict=True) if to == "host"]
    assert out == [4096]


def test_a_prefetch_to_the_other_gpu_goes_through_ram_too():
    steps = [prefetch("x", to="gpu0"), prefetch("x", to="gpu1", name="over")]
    ran = run([touch("x"), *steps], buffers={"x": "64MiB malloc"}, node=FRONTIER, gpus=2)
    assert ran.migrated("device_to_host") == 64 * MIB


def ranks(visible):
    """The last of eight ranks to have touched its 64 MiB, in seconds."""
    step = launch(writes="x", name="touch")
    eight = process([step], count=8, buffers={"x": "64MiB malloc"}, env={"ROCR_VISIBLE_DEVICES": visible})
    ran = run(processes=[eight], node=FRONTIER, gpus=8)
    return max(ran.duration(f"touch[{rank}]") for rank in range(8))


def test_eight_ranks_with_a_gcd_each_are_as_fast_as_one():
    """Each GPU has a fault worker of its own, each process a mutex of its own."""
    alone = run([launch(writes="x")], buffers={"x": "64MiB malloc"}, node=FRONTIER).duration("scale")
    assert ranks("${rank}") == pytest.approx(alone, rel=0.02)
    assert ranks("0") == pytest.approx(8 * alone, rel=0.05)


# -- the CPU on VRAM ---------------------------------------------------------------------------------------------------


def test_cpu_stores_to_vram_are_fast_and_loads_are_slow():
    """Large BAR: stores combine, loads are uncached."""
    steps = [touch("x", "write", name="store"), touch("x", "read", name="load")]
    ran = run(steps, buffers={"x": "64MiB hipMalloc"})
    assert ran.rate("store") / 1e9 == pytest.approx(10, rel=0.05)
    assert ran.rate("load") / 1e9 == pytest.approx(0.05, rel=0.05)
    assert ran.link_bytes("h2d") == ran.link_bytes("d2h") == 64 * MIB


def test_a_cpu_that_caches_vram_moves_nothing():
    """UM09: on a node with xGMI to the CPU pages stay on the GPU until they are forced back."""
    steps = [launch(writes="x"), touch("x", "read", name="look"), launch(writes="x", name="again")]
    coherent, pcie = (
        run(steps, buffers={"x": "64MiB malloc"}, node=node) for node in (FRONTIER, "mi210-pcie4")
    )
    assert coherent.migrated("device_to_host") == 0
    assert pcie.migrated("device_to_host") == 64 * MIB
    assert coherent.faults["serviced"] == 32
    assert pcie.faults["serviced"] == 64


# -- copies of memory that lies in part in VRAM ------------------------------------------------------------------------


def test_a_pageable_copy_of_what_lies_in_part_in_vram_faults_that_back():
    """The CPU fills the staging buffers, and so takes a fault for each granule in VRAM."""
    steps = [touch("x"), prefetch("x", size="16MiB"), memcpy("y", "x", name="copy")]
    ran = run_inside(scenario(steps, buffers={"x": "64MiB malloc", "y": "64MiB hipMalloc"}))
    check(ran)
    assert ran.migrated("device_to_host") == 16 * MIB
    rows = ran.data.tables["migrations"]
    assert list(rows["trigger"]).count("PAGEFAULT_CPU") == 8
