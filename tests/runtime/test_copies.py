"""memcpy: pinned, pageable, inside the device, on streams."""

import pytest

from gpusim.kinds import Kind
from tests.programs import (
    GIB,
    MIB,
    PAGE,
    S,
    gpu_spec,
    host_spec,
    launch,
    machine,
    memcpy,
    parallel,
    prefetch,
    run,
    sleep,
    synchronize,
    touch,
)

MI210, HOST = gpu_spec(), host_spec()
NETWORK = machine().hardware.network
H2D, D2H = (NETWORK.link(f"gpu[0].pcie.{way}").capacity * S for way in ("h2d", "d2h"))
COUPLING = 0.13
PINNED = {"device": "1GiB hipMalloc", "host": "1GiB hipHostMalloc"}


@pytest.mark.parametrize("size", ["4KiB", "1MiB", "1GiB"])
def test_a_pinned_copy_is_a_fixed_part_and_the_link(size):
    ran = run([memcpy("device", "host", size=size)], buffers=PINNED)
    length = ran.step("memcpy").bytes
    assert ran.duration("memcpy") == pytest.approx(MI210.sdma.copy_h2d / S + length / H2D, rel=1e-6)
    assert ran.link_bytes("h2d") == length
    assert ran.link_bytes("d2h") == 0


def test_the_other_direction_has_its_own_rate():
    ran = run([memcpy("host", "device")], buffers=PINNED)
    assert ran.duration("memcpy") == pytest.approx(MI210.sdma.copy_d2h / S + GIB / D2H, rel=1e-6)
    assert ran.link_bytes("d2h") == GIB


def test_without_a_size_the_smaller_buffer_is_copied():
    ran = run([memcpy("x", "y")], buffers={"x": "2MiB hipMalloc", "y": "1MiB hipHostMalloc"})
    assert ran.step("memcpy").bytes == MIB


def test_offsets_leave_less_to_copy():
    step = {"memcpy": {"dst": "x", "src": "y", "dst_offset": "1MiB", "src_offset": "512KiB"}}
    ran = run([step], buffers={"x": "2MiB hipMalloc", "y": "4MiB hipHostMalloc"})
    assert ran.step("memcpy").bytes == MIB


def test_a_pageable_copy_is_limited_by_the_bounce_buffer():
    ran = run(
        [touch("host"), memcpy("device", "host")], buffers={"device": "1GiB hipMalloc", "host": "1GiB malloc"}
    )
    assert HOST.copy_bandwidth < H2D
    assert ran.duration("memcpy") == pytest.approx(GIB / HOST.copy_bandwidth, rel=0.01)
    assert ran.link_bytes("h2d") == GIB
    assert ran.attribution[Kind.BOUNCE_COPY] > 0.9 * GIB / HOST.copy_bandwidth * S


def test_a_pageable_copy_back_too():
    ran = run(
        [touch("host"), memcpy("host", "device")], buffers={"device": "1GiB hipMalloc", "host": "1GiB malloc"}
    )
    assert ran.duration("memcpy") == pytest.approx(GIB / HOST.copy_bandwidth, rel=0.01)
    assert ran.link_bytes("d2h") == GIB


def test_a_pageable_copy_touches_pages_that_nobody_has_touched():
    buffers = {"device": "64MiB hipMalloc", "host": "64MiB malloc"}
    cold = run([memcpy("device", "host")], buffers=buffers)
    warm = run([touch("host"), memcpy("device", "host")], buffers=buffers)
    pages = 64 * MIB // PAGE
    expected = pages * (HOST.pages.fault + HOST.pages.alloc + HOST.pages.zero)
    assert (cold.duration("memcpy") - warm.duration("memcpy")) * S == pytest.approx(expected, rel=1e-6)


def test_a_copy_inside_the_device_shares_hbm():
    ran = run([memcpy("a", "b")], buffers={"a": "1GiB hipMalloc", "b": "1GiB hipMalloc"})
    assert ran.duration("memcpy") == pytest.approx(
        MI210.sdma.copy_d2d / S + GIB / MI210.sdma.d2d_rate, rel=1e-6
    )
    assert ran.link_bytes("h2d") == 0


def test_a_copy_between_host_buffers_is_one_thread_copying():
    ran = run(
        [touch("a"), touch("b", name="other"), memcpy("a", "b")],
        buffers={"a": "64MiB malloc", "b": "64MiB malloc"},
    )
    assert ran.duration("memcpy") == pytest.approx(64 * MIB / HOST.copy_bandwidth, rel=1e-6)


def test_a_managed_buffer_in_vram_is_copied_from_there():
    ran = run(
        [prefetch("x"), memcpy("host", "x", size="64MiB")],
        buffers={"x": "64MiB hipMallocManaged", "host": "64MiB hipHostMalloc"},
    )
    assert ran.link_bytes("d2h") == 64 * MIB
    assert ran.migrated("device_to_host") == 0


def test_both_directions_at_once_lose_what_they_take_from_each_other():
    ran = run(
        [
            parallel(
                [memcpy("device", "host", stream="up", name="down")],
                [memcpy("back", "other", stream="down", name="up")],
                name="both",
            )
        ],
        buffers=PINNED | {"back": "1GiB hipHostMalloc", "other": "1GiB hipMalloc"},
    )
    # h2d + c * d2h = H2D and d2h + c * h2d = D2H
    together = (H2D - COUPLING * D2H) / (1 - COUPLING**2)
    assert GIB / ran.duration("down") == pytest.approx(together, rel=0.02)
    assert ran.duration("both") < 1.2 * GIB / H2D


def test_two_copies_of_one_direction_share_the_link():
    ran = run(
        [
            memcpy("device", "host", stream="a", is_async=True, name="one"),
            memcpy("other", "back", stream="b", is_async=True, name="two"),
            synchronize(),
        ],
        buffers=PINNED | {"back": "1GiB hipHostMalloc", "other": "1GiB hipMalloc"},
    )
    for name in ("one", "two"):
        assert ran.duration(name) == pytest.approx(2 * GIB / H2D, rel=1e-3)


def test_a_synchronous_copy_holds_its_thread_and_an_asynchronous_one_does_not():
    steps = [memcpy("device", "host"), touch("x")]
    held = run(steps, buffers=PINNED | {"x": "4KiB malloc"})
    assert held.step("host_touch").start_ps == held.step("memcpy").end_ps
    steps = [memcpy("device", "host", is_async=True), touch("x"), synchronize()]
    free = run(steps, buffers=PINNED | {"x": "4KiB malloc"})
    assert free.step("host_touch").start_ps == free.step("memcpy").start_ps
    assert free.step("memcpy").end_ps > free.step("host_touch").end_ps
    assert free.duration("memcpy") == pytest.approx(held.duration("memcpy"), rel=1e-9)


def test_asynchronous_copies_of_one_stream_follow_each_other():
    ran = run(
        [
            memcpy("device", "host", is_async=True, stream="s", name="one"),
            memcpy("device", "host", is_async=True, stream="s", name="two"),
            synchronize(),
        ],
        buffers=PINNED,
    )
    alone = MI210.sdma.copy_h2d / S + GIB / H2D
    assert (ran.step("two").end_ps - ran.step("one").end_ps) / S == pytest.approx(alone, rel=1e-6)


def test_a_process_ends_when_its_streams_have():
    ran = run([memcpy("device", "host", is_async=True)], buffers=PINNED)
    assert ran.makespan_ps == ran.step("memcpy").end_ps
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_a_copy_and_a_kernel_overlap_on_two_streams():
    ran = run(
        [
            memcpy("device", "host", is_async=True, stream="copy"),
            launch(writes="x", wait=False, stream="work"),
            synchronize(),
        ],
        buffers=PINNED | {"x": "1GiB hipMalloc"},
        kernels={"scale": {"duration": "40ms"}},
        xnack=False,
    )
    copy = MI210.sdma.copy_h2d / S + GIB / H2D
    start = ran.step("memcpy").start_ps / S
    assert ran.duration("memcpy") == pytest.approx(copy, rel=1e-3)
    assert ran.seconds - start == pytest.approx(max(copy, 40e-3 + MI210.compute.launch / S), rel=1e-3)


# -- zero copy ---------------------------------------------------------------------------------------------------------


def test_a_kernel_reads_pinned_memory_across_the_link():
    ran = run([launch(reads="x")], buffers={"x": "1GiB hipHostMalloc"})
    assert ran.rate("scale") == pytest.approx(H2D * MI210.zero_copy.read_efficiency, rel=2e-3)
    assert ran.link_bytes("h2d") == GIB
    assert ran.raised == 0


def test_and_writes_go_the_other_way():
    ran = run([launch(writes="x")], buffers={"x": "1GiB hipHostMalloc"})
    assert ran.rate("scale") == pytest.approx(D2H * MI210.zero_copy.write_efficiency, rel=2e-3)
    assert ran.link_bytes("d2h") == GIB


def test_managed_memory_without_xnack_is_zero_copy():
    ran = run([launch(reads="x")], buffers={"x": "256MiB hipMallocManaged"}, xnack=False)
    assert ran.raised == 0
    assert ran.rate("scale") == pytest.approx(H2D * MI210.zero_copy.read_efficiency, rel=5e-3)
    again = run(
        [launch(reads="x"), launch(reads="x", name="again")],
        buffers={"x": "256MiB hipMallocManaged"},
        xnack=False,
    )
    assert again.duration("again") == pytest.approx(again.duration("scale"), rel=1e-3)
    assert Kind.ZERO_COPY_LINK in ran.attribution


def test_a_kernel_that_copies_across_the_link_uses_both_directions():
    ran = run(
        [launch(reads="x", writes="y")], buffers={"x": "256MiB hipHostMalloc", "y": "256MiB hipHostMalloc"}
    )
    assert ran.link_bytes("h2d") == ran.link_bytes("d2h") == 256 * MIB


def test_half_in_vram_and_half_across_the_link_takes_what_the_link_takes():
    ran = run([launch(reads="x", writes="y")], buffers={"x": "256MiB hipHostMalloc", "y": "256MiB hipMalloc"})
    expected = 256 * MIB / (H2D * MI210.zero_copy.read_efficiency)
    assert ran.duration("scale") == pytest.approx(expected, rel=5e-3)


def test_a_prefetch_moves_managed_memory_without_xnack():
    steps = [prefetch("x"), sleep("10ms"), launch(writes="x")]
    ran = run(steps, buffers={"x": "64MiB hipMallocManaged"}, xnack=False)
    assert ran.outcome == "completed"
    assert ran.link_bytes("h2d") == 64 * MIB
    assert ran.duration("scale") < 100e-6


UNMAPPED = (
    "with XNACK off Migration._unmap takes the PTEs away and nobody maps them again: the driver stops the queues and "
    "its restore_work maps the new place (kfd_svm.md 3.5), so that the program goes on by zero copy"
)


def test_without_xnack_memory_that_came_back_is_zero_copy_again():
    steps = [
        prefetch("x"),
        sleep("10ms"),
        launch(writes="x"),
        touch("x"),
        sleep("10ms"),
        launch(writes="x", name="again"),
    ]
    ran = run(steps, buffers={"x": "16MiB hipMallocManaged"}, xnack=False)
    assert ran.outcome == "completed"
    assert ran.duration("again") > 5 * ran.duration("scale")


def test_without_xnack_a_prefetch_to_the_cpu_leaves_memory_mapped():
    steps = [prefetch("x"), prefetch("x", to="cpu", name="back"), launch(writes="x")]
    assert run(steps, buffers={"x": "16MiB hipMallocManaged"}, xnack=False).outcome == "completed"


def test_without_xnack_a_prefetch_beside_a_kernel_does_not_kill_it():
    steps = [launch(writes="x", wait=False, stream="work"), prefetch("x", stream="moves")]
    assert run(steps, buffers={"x": "64MiB hipMallocManaged"}, xnack=False).outcome == "completed"
