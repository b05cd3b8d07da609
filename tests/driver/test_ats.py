"""`apu: ats_pri` on an MI300A: ATC, ATS requests, page requests, the PPR log, and invalidations."""

import pytest

from gpusim.hardware.atc import Atc
from gpusim.hardware.ats_spec import AtsSpec
from gpusim.hardware.gpuvm import HOST, Region, Vm
from gpusim.kinds import Kind
from tests.programs import KIB, US, launch, repeat, run, run_inside, scenario, touch

MI300A = {"node": "mi300a", "driver": {"apu": "ats_pri"}}
ONE_WAVE = {"scale": {"workgroups": 1, "workgroup": 64}}


def ats(steps, **keys):
    return run(steps, **{**MI300A, **keys})


def ats_inside(steps, **keys):
    ran = run_inside(scenario(steps, **{**MI300A, **keys}))
    return ran, ran.machine.hardware.workers[0]


def test_a_page_that_nobody_has_touched_is_asked_for_by_itself():
    """ATS request, page request, work item, fault of one page, and the ATS request again."""
    ran = ats([launch(writes="x")], buffers={"x": "4KiB malloc"}, kernels=ONE_WAVE)
    request, message, interrupt, poll = 0.55, 0.5, 0.6, 0.3
    work, fault, complete = 2.0, 0.4 + 0.365 + 0.35, 1.0
    (latency,) = ran.latencies()
    assert latency / US == pytest.approx(
        request + message + interrupt + poll + work + fault + complete + request
    )
    assert ran.data.tables["faults"]["pages"].tolist() == [1]
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_a_page_that_the_cpu_has_is_no_fault():
    ran, service = ats_inside(
        [touch("x"), launch(writes="x")],
        buffers={"x": "256KiB malloc"},
        overrides={"gpu.apu.ats.contiguous": 0.0},
    )
    assert ran.raised == 0
    assert service.atc.fills[0] == 64
    assert ran.share(Kind.TRANSLATION) > 0


def test_contiguous_blocks_and_huge_pages_need_fewer_translations():
    buffers = {"x": "4MiB malloc"}
    steps = [touch("x"), launch(reads="x")]
    fills = {}
    for share in (0.0, 1.0):
        _, service = ats_inside(steps, buffers=buffers, overrides={"gpu.apu.ats.contiguous": share})
        fills[share] = service.atc.fills
    assert fills[0.0] == {0: 1024, 3: 0, 9: 0}
    assert fills[1.0] == {0: 0, 3: 128, 9: 0}


def test_retry_faults_win_the_first_touch_and_ats_wins_what_the_cpu_has_written():
    """The granule of a retry fault populates 512 pages at once; ATS needs no fault for pages that exist."""
    cold, warm = [launch(writes="x")], [touch("x"), launch(writes="x")]
    buffers = {"x": "8MiB malloc"}
    times = {
        (name, apu): run(steps, buffers=buffers, node="mi300a", driver={"apu": apu}).duration("scale")
        for name, steps in (("cold", cold), ("warm", warm))
        for apu in ("retry_hmm", "ats_pri")
    }
    assert times["cold", "ats_pri"] > 2 * times["cold", "retry_hmm"]
    assert times["warm", "ats_pri"] < times["warm", "retry_hmm"] / 2


def test_later_kernels_find_their_translations_in_the_atc():
    steps = [launch(writes="x", name="first"), launch(writes="x", name="again")]
    ran, service = ats_inside(steps, buffers={"x": "4MiB malloc"})
    assert ran.duration("again") < ran.duration("first") / 20
    assert service.atc.evictions == 0


def test_what_does_not_fit_into_the_atc_is_asked_for_again():
    steps = [touch("x"), launch(reads="x", name="first"), launch(reads="x", name="again")]
    few = {"gpu.apu.ats.entries_4k": 256, "gpu.apu.ats.contiguous": 0.0}
    ran, service = ats_inside(steps, buffers={"x": "4MiB malloc"}, overrides=few)
    assert ran.outcome == "completed"
    assert ran.raised == 0
    assert service.atc.evictions >= 2 * 1024 - 256
    assert ran.duration("again") > 0.5 * ran.duration("first")


def test_at_most_so_many_requests_are_outstanding():
    steps = [touch("x"), launch(reads="x")]
    times = [
        ats(
            steps,
            buffers={"x": "4MiB malloc"},
            kernels={"scale": {"step": "4KiB"}},
            overrides={"gpu.apu.ats.outstanding": outstanding, "gpu.apu.ats.contiguous": 0.0},
        ).duration("scale")
        for outstanding in (64, 4)
    ]
    assert times[1] > 6 * times[0]
    assert times[1] == pytest.approx(1024 / 4 * 0.55e-6, rel=0.2)


def test_page_requests_wait_for_credits_and_one_worker_sets_the_pace():
    ran = ats([launch(writes="x")], buffers={"x": "4MiB malloc"}, kernels={"scale": {"step": "4KiB"}})
    assert ran.faults["serviced"] == 1024
    assert all(use.busy_ps <= ran.makespan_ps for use in ran.data.uses if use.group == "worker")
    assert ran.duration("scale") == pytest.approx(1024 * (2.0 + 0.4 + 0.365 + 0.35) * 1e-6, rel=0.05)


def test_a_log_that_is_too_short_loses_requests_which_are_sent_again():
    ran = ats(
        [launch(writes="x")],
        buffers={"x": "1MiB malloc"},
        kernels={"scale": {"step": "4KiB"}},
        overrides={"gpu.apu.ats.log_entries": 4, "gpu.apu.ats.page_requests": 256},
    )
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 256
    assert ran.faults["overflowed"] > 0


def test_freed_memory_leaves_the_atc():
    steps = [repeat(2, {"alloc": {"buffer": "x"}}, launch(writes="x"), {"free": {"buffer": "x"}})]
    ran, service = ats_inside(steps, buffers={"x": "256KiB malloc"})
    assert ran.faults["serviced"] == 128
    assert service.atc.invalidations == 128
    assert service.atc.held(0) == 0


def test_nothing_migrates():
    ran = ats([launch(writes="x")], buffers={"x": "64KiB hipMallocManaged"})
    assert ran.migrated("host_to_device") == 0
    assert ran.faults["serviced"] == 16


def test_memory_of_hip_malloc_needs_no_ats():
    ran, service = ats_inside([launch(writes="x")], buffers={"x": f"{64 * KIB}B hipMalloc"})
    assert sum(service.atc.fills.values()) == 0
    assert ran.outcome == "completed"


def test_a_discrete_gpu_has_no_ats():
    same = [
        run([launch(writes="x")], buffers={"x": "4MiB malloc"}, driver={"preset": "whitepaper", **apu})
        for apu in ({}, {"apu": "retry_hmm"})
    ]
    assert same[0].makespan_ps == same[1].makespan_ps


# -- the ATC alone -----------------------------------------------------------------------------------------------------


@pytest.fixture
def atc():
    spec = AtsSpec.model_construct(entries_4k=2, entries_32k=2, entries_2m=1)
    return Atc(spec)


def test_each_size_has_an_array_of_its_own(atc):
    region = Region(Vm("app", 3, retry=True), "x", 0x1000, 4096)
    region.map(0, 4095, HOST, 0)
    assert atc.fill(region, 3, 0) == (3, 3)
    assert atc.fill(region, 21, 3) == (16, 23)
    assert atc.fill(region, 600, 9) == (512, 1023)
    assert [atc.held(shift) for shift in (0, 3, 9)] == [1, 1, 1]
    atc.fill(region, 2000, 9)
    assert region.valid[512] == 0  # the array of 2 MiB translations holds one
    assert region.valid[3] == HOST


def test_an_invalidation_takes_every_translation_that_shares_a_page(atc):
    region = Region(Vm("app", 3, retry=True), "x", 0x1000, 4096)
    region.map(0, 4095, HOST, 0)
    atc.fill(region, 3, 0)
    atc.fill(region, 21, 3)
    region.unmap(20, 20)
    assert atc.invalidations == 1
    assert region.valid[16:24] == bytes(8)
    assert region.valid[3] == HOST
