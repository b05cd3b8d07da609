"""The GPU is the first to touch memory: one granule after another, by malloc or by hipMallocManaged."""

import numpy as np
import pytest

from gpusim.kinds import Kind
from tests.programs import (
    GIB,
    GRANULE,
    MIB,
    MS,
    S,
    launch,
    machine,
    memset,
    prefetch,
    repeat,
    run,
    touch,
)

FAST = {"scale": {"step": "256KiB"}}  # fewer events; what is waited for is the same


def test_a_granule_is_served_once():
    ran = run([launch(writes="x")], buffers={"x": "64MiB malloc"})
    assert ran.faults["serviced"] == 64 * MIB // GRANULE
    assert ran.faults["pending"] == 0


def test_two_buffers_are_twice_as_many_granules():
    ran = run([launch(reads="x", writes="y")], buffers={"x": "16MiB malloc", "y": "16MiB malloc"})
    assert ran.faults["serviced"] == 16


def test_the_second_kernel_finds_everything_mapped():
    ran = run([launch(writes="x"), launch(writes="x", name="again")], buffers={"x": "16MiB malloc"})
    assert ran.faults["serviced"] == 8
    assert ran.duration("again") < 100e-6


def test_a_read_fault_also_moves_the_page():
    ran = run([launch(reads="x")], buffers={"x": "16MiB malloc"})
    assert ran.faults["serviced"] == 8
    assert not ran.data.tables["faults"]["write"].any()
    assert set(ran.data.tables["faults"]["result"]) == {"M"}


def test_one_worker_serves_one_fault_at_a_time():
    ran = run([launch(writes="x")], buffers={"x": "64MiB malloc"})
    rows = ran.data.tables["faults"]
    order = np.argsort(rows["started_ps"])
    started, mapped = rows["started_ps"][order], rows["mapped_ps"][order]
    assert (started[1:] >= mapped[:-1]).all()
    assert (mapped > started).all()


def test_each_granule_of_untouched_malloc_memory_takes_a_third_of_a_millisecond():
    """`derived.md`: 0.329 to 0.338 ms on MI210 (FAU004, FAU006, FAU008)."""
    ran = run([launch(writes="x")], buffers={"x": "800640128B malloc"})
    granules = 800640128 / GRANULE
    assert ran.duration("scale") / granules == pytest.approx(0.3335e-3, rel=0.02)


def test_the_pieces_of_a_fault_tile_its_life():
    rows = run([launch(writes="x")], buffers={"x": "32MiB malloc"}).data.tables["faults"]
    named = ("raised_ps", "started_ps", "mapped_ps", "replayed_ps", "latency_ps")
    pieces = sum(column for name, column in rows.items() if name.endswith("_ps") and name not in named)
    assert (pieces == rows["latency_ps"]).all()
    assert (rows["latency_ps"] == rows["replayed_ps"] - rows["raised_ps"]).all()


def test_no_fault_waits_longer_for_its_resend_than_a_period():
    rows = run([launch(writes="x")], buffers={"x": "32MiB malloc"}).data.tables["faults"]
    period = machine().hardware.node.devices[0].gpu.spec.retry.period
    assert (rows["resend_ps"] <= period).all()
    assert (rows["resend_ps"] > 0).all()


def test_the_second_granule_waits_for_the_first():
    """All waves fault at once: the n-th granule served waits for n - 1 services."""
    rows = run([launch(writes="x")], buffers={"x": "32MiB malloc"}).data.tables["faults"]
    latency = np.sort(rows["latency_ps"])
    assert latency[-1] > 14 * latency[0]


def test_what_the_cpu_has_written_is_copied():
    untouched = run([launch(writes="x")], buffers={"x": "32MiB malloc"})
    written = run([touch("x"), launch(writes="x")], buffers={"x": "32MiB malloc"})
    assert untouched.migrated("host_to_device") == 0
    assert written.migrated("host_to_device") == written.link_bytes("h2d") == 32 * MIB
    assert written.duration("scale") > untouched.duration("scale")
    assert written.attribution[Kind.SDMA_COPY] > 0


def test_what_is_half_written_is_copied_by_half():
    ran = run([touch("x", size="16MiB"), launch(writes="x")], buffers={"x": "32MiB malloc"})
    assert ran.migrated("host_to_device") == 16 * MIB


def test_a_memset_touches_pages_as_a_kernel_does():
    assert run([memset("x")], buffers={"x": "32MiB malloc"}).faults["serviced"] == 16


def test_ping_pong_moves_the_buffer_each_time():
    ran = run([repeat(3, touch("x"), launch(writes="x"))], buffers={"x": "32MiB malloc"})
    assert ran.faults["serviced"] == 3 * 16
    assert ran.migrated("host_to_device") == 3 * 32 * MIB
    assert ran.migrated("device_to_host") == 2 * 32 * MIB
    assert ran.link_bytes("d2h") == 2 * 32 * MIB
    triggers = set(ran.data.tables["migrations"]["trigger"])
    assert triggers == {"PAGEFAULT_GPU", "PAGEFAULT_CPU"}


def test_a_cpu_read_brings_pages_back_too():
    ran = run([launch(writes="x"), touch("x", "read", size="4MiB")], buffers={"x": "32MiB malloc"})
    assert ran.migrated("device_to_host") == 4 * MIB


# -- the 2 ms rule -----------------------------------------------------------------------------------------------------


def test_one_managed_range_gets_one_granule_in_2_ms():
    ran = run([launch(writes="x")], buffers={"x": "1GiB hipMallocManaged"}, kernels=FAST)
    assert ran.rate("scale") == pytest.approx(0.90e9, rel=0.05)
    assert ran.share(Kind.RECENT_SKIP) > 0.8
    assert ran.faults["serviced"] == 512
    assert ran.faults["skipped_recent"] > 0


def test_services_of_one_range_are_2_ms_apart():
    rows = run([launch(writes="x")], buffers={"x": "32MiB hipMallocManaged"}).data.tables["faults"]
    order = np.argsort(rows["started_ps"])
    gaps = rows["started_ps"][order][1:] - rows["mapped_ps"][order][:-1]
    assert (gaps >= 2 * MS).all()
    assert (gaps < 2.1 * MS).all()


def test_without_the_rule_managed_memory_is_as_fast_as_malloc():
    ran = run(
        [launch(writes="x")],
        buffers={"x": "1GiB hipMallocManaged"},
        kernels=FAST,
        driver={"recent_skip": "off"},
    )
    assert ran.rate("scale") == pytest.approx(6.2e9, rel=0.10)
    assert ran.faults["skipped_recent"] == 0
    assert Kind.RECENT_SKIP not in ran.attribution


def test_more_ranges_touched_at_once_get_more():
    ran = run(
        [launch(writes="x")],
        buffers={"x": "4GiB hipMallocManaged"},
        kernels={"scale": {"mapping": "blocked", "step": "1MiB"}},
    )
    assert ran.outcome == "completed"
    assert ran.rate("scale") > 3 * 0.90e9


def test_malloc_escapes_the_rule_because_its_ranges_are_no_longer_than_a_granule():
    ran = run([launch(writes="x")], buffers={"x": "64MiB malloc"})
    assert ran.faults["skipped_recent"] == 0


def test_raised_is_the_sum_of_its_parts():
    ran = run([launch(writes="x")], buffers={"x": "32MiB hipMallocManaged"})
    for counts in ran.data.faults:
        assert all(count >= 0 for count in counts.counts.values())
    assert ran.raised > ran.faults["skipped_recent"] > ran.faults["serviced"]


# -- prefetch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allocator", ["malloc", "hipMallocManaged"])
def test_after_a_prefetch_the_kernel_has_no_faults(allocator):
    ran = run([touch("x"), prefetch("x"), launch(writes="x")], buffers={"x": f"64MiB {allocator}"})
    assert ran.raised == 0
    assert ran.migrated("host_to_device") == 64 * MIB
    assert ran.duration("scale") < 100e-6
    assert set(ran.data.tables["migrations"]["trigger"]) == {"PREFETCH"}


def test_a_prefetch_beats_the_2_ms_rule_end_to_end():
    faults = run([launch(writes="x")], buffers={"x": "64MiB hipMallocManaged"})
    moved = run([prefetch("x"), launch(writes="x")], buffers={"x": "64MiB hipMallocManaged"})
    assert moved.makespan_ps * 4 < faults.makespan_ps


def test_a_prefetch_in_the_background_serves_waves_that_wait():
    """Waves fault on granules that the prefetch holds the lock for: most find them mapped when it is done."""
    ran = run(
        [
            touch("x"),
            launch(writes="x", wait=False, stream="work"),
            prefetch("x", stream="moves", wait=False),
            {"synchronize": {}},
        ],
        buffers={"x": "64MiB malloc"},
    )
    assert ran.outcome == "completed"
    assert ran.migrated("host_to_device") == 64 * MIB
    assert ran.faults["serviced"] < 32
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_a_prefetch_beside_a_kernel_is_no_slower_than_before_it():
    buffers = {"x": "64MiB malloc"}
    before = run([touch("x"), prefetch("x"), launch(writes="x")], buffers=buffers).makespan_ps
    steps = [touch("x"), launch(writes="x", wait=False, stream="work"), prefetch("x", stream="moves")]
    beside = run(steps, buffers=buffers).makespan_ps
    assert beside < 1.3 * before


def test_a_prefetch_of_a_part_leaves_the_rest_to_faults():
    ran = run([prefetch("x", size="32MiB"), launch(writes="x")], buffers={"x": "64MiB malloc"})
    assert ran.faults["serviced"] == 16


def test_a_prefetch_to_the_cpu_brings_everything_back():
    ran = run([prefetch("x"), prefetch("x", to="cpu", name="back")], buffers={"x": "64MiB malloc"})
    assert ran.migrated("device_to_host") == 64 * MIB


def test_a_prefetch_of_half_a_granule_beside_a_kernel_leaves_nobody_waiting():
    ran = run(
        [launch(writes="x", wait=False, stream="work"), prefetch("x", size="1MiB", stream="moves")],
        buffers={"x": "8MiB malloc"},
        kernels={"scale": {"step": "16KiB"}},
    )
    assert ran.outcome == "completed"


# -- several of them ---------------------------------------------------------------------------------------------------


def test_processes_on_one_gpu_share_its_worker():
    one, four = (
        run([launch(writes="x")], buffers={"x": "64MiB malloc"}, count=count).makespan_ps for count in (1, 4)
    )
    assert four == pytest.approx(4 * one, rel=0.10)


def test_processes_on_their_own_gpus_do_not():
    one = run([launch(writes="x")], buffers={"x": "64MiB malloc"}).makespan_ps
    four = run(processes=[_ranks()], gpus=4).makespan_ps
    assert four == pytest.approx(one, rel=0.02)


def _ranks():
    return {
        "name": "rank",
        "count": 4,
        "env": {"HSA_XNACK": "1", "HIP_VISIBLE_DEVICES": "${rank}"},
        "buffers": {"x": {"size": "64MiB", "allocator": "malloc"}},
        "threads": {"main": [launch(writes="x")]},
    }


def test_faults_are_counted_by_gpu_and_process():
    ran = run(processes=[_ranks()], gpus=4)
    assert sorted((f.gpu, f.process, f.counts["serviced"]) for f in ran.data.faults) == [
        (f"gpu[{i}]", f"rank[{i}]", 32) for i in range(4)
    ]


def test_memory_that_another_gpu_holds_goes_through_ram():
    ran = run(
        [launch(writes="x"), launch(writes="x", gpu="gpu1", name="there")],
        buffers={"x": "16MiB malloc"},
        gpus=2,
    )
    assert ran.outcome == "completed"
    assert ran.link_bytes("d2h", gpu=0) == 16 * MIB
    assert ran.link_bytes("h2d", gpu=1) == 16 * MIB


def test_the_time_of_a_gib_is_that_of_its_granules():
    """Nothing grows with the bytes but the number of granules."""
    short, long = (
        run([launch(writes="x")], buffers={"x": f"{size}MiB malloc"}, kernels=FAST).duration("scale")
        for size in (128, 256)
    )
    assert long == pytest.approx(2 * short, rel=0.06)
    assert GIB / MIB * long / 256 < 0.2  # seconds a GiB


def test_the_same_seed_gives_the_same_run_and_another_seed_nearly_so():
    def makespan(seed):
        return run([launch(writes="x")], buffers={"x": "32MiB hipMallocManaged"}, seed=seed).makespan_ps

    assert makespan(1) == makespan(1)
    assert makespan(1) != makespan(2)
    assert makespan(1) == pytest.approx(makespan(2), rel=0.01)
    assert makespan(1) / S > 30e-3
