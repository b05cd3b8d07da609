"""VMIDs: as many processes as there are run side by side on a GPU, others wait for one."""

import pytest

from gpusim.hardware.gpu_spec import VmidSpec
from gpusim.hardware.gpuvm import Vm
from gpusim.hardware.vmids import Vmids
from gpusim.kinds import Kind
from tests.programs import GIB, S, gpu_spec, launch, process, run, run_inside, scenario, sleep

MI210 = gpu_spec()
OVERHEAD = (MI210.compute.launch + MI210.compute.completion) / S
ALONE = GIB / MI210.hbm.bandwidth


def vm(number):
    return Vm(f"app[{number}]", 0, retry=True)


def test_the_kfd_has_the_vmids_of_its_family():
    assert (MI210.vmids.first, MI210.vmids.last) == (3, 15)
    assert gpu_spec("radeonvii-pcie3").vmids.first == 8


def test_a_process_keeps_its_vmid_until_another_one_needs_it():
    vmids = Vmids(VmidSpec(first=3, last=4))
    a, b, c = map(vm, range(3))
    assert vmids.take(a)
    assert vmids.take(b)
    assert (a.vmid, b.vmid) == (3, 4)
    assert not vmids.take(c)
    vmids.end(b)
    assert vmids.take(b)  # still its own
    vmids.end(b)
    assert vmids.take(c)
    assert (c.vmid, b.vmid) == (4, -1)
    assert vmids.taken_over == 1
    assert not vmids.take(b)


def test_two_kernels_of_a_process_need_one_vmid():
    vmids = Vmids(VmidSpec(first=15, last=15))
    a, b = vm(0), vm(1)
    assert vmids.take(a)
    assert vmids.take(a)
    vmids.end(a)
    assert not vmids.take(b)
    vmids.end(a)
    assert vmids.take(b)


# in the step-by-step mode the last steps of a kernel run with few wavefronts
@pytest.mark.parametrize(("stepwise", "tolerance"), [(False, 0.01), (True, 0.4)])
def test_processes_without_a_vmid_run_one_after_another(stepwise, tolerance):
    ran = run(
        [launch(writes="x")],
        buffers={"x": "256MiB hipMalloc"},
        count=3,
        overrides={"gpu.vmids.first": 15},
        stepwise=stepwise,
    )
    ends = sorted(ran.duration(f"scale[{rank}]") for rank in range(3))
    for position, end in enumerate(ends, 1):
        assert end == pytest.approx(OVERHEAD + position * ALONE / 4, rel=tolerance)
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_with_vmids_enough_they_share():
    ran = run([launch(writes="x")], buffers={"x": "256MiB hipMalloc"}, count=3)
    for rank in range(3):
        assert ran.duration(f"scale[{rank}]") == pytest.approx(OVERHEAD + 3 * ALONE / 4, rel=0.02)


def test_a_vmid_that_changes_hands_leaves_no_translations_behind():
    ran = run_inside(
        scenario(
            [launch(writes="x")], buffers={"x": "1MiB hipMalloc"}, count=3, overrides={"gpu.vmids.first": 15}
        )
    )
    gpu = ran.machine.hardware.node.devices[0].gpu
    assert ran.outcome == "completed"
    assert gpu.vmids.taken_over == 2
    holders = [vm.vmid for each in ran.machine.processes for vm in [each.hip.kfd.vms[0]]]
    assert sorted(holders) == [-1, -1, 15]


def test_a_process_that_dies_lets_the_next_one_go_on():
    victim = process(
        [launch(writes="m", name="fatal")],
        name="victim",
        buffers={"m": "1MiB malloc"},
        xnack=False,
        on_error="stop",
    )
    other = process(
        [sleep("20us"), launch(writes="x", name="scale")],
        name="other",
        buffers={"x": "256MiB hipMalloc"},
        xnack=False,
    )
    ran = run(processes=[victim, other], overrides={"gpu.vmids.first": 15})
    outcomes = {entry.name: entry.outcome for entry in ran.data.processes}
    assert outcomes == {"victim": "vm_fault", "other": "completed"}
    assert ran.attribution[Kind.HBM] > 0
