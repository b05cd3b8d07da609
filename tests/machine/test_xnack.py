"""XNACK: how a process gets it, why it may not, and what an access without it costs."""

from types import SimpleNamespace

import pytest

from gpusim.hardware.families import FAMILIES, family_of, refusal
from gpusim.hardware.gpu_spec import XnackSupport
from gpusim.machine.xnack import xnack_at_start
from tests.programs import launch, prefetch, process, run, synchronize

PER_PROCESS, BOOT, NEVER = XnackSupport.PER_PROCESS, XnackSupport.BOOT, XnackSupport.NEVER
MI210 = ("gfx90a", PER_PROCESS)
MI100 = ("gfx908", BOOT)
RENOIR = ("gfx90c", BOOT)
W6800 = ("gfx1030", NEVER)


def start(value, gpus, noretry=-1):
    env = {} if value is None else {"HSA_XNACK": value}
    parts = [(f"gpu[{i}]", SimpleNamespace(gfx=gfx, xnack=kind)) for i, (gfx, kind) in enumerate(gpus)]
    return xnack_at_start(env, parts, noretry)


@pytest.mark.parametrize(
    ("value", "gpus", "noretry", "expected"),
    [
        ("1", [MI210], -1, True),
        ("1", [MI210, MI210], -1, True),
        ("0", [MI210], -1, False),
        (None, [MI210], -1, False),  # auto is off on Instinct
        (None, [MI210], 0, True),
        ("0", [MI210], 0, False),
        ("yes", [MI210], -1, False),
        ("1", [MI100], -1, False),
        ("1", [MI100], 0, True),
        ("1", [MI100], 1, False),
        (None, [MI100], 0, True),
        (None, [RENOIR], -1, True),
        ("1", [MI210, W6800], -1, False),  # one GPU that cannot decides for all
        (None, [MI210, W6800], 0, False),
        ("1", [], -1, False),
    ],
)
def test_the_mode_that_a_process_starts_with(value, gpus, noretry, expected):
    assert start(value, gpus, noretry).enabled is expected


@pytest.mark.parametrize(
    ("gpu", "says"),
    [
        (W6800, ("gpu[0] (gfx1030, RDNA 2) cannot retry faults", "preempted")),
        (("gfx1100", NEVER), ("RDNA 3", "preempted")),
        (("gfx801", NEVER), ("Carrizo", "GFX9 and later")),
        (MI100, ("MI100", "amdgpu.noretry=0")),
        (("sm_90", NEVER), ("sm_90", "it has no retry faults")),
    ],
)
def test_the_reason_is_shown(gpu, says):
    refused = start("1", [gpu]).refused
    assert all(part in refused for part in says), refused


def test_every_family_has_targets_of_its_own():
    targets = [target for family in FAMILIES for target in family.targets]
    assert all(family_of(target).targets.count(target) == 1 for target in targets)
    assert refusal("gpu[0]", "gfx942", PER_PROCESS, 1) is None


# -- programs ----------------------------------------------------------------------------------------------------------

MALLOC = {"x": "2MiB malloc"}


def set_xnack(enabled, **common):
    return {**common, "set_xnack": {"enabled": enabled}}


def test_a_process_without_queues_can_switch_it_on():
    ran = run([set_xnack(True), launch(writes="x")], buffers=MALLOC, xnack=False)
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 1


def test_and_off_again():
    ran = run([set_xnack(False), launch(writes="x")], buffers=MALLOC, xnack=True)
    assert ran.outcome == "vm_fault"
    assert "set HSA_XNACK=1" in ran.process("app").error


def test_with_queues_the_driver_answers_busy():
    steps = [launch(writes="y"), set_xnack(True)]
    ran = run(steps, buffers={"y": "2MiB hipMalloc"}, xnack=False)
    assert ran.outcome == "hip_error"
    assert "-EBUSY" in ran.process("app").error


def test_asking_for_the_mode_that_is_on_is_no_change():
    assert run([launch(writes="x"), set_xnack(True)], buffers=MALLOC, xnack=True).outcome == "completed"


def test_the_white_papers_driver_never_switches():
    for switch, outcome in (("when_no_queues", "completed"), ("never", "hip_error")):
        ran = run(
            [set_xnack(True), launch(writes="x")],
            buffers=MALLOC,
            xnack=False,
            driver={"xnack_switch": switch},
        )
        assert ran.outcome == outcome


def test_an_incapable_gpu_disables_it_for_the_process_and_says_so():
    keys = {"gpus": 2, "overrides": {"gpu[1].xnack": "never", "gpu[1].gfx": "gfx1030"}}
    ran = run([launch(writes="x")], buffers=MALLOC, **keys)
    assert ran.outcome == "vm_fault"
    assert "gpu[1] (gfx1030, RDNA 2) cannot retry faults" in ran.process("app").error
    asked = run([set_xnack(True)], buffers=MALLOC, xnack=False, **keys)
    assert "-EPERM" in asked.process("app").error
    alone = process([launch(writes="x")], buffers=MALLOC, env={"ROCR_VISIBLE_DEVICES": "0"})
    assert run(processes=[alone], **keys).outcome == "completed"


@pytest.mark.parametrize(
    ("built", "mode", "loads"), [("on", True, True), ("on", False, False), ("any", False, True)]
)
def test_code_that_needs_xnack_does_not_load_without_it(built, mode, loads):
    ran = run(
        [launch(writes="y")], buffers={"y": "2MiB hipMalloc"}, kernels={"scale": {"xnack": built}}, xnack=mode
    )
    assert ran.outcome == ("completed" if loads else "hip_error")


def test_a_missing_page_without_xnack_kills_all_waves_of_its_vmid_and_no_others():
    """Two kernels of the victim are in flight; one of them touches memory that is not mapped."""
    victim = process(
        [
            launch("long", writes="y", wait=False, stream="a"),
            launch("scale", writes="x", wait=False, stream="b"),
            synchronize(),
        ],
        name="victim",
        buffers={"x": "2MiB malloc", "y": "64MiB hipMalloc"},
        xnack=False,
    )
    other = process([launch("long", writes="z")], name="other", buffers={"z": "64MiB hipMalloc"}, xnack=False)
    kernels = {"scale": {}, "long": {"duration": "1ms"}}
    ran = run(processes=[victim, other], kernels=kernels)
    assert ran.process("victim").outcome == "vm_fault"
    assert ran.process("victim").end_ps < 500_000_000 < ran.process("other").end_ps
    assert ran.process("other").outcome == "completed"


def test_prefetch_maps_what_would_be_fatal():
    steps = [prefetch("x"), launch(writes="x")]
    assert run(steps, buffers={"x": "2MiB hipMallocManaged"}, xnack=False).outcome == "completed"
