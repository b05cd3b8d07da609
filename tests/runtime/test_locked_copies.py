"""Pageable copies whose source SDMA reads where it is, and what moves under it (UM22)."""

import pytest

from gpusim.kinds import Kind
from tests.machine.invariants import check
from tests.programs import MIB, launch, memcpy, parallel, process, run, run_inside, scenario, sleep, touch

BUFFERS = {"h": "256MiB malloc", "x": "256MiB hipMalloc"}
COMPACT = {"name": "compact", "compact": {}}


def copying(*beside, xnack=True, env=None, steps=None, **keys):
    """Copy h to x in one thread, after h was filled; other threads do `beside` meanwhile."""
    lock = {"GPU_PINNED_MIN_XFER_SIZE": "1024"} if env is None else env
    body = [touch("h"), parallel([memcpy("x", "h", name="copy")], *beside)] if steps is None else steps
    program = process(body, buffers=BUFFERS, xnack=xnack, env=lock)
    ran = run_inside(scenario(processes=[program], **keys))
    check(ran)
    return ran


def test_locked_memory_is_copied_at_the_rate_of_the_link():
    locked, staged = copying(), copying(env={})
    assert locked.outcome == staged.outcome == "completed"
    assert locked.link_bytes("h2d") == staged.link_bytes("h2d") == 256 * MIB
    assert locked.duration("copy") < 0.8 * staged.duration("copy")
    assert Kind.BOUNCE_COPY not in locked.step("copy").attribution
    assert list(locked.machine.processes[0].hip.kfd.ranges) == []


def test_small_copies_are_staged_all_the_same():
    body = [touch("h"), memcpy("x", "h", size="512KiB", name="copy")]
    small = copying(steps=body)
    assert small.step("copy").attribution[Kind.BOUNCE_COPY] > 0


@pytest.mark.parametrize("down", [False, True])
def test_the_way_back_is_locked_too(down):
    pair = ("h", "x") if down else ("x", "h")
    ran = copying(steps=[touch("h"), memcpy(*pair, name="copy")])
    assert ran.link_bytes("d2h" if down else "h2d") == 256 * MIB


def test_with_xnack_on_compaction_unmaps_under_the_copy_and_the_faults_of_sdma_repair_it():
    """UM22, XNACK on: unmap and retry; no queue stops."""
    quiet, disturbed = copying(), copying([sleep("5ms"), COMPACT])
    assert disturbed.outcome == "completed"
    assert "sdma_faults" not in quiet.process("app").kfd
    assert disturbed.process("app").kfd["sdma_faults"] > 0
    assert disturbed.duration("copy") > quiet.duration("copy")
    assert events(disturbed, "UNMAP_FROM_GPU")
    assert not events(disturbed, "QUEUE_EVICTION")


def test_with_xnack_off_compaction_stops_the_queues_and_the_copy_goes_on_after_the_restore():
    """UM22, XNACK off: immune to faults; queue eviction instead."""
    quiet, disturbed = copying(xnack=False), copying([sleep("5ms"), COMPACT], xnack=False)
    assert disturbed.outcome == "completed"
    assert "sdma_faults" not in disturbed.process("app").kfd
    assert disturbed.duration("copy") > quiet.duration("copy") + 1e-3  # the delay of the restore work
    assert events(disturbed, "QUEUE_EVICTION")
    assert events(disturbed, "QUEUE_RESTORE")


@pytest.mark.parametrize("xnack", [True, False])
def test_a_repair_that_fails_is_fatal(xnack):
    """The program protects the source under the copy: -EPERM, or nothing that the restore work may map."""
    protect = {"mprotect": {"buffer": "h", "protection": "none"}}
    ran = copying([sleep("5ms"), protect], xnack=xnack)
    assert ran.outcome == "vm_fault"
    assert ("poisoned" if xnack else "not mapped") in ran.process("app").error


def test_a_staged_copy_is_not_touched_by_compaction():
    """Its source is read by the CPU: compaction moves the pages below it, and no GPU has them mapped."""
    quiet, disturbed = copying(env={}), copying([sleep("5ms"), COMPACT], env={})
    assert disturbed.outcome == "completed"
    assert disturbed.duration("copy") == pytest.approx(quiet.duration("copy"), rel=0.01)
    assert not events(disturbed, "UNMAP_FROM_GPU")


def test_a_kernel_on_the_memory_of_a_locked_copy_keeps_its_mapping():
    managed = {"h": "64MiB hipMallocManaged", "x": "64MiB hipMalloc"}
    env = {"GPU_PINNED_MIN_XFER_SIZE": "1024"}
    advise = {"advise": {"buffer": "h", "advice": "set_preferred_location", "device": "cpu"}}
    steps = [touch("h"), advise, memcpy("x", "h", name="copy"), launch(reads="h", name="read")]
    ran = run(processes=[process(steps, buffers=managed, env=env)])
    assert ran.faults["serviced"] == 0


def events(ran, name):
    log = ran.machine.hardware.events
    return [row for row in log.table(["app"])["event"] if row == name]
