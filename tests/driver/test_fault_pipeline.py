"""The switches of the fault path, each with both behaviours, on programs of one kernel.

What the closed forms serve and what the pipeline of vectors serves is the same work: with a switch that makes no
difference to one process the two must agree.
"""

import pytest

from gpusim.kinds import Kind
from tests.programs import launch, process, run, synchronize, touch

MALLOC = {"x": "32MiB malloc"}
MANAGED = {"x": "16MiB hipMallocManaged"}
SMALL = {"scale": {"step": "64KiB"}}


def touched(buffers=MALLOC, *, steps=None, **keys):
    return run(steps or [launch(writes="x")], buffers=buffers, **keys)


def conserved(ran):
    """Every raised fault has exactly one fate, and nobody is left waiting."""
    assert ran.outcome == "completed"
    assert ran.faults["pending"] == 0
    assert min(ran.faults.values()) >= 0
    assert sum(ran.attribution.values()) == ran.makespan_ps
    assert all(use.busy_ps <= ran.makespan_ps for use in ran.data.uses if use.group == "worker")


@pytest.mark.parametrize("buffers", [MALLOC, MANAGED], ids=["malloc", "managed"])
def test_the_pipeline_agrees_with_the_closed_forms(buffers):
    """One process has one VMID: serving each VMID by a worker of its own changes nothing for it."""
    closed, simulated = (
        touched(buffers, driver={"service": service}) for service in ("one_worker", "per_vmid")
    )
    conserved(simulated)
    assert simulated.faults["serviced"] == closed.faults["serviced"]
    assert simulated.makespan_ps == pytest.approx(closed.makespan_ps, rel=0.02)
    for counter in ("duplicates", "skipped_recent"):
        assert simulated.faults[counter] == pytest.approx(closed.faults[counter], rel=0.05)


# -- dedup -------------------------------------------------------------------------------------------------------------


def test_without_a_cam_each_resend_comes_to_the_ring():
    cam, filtered = (touched(driver={"dedup": dedup}) for dedup in ("cam", "filter"))
    conserved(filtered)
    assert filtered.faults["serviced"] == cam.faults["serviced"]
    assert filtered.faults["overflowed"] > 100 * filtered.faults["serviced"]  # ring 1 holds 127 vectors
    assert cam.faults["overflowed"] == 0


def test_the_filter_recognises_what_comes_again_within_its_window():
    """64 wavefronts wait for one page each: all that fits in the ring, so what the filter drops are re-sends."""
    one = {"scale": {"step": "4KiB"}}
    steps = [launch(writes="x")]
    ran = run(
        steps,
        buffers={"x": "256KiB hipMallocManaged", "y": "256KiB hipMallocManaged"},
        kernels=one,
        driver={"dedup": "filter"},
        overrides={"gpu.retry.period": "2us", "driver.interrupts.ring1": 4096},
    )
    conserved(ran)
    assert ran.faults["filtered"] > ran.faults["serviced"]
    wide = run(
        steps,
        buffers={"x": "256KiB hipMallocManaged"},
        kernels=one,
        driver={"dedup": "filter"},
        overrides={
            "gpu.retry.period": "2us",
            "driver.interrupts.ring1": 4096,
            "driver.interrupts.filter_ticks": 1,
        },
    )
    assert wide.faults["filtered"] < ran.faults["filtered"]


def test_the_table_of_the_fifo_has_no_limit_of_512():
    """1,024 pages wait at once. Beyond the CAM they are dropped by chance; the FIFO keeps all in order."""
    spec = {"scale": {"mapping": "blocked", "step": "16KiB"}}
    ran = touched(kernels=spec, driver={"dedup": "address_vmid"})
    conserved(ran)
    assert ran.faults["serviced"] == 16
    assert ran.faults["overflowed"] == 0


# -- ack ---------------------------------------------------------------------------------------------------------------


def test_a_slot_that_is_freed_on_success_only_hides_faults_that_the_driver_dropped():
    always, on_success = (
        touched(MANAGED, driver={"ack": ack, "service": "per_vmid"}) for ack in ("always", "on_success")
    )
    conserved(always)
    assert on_success.outcome == "livelock"
    assert on_success.faults["serviced"] == 1  # the others came within 2 ms, and are hidden since
    assert on_success.faults["pending"] > 0


def test_without_drops_it_makes_no_difference_when_a_slot_is_freed():
    always, on_success = (
        touched(MANAGED, driver={"ack": ack, "service": "per_vmid", "recent_skip": "off"})
        for ack in ("always", "on_success")
    )
    conserved(on_success)
    assert on_success.makespan_ps == always.makespan_ps


# -- replay ------------------------------------------------------------------------------------------------------------


def test_a_command_replays_without_a_timer():
    timer, command = (
        touched(driver={"service": "per_vmid", "replay": replay})
        for replay in ("retry_until_valid", "fault_done_command")
    )
    conserved(command)
    assert command.faults["serviced"] == timer.faults["serviced"]
    assert command.raised < timer.raised / 100  # nobody sends while it waits
    period = 10_000_000
    resend = command.data.tables["faults"]["resend_ps"]
    assert set(resend) == {1_000_000}  # the command's own time
    assert timer.data.tables["faults"]["resend_ps"].max() <= period


def test_a_command_that_finds_no_page_makes_the_access_fault_again():
    ran = touched(MANAGED, driver={"replay": "fault_done_command"})
    conserved(ran)
    assert ran.faults["skipped_recent"] > 100


# -- service -----------------------------------------------------------------------------------------------------------


def test_two_processes_do_not_wait_for_each_other_with_a_worker_each():
    one, each = (
        touched({"x": "16MiB malloc"}, count=2, driver={"service": service})
        for service in ("one_worker", "per_vmid")
    )
    conserved(each)
    assert each.makespan_ps < 0.65 * one.makespan_ps
    names = {use.name for use in each.data.uses if use.group == "worker"}
    assert {
        "gpu[0].fault_worker[3]",
        "gpu[0].fault_worker[4]",
        "gpu[0].interrupts",
    } <= names  # the first VMIDs of the KFD


# -- throttle ----------------------------------------------------------------------------------------------------------


def test_merging_serves_several_granules_at_once():
    none, merge = (touched(driver={"throttle": throttle}) for throttle in ("none", "merge"))
    conserved(merge)
    assert merge.faults["serviced"] < none.faults["serviced"] / 4
    assert merge.makespan_ps < none.makespan_ps
    spent = {
        name: ran.attribution.get(Kind.DRIVER_FIXED, 0) for name, ran in (("none", none), ("merge", merge))
    }
    assert spent["merge"] < spent["none"]


def test_merging_keeps_faults_of_a_range_that_was_just_restored():
    none, merge = (touched(MANAGED, driver={"throttle": throttle}) for throttle in ("none", "merge"))
    conserved(merge)
    assert merge.faults["skipped_recent"] < none.faults["skipped_recent"] / 3  # once each, not once a re-send


def test_merging_is_for_each_process_alone():
    merge = touched({"x": "8MiB malloc"}, count=2, driver={"throttle": "merge"})
    conserved(merge)
    assert set(merge.data.tables["faults"]["process"]) == {"app[0]", "app[1]"}


# -- unit --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unit", "serviced"), [("granule", 2), ("range", 1), ("page", 1024)])
def test_the_unit_says_how_much_one_fault_maps(unit, serviced):
    ran = touched({"x": "4MiB hipMallocManaged"}, driver={"unit": unit, "recent_skip": "off"})
    conserved(ran)
    assert ran.faults["serviced"] == serviced


# -- rings -------------------------------------------------------------------------------------------------------------


def test_a_vector_that_a_full_soft_ring_loses_keeps_its_slot():
    """More CAM entries than the soft ring holds: what is lost is never acknowledged, and its page stays hidden."""
    ran = touched(
        {"x": "64MiB hipMallocManaged"},
        driver={"service": "per_vmid"},
        overrides={"driver.interrupts.soft_ring": 16, "driver.svm.range_max": "2MiB"},
        kernels={"scale": {"step": "2MiB"}},
        limit="1s",
    )
    assert ran.faults["overflowed"] > 0
    assert ran.outcome == "livelock"


def test_the_interrupt_handler_reads_at_most_31_vectors_a_pass():
    ran = touched(driver={"service": "per_vmid"})
    (use,) = [use for use in ran.data.uses if use.name == "gpu[0].interrupts"]
    vectors = 512  # pages that wait
    assert use.busy_ps >= vectors * 150_000


# -- unmap -------------------------------------------------------------------------------------------------------------


def test_faults_that_were_sent_before_an_unmap_are_stale_and_come_again():
    steps = [
        launch("first", writes="y"),
        launch("second", writes="x", wait=False, stream="a"),
        {"sleep": {"duration": "1ms"}},
        {"free": {"buffer": "y"}},
        synchronize(),
    ]
    kernels = {"first": {"step": "64KiB"}, "second": {"step": "64KiB"}}
    buffers = {"x": "32MiB malloc", "y": "2MiB malloc"}
    ran = run(steps, buffers=buffers, kernels=kernels, driver={"service": "per_vmid"})
    conserved(ran)
    assert ran.faults["stale"] > 0


@pytest.mark.parametrize(
    ("allocator", "step"), [("malloc", "64KiB"), ("hipMallocManaged", "64KiB"), ("malloc", "16KiB")]
)
def test_stale_faults_are_counted_without_an_event_for_each(allocator, step):
    """The same as with each vector simulated, also where more pages wait than the CAM holds."""
    unmaps = [
        one
        for part in range(5)
        for one in (
            {"sleep": {"duration": "1ms"}},
            {"munmap": {"buffer": "y", "offset": f"{part}MiB", "size": "1MiB"}},
        )
    ]
    steps = [launch("scale", writes="x", wait=False, stream="a"), *unmaps, synchronize()]
    keys = {"buffers": {"x": f"32MiB {allocator}", "y": "8MiB malloc"}, "kernels": {"scale": {"step": step}}}
    counted, simulated = run(steps, **keys), run(steps, **keys, driver={"service": "per_vmid"})
    assert counted.makespan_ps == pytest.approx(simulated.makespan_ps, rel=0.02)
    assert counted.faults["stale"] == pytest.approx(simulated.faults["stale"], rel=0.2)
    assert simulated.faults["stale"] > 100


def test_a_cam_that_lets_more_through_than_the_soft_ring_holds_loses_vectors():
    """Then each vector is simulated, whatever the switches: one that is lost keeps its slot."""
    keys = {"buffers": {"x": "32MiB malloc"}, "kernels": {"scale": {"step": "16KiB"}}}
    fits, overflows = (
        run([launch("scale", writes="x")], **keys, overrides={"gpu.retry.cam_entries": cam})
        for cam in (512, 513)
    )
    assert "overflowed" not in fits.faults
    assert overflows.faults["overflowed"] == 1


# -- presets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["kfd-6.3", "kfd-6.8", "kfd-6.12", "whitepaper"])
def test_each_preset_serves_a_first_touch(preset):
    ran = touched({"x": "4MiB malloc", "y": "4MiB hipMallocManaged"}, driver={"preset": preset})
    conserved(ran)
    assert ran.faults["serviced"] >= 2


def test_two_programs_under_the_white_paper():
    programs = [
        process([launch(writes="x")], name="one", buffers={"x": "2MiB malloc"}),
        process([launch(writes="x")], name="two", buffers={"x": "2MiB malloc"}),
    ]
    ran = run(processes=programs, kernels=SMALL, driver={"preset": "whitepaper"})
    conserved(ran)


def test_a_replay_of_a_page_that_is_still_missing_faults_again():
    """The CPU takes the page back: the next fault is stale, and its replay finds nothing either."""
    steps = [launch(writes="x"), touch("x"), launch(writes="x", name="again")]
    ran = run(steps, buffers={"x": "4KiB malloc"}, driver={"replay": "fault_done_command"})
    assert ran.faults["serviced"] == 2
    assert ran.faults["stale"] + ran.faults["skipped_recent"] > 0
