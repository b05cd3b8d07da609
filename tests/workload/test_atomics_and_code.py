"""Atomic and execute accesses: what their faults say, and contention on few lines, which is no paging problem."""

from collections import Counter

import pytest

from gpusim.hardware.access import AccessKind
from gpusim.kinds import Kind
from tests.programs import MIB, S, gpu_spec, launch, run, run_inside, scenario

MI300X = gpu_spec("mi300x-pcie5")
OVERHEAD = (MI300X.compute.launch + MI300X.compute.completion) / S
HISTOGRAM = {"scale": {"pattern": "stream", "lines": 16}}


def histogram(allocator, **keys):
    return run(
        [
            {"name": "scale", "launch": {"kernel": "scale", "atomics": ["x"], "wait": True}},
            {"name": "again", "launch": {"kernel": "scale", "atomics": ["x"], "wait": True}},
        ],
        buffers={"x": f"16MiB {allocator}"},
        kernels=HISTOGRAM,
        node="mi300x-pcie5",
        **keys,
    )


def test_atomics_on_few_lines_wait_for_each_other():
    ran = histogram("hipMalloc")
    each = MI300X.atomic.near / S / 16
    assert ran.duration("again") - OVERHEAD == pytest.approx(2 * MIB * each, rel=0.01)
    assert ran.share(Kind.CONTENTION) > 0.9


def test_managed_memory_is_a_hundred_times_slower_and_it_is_not_paging():
    """UM04: recurring in each iteration, so that neither a prefetch nor fewer faults help."""
    managed, local = histogram("hipMallocManaged", driver={"recent_skip": "off"}), histogram("hipMalloc")
    assert managed.duration("again") / local.duration("again") == pytest.approx(100, rel=0.05)
    assert managed.share(Kind.CONTENTION) > 0.9
    assert managed.data.bound_by == "contention on lines"


def test_atomics_spread_over_all_lines_do_not_wait():
    ran = run(
        [{"name": "scale", "launch": {"kernel": "scale", "atomics": ["x"], "wait": True}}],
        buffers={"x": "1GiB hipMalloc"},
        node="mi300x-pcie5",
    )
    assert ran.share(Kind.CONTENTION) == 0
    assert ran.step("scale").bytes == 2 << 30  # read and written


@pytest.mark.parametrize("stepwise", [False, True])
def test_a_kernel_faults_on_its_code_once(stepwise):
    ran = run(
        [launch(reads="x", executes=["code"])],
        buffers={"x": "64MiB hipMalloc", "code": "64KiB malloc"},
        stepwise=stepwise,
    )
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 1


def test_mapped_code_costs_nothing():
    plain, coded = (
        run(
            [launch(reads="x", **keys)],
            buffers={"x": "64MiB hipMalloc", "code": "64KiB hipMalloc"},
        ).duration("scale")
        for keys in ({}, {"executes": ["code"]})
    )
    assert coded == plain


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"reads": ["x"]}, AccessKind.READ),
        ({"writes": ["x"]}, AccessKind.WRITE),
        ({"atomics": ["x"]}, AccessKind.ATOMIC),
        # once the command processor has read the kernel's descriptor, and with that had the first granule mapped
        ({"reads": ["y"], "executes": ["x"]}, AccessKind.EXECUTE),
    ],
)
def test_a_fault_says_what_the_access_would_do(step, kind):
    code = kind is AccessKind.EXECUTE
    program = scenario(
        [{"name": "scale", "launch": {"kernel": "scale", "wait": True, **step}}],
        buffers={"x": "4MiB malloc" if code else "64KiB malloc", "y": "64KiB hipMalloc"},
        limit="450us" if code else "57us",  # its faults are on their way
    )
    ran = run_inside(program)
    vm = ran.machine.processes[0].hip.kfd.vms[0]
    waiting = [wave for region in vm.regions.values() for wave in region.all_waiting()]
    assert waiting
    assert {wave.access for wave in waiting} == {kind}


@pytest.mark.parametrize(
    "mode", [{}, {"stepwise": True}, {"driver": {"dedup": "filter"}}, {"driver": {"preset": "whitepaper"}}]
)
@pytest.mark.parametrize(
    "kinds",
    [
        {"reads": ["x"]},
        {"writes": ["x"]},
        {"atomics": ["x"]},
        {"reads": ["x"], "atomics": ["z"]},
    ],
)
@pytest.mark.parametrize("pattern", ["stream", "random"])
def test_the_table_of_faults_tells_the_kinds_apart(kinds, mode, pattern):
    ran = run(
        [{"name": "scale", "launch": {"kernel": "scale", "wait": True, **kinds}}],
        buffers={"x": "64KiB malloc", "z": "64KiB malloc"},
        kernels={"scale": {"pattern": pattern}},
        **mode,
    )
    rows = ran.data.tables["faults"]
    seen = set(zip(rows["client"], rows["access"], rows["write"].tolist(), strict=True))
    asked = {word.removesuffix("s") for word in kinds}
    assert seen == {("compute_unit", kind, kind in ("write", "atomic")) for kind in asked}


def test_a_fault_of_an_instruction_fetch_is_one():
    """Behind the page of the descriptor, which the command processor has faulted in."""
    ran = run(
        [{"name": "scale", "launch": {"kernel": "scale", "wait": True, "reads": ["y"], "executes": ["x"]}}],
        buffers={"x": "64KiB malloc", "y": "64KiB hipMalloc"},
        driver={"unit": "page"},
    )
    rows = ran.data.tables["faults"]
    assert Counter(rows["access"]) == {"read": 1, "execute": 15}
    assert Counter(rows["client"]) == {"command_processor": 1, "compute_unit": 15}
