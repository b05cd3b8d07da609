"""NUMA: memory of another socket is reached across it, by threads, copy engines, wavefronts and migrations.

On mi100-2s GPUs 0 to 3 are at socket 0, where all threads run, and GPUs 4 to 7 at socket 1.
"""

import pytest

from gpusim.errors import InputError
from gpusim.hardware.fabric_spec import SocketsSpec
from tests.machine import invariants
from tests.programs import (
    GIB,
    MIB,
    PAGE,
    Ran,
    free,
    host_spec,
    launch,
    machine,
    memcpy,
    prefetch,
    process,
    run,
    run_inside,
    scenario,
    sleep,
    touch,
)

NODE = "mi100-2s"
FAR_GPU, NEAR_GPU = "gpu4", "gpu0"
TO_FAR, TO_NEAR = "socket.s0.to.s1", "socket.s1.to.s0"


def sockets() -> SocketsSpec:
    spec = machine(node=NODE).hardware.fabric.spec.sockets
    assert spec is not None
    return spec


def numa():
    found = sockets().numa
    assert found is not None
    return found


def ran(*steps, buffers, xnack=False, **keys) -> Ran:
    done = run_inside(
        scenario(list(steps), buffers=buffers, node=NODE, gpus=8, xnack=xnack, **keys), record="spans"
    )
    invariants.check(done)
    assert done.outcome == "completed"
    return done


class TestThreads:
    def test_a_thread_reads_far_memory_slower_and_across_the_sockets(self):
        def read(where):
            buffers = {"x": f"1GiB malloc numa={where}"}
            return ran(touch("x", name="first"), touch("x", "read"), buffers=buffers)

        near, far = read(0), read(1)
        assert near.duration("host_touch") / far.duration("host_touch") == pytest.approx(numa().thread)
        assert (near.carried(TO_NEAR), far.carried(TO_NEAR)) == (0, GIB)
        assert (near.carried(TO_FAR), far.carried(TO_FAR)) == (0, GIB), "the first touch has written it"
        assert far.carried("host.memory[1]") == 2 * GIB
        assert far.carried("host.memory") == 0

    def test_pages_are_cleared_slower_there(self):
        def zeroed(where):
            return ran(touch("x"), buffers={"x": f"64MiB malloc numa={where}"}).step("host_touch")

        near, far = ({kind.name: t for kind, t in zeroed(n).attribution.items()} for n in (0, 1))
        assert near["PAGE_ZERO"] / far["PAGE_ZERO"] == pytest.approx(numa().thread)
        assert near["PAGE_ALLOC"] == far["PAGE_ALLOC"]

    def test_a_copy_on_the_host_crosses_once(self):
        done = ran(memcpy("y", "x"), buffers={"x": "64MiB malloc numa=1", "y": "64MiB malloc"})
        assert done.carried(TO_NEAR) == 64 * MIB
        assert done.carried("host.memory[1]") == done.carried("host.memory") == 64 * MIB


class TestCopies:
    @pytest.mark.parametrize(("gpu", "near", "far"), [(NEAR_GPU, 0, 1), (FAR_GPU, 1, 0)])
    def test_a_pinned_copy_gets_0_56_of_the_link_from_the_other_socket(self, gpu, near, far):
        """UM36: CPU of one socket to GPU of the other."""

        def rate(where):
            buffers = {"h": f"1GiB hipHostMalloc numa={where}", "d": f"1GiB hipMalloc {gpu}"}
            return ran(memcpy("d", "h"), buffers=buffers).rate("memcpy")

        assert rate(near) == pytest.approx(28e9, rel=0.01)
        assert rate(far) / rate(near) == pytest.approx(numa().dma, rel=0.01)

    def test_both_ways_at_once_cross_sockets_at_28_gb_per_s(self):
        """LIN057 and UM36: 50 GB/s at home."""

        def both(where):
            buffers = {
                "h": f"1GiB hipHostMalloc numa={where}",
                "g": f"1GiB hipHostMalloc numa={where}",
                "d": "1GiB hipMalloc",
                "e": "1GiB hipMalloc",
            }
            steps = [
                memcpy("d", "h", is_async=True, stream="up"),
                memcpy("g", "e", is_async=True, stream="down", name="back"),
                {"synchronize": {}},
            ]
            done = ran(*steps, buffers=buffers)
            return done.rate("memcpy") + done.rate("back")

        assert both(0) == pytest.approx(50e9, rel=0.02)
        assert both(1) == pytest.approx(28e9, rel=0.02)

    def test_a_pageable_copy_pays_in_the_bounce_copy(self):
        def took(where):
            buffers = {"h": f"256MiB malloc numa={where}", "d": "256MiB hipMalloc"}
            return ran(touch("h"), memcpy("d", "h"), buffers=buffers).duration("memcpy")

        assert took(0) / took(1) == pytest.approx(numa().thread, rel=0.1)

    def test_one_socket_link_is_shared_by_all_who_cross_it(self):
        """Four GPUs of socket 1 would take 4 x 15.7 GB/s from socket 0; a narrower link gives them less."""
        buffers = {f"d{n}": f"1GiB hipMalloc gpu{n}" for n in range(4, 8)}
        buffers |= {f"h{n}": "1GiB hipHostMalloc numa=0" for n in range(4, 8)}
        steps = [
            *(memcpy(f"d{n}", f"h{n}", is_async=True, stream=f"s{n}", name=f"copy{n}") for n in range(4, 8)),
            {"synchronize": {}},
        ]
        wide = ran(*steps, buffers=buffers)
        narrow = ran(*steps, buffers=buffers, overrides={"node.fabric.sockets.rate": "30GB/s"})
        assert wide.rate("copy4") == pytest.approx(0.56 * 28e9, rel=0.01)
        assert narrow.rate("copy4") == pytest.approx(30e9 / 4, rel=0.01)


class TestGpus:
    @pytest.mark.parametrize("gpu", [NEAR_GPU, FAR_GPU])
    def test_zero_copy_reads_far_memory_at_that_share_too(self, gpu):
        def rate(where):
            buffers = {"h": f"256MiB hipHostMalloc numa={where}"}
            return ran(launch(reads="h", gpu=gpu), buffers=buffers).rate("scale")

        near, far = (0, 1) if gpu == NEAR_GPU else (1, 0)
        assert rate(far) / rate(near) == pytest.approx(numa().dma, rel=0.02)

    def test_one_wavefront_loses_by_latency(self):
        def took(where, latency):
            buffers = {"h": f"4MiB hipHostMalloc numa={where}"}
            kernels = {"scale": {"pattern": "stream", "workgroups": 1}}
            overrides = {"node.fabric.sockets.latency": latency}
            return ran(launch(reads="h"), buffers=buffers, kernels=kernels, overrides=overrides).duration(
                "scale"
            )

        assert took(1, "1us") > 1.3 * took(1, "0.12us")
        assert took(0, "1us") == took(0, "0.12us")

    @pytest.mark.parametrize("way", ["up", "down"])
    def test_migrations_cross_sockets(self, way):
        def moved(where):
            steps = [touch("x"), prefetch("x", name="up"), prefetch("x", "cpu", name="down")]
            return ran(*steps, buffers={"x": f"256MiB malloc numa={where}"}, xnack=True)

        near, far = moved(0), moved(1)
        assert near.migrated("host_to_device") == far.migrated("host_to_device") == 256 * MIB
        assert far.duration(way) > near.duration(way)
        assert far.carried(TO_NEAR) == 256 * MIB
        assert far.carried(TO_FAR) == 2 * 256 * MIB, "the touch, and the way back"
        assert near.carried(TO_FAR) == 0

    def test_faults_map_far_memory_where_it_is(self):
        """With XNACK on and preferred location CPU the kernel reads it across the sockets."""
        advise = {"advise": {"buffer": "x", "advice": "set_preferred_location", "device": "cpu"}}
        retry = {"driver.noretry": 0}  # MI100 has XNACK as it was booted
        steps = [touch("x"), advise, launch(reads="x")]
        done = ran(*steps, buffers={"x": "64MiB malloc numa=1"}, xnack=True, overrides=retry)
        assert done.faults["serviced"] == 32
        assert done.carried(TO_NEAR) == pytest.approx(64 * MIB, rel=0.01)

    def test_managed_memory_without_xnack_is_read_across_the_sockets(self):
        done = ran(launch(reads="x"), buffers={"x": "64MiB hipMallocManaged numa=1"})
        assert done.carried(TO_NEAR) == pytest.approx(64 * MIB, rel=0.01)


class TestRoom:
    def test_a_buffer_has_to_fit_into_its_node(self):
        done = run(
            [touch("x")],
            buffers={"x": "3GiB malloc numa=1"},
            node=NODE,
            overrides={"cpu.memory": "6GiB", "gpu.vram": "1GiB"},
        )
        assert done.outcome == "host_out_of_memory"
        assert "NUMA node 1, to which it is bound" in done.process("app").error

    def test_what_is_not_bound_may_use_all(self):
        done = run(
            [touch("x")],
            buffers={"x": "4GiB malloc"},
            node=NODE,
            overrides={"cpu.memory": "6GiB", "gpu.vram": "1GiB"},
        )
        assert done.outcome == "completed"

    def test_freed_memory_is_free_on_its_node(self):
        steps = [touch("x"), prefetch("x"), touch("x", "read"), free("x")]
        done = ran(*steps, buffers={"x": "64MiB malloc numa=1", "y": "8MiB hipHostMalloc numa=1"}, xnack=True)
        assert done.machine.hardware.node.host.bound == [0, 8 * MIB // PAGE]


class TestOneNode:
    @pytest.mark.parametrize("node", ["mi210-pcie4", "mi300x-16nvme"])
    def test_the_only_node_by_name_changes_nothing(self, node):
        steps = [touch("x"), launch(reads="x"), memcpy("d", "x"), sleep("1us")]

        def end(numa):
            buffers = {"x": f"64MiB malloc{numa}", "d": "64MiB hipMalloc"}
            return run(steps, buffers=buffers, node=node).makespan_ps

        assert end(" numa=0") == end("")

    def test_it_has_one_memory(self):
        names = {use.name for use in run([sleep("1us")]).data.uses}
        assert "host.memory" in names
        assert not any(name.startswith("host.memory[") for name in names)
        assert machine(node="mi300x-16nvme").hardware.fabric.numa_nodes == 1, "sockets, without NUMA costs"

    def test_half_of_the_bandwidth_is_at_each_of_two(self):
        network = machine(node=NODE).hardware.network
        assert network.link("host.memory").capacity * 2e12 == host_spec(NODE).bandwidth
        assert network.link("host.memory[1]").capacity * 2e12 == host_spec(NODE).bandwidth


@pytest.mark.parametrize(
    ("buffer", "node", "message"),
    [
        ("4KiB malloc numa=1", "mi210-pcie4", "no such NUMA node .*legal: 0, the only one"),
        ("4KiB malloc numa=2", NODE, "no such NUMA node .*legal: 0 to 1"),
        ("4KiB hipMalloc numa=0", NODE, "allocator hipMalloc would ignore this key"),
    ],
)
def test_mistakes(buffer, node, message):
    with pytest.raises(InputError, match=message):
        scenario([sleep("1us")], buffers={"x": buffer}, node=node)


def test_a_mapped_file_lies_where_the_page_cache_has_it():
    app = process([sleep("1us")], buffers={"x": "4KiB mmap w"}, files={"w": "4KiB"})
    app["buffers"]["x"]["numa"] = 1
    with pytest.raises(InputError, match="allocator mmap would ignore this key"):
        scenario(processes=[app], node=NODE)
