"""hipMemAdvise and the SVM attributes: what each changes, and what it does not."""

import pytest

from gpusim.driver.attributes import SvmFlag, clamped_granule, common, initial
from tests.programs import MIB, launch, prefetch, run, run_inside, scenario, touch

MANAGED = {"x": "16MiB hipMallocManaged"}


def advise(advice, device="gpu0", **part):
    return {"advise": {"buffer": "x", "advice": advice, "device": device, **part}}


def attributes(**given):
    return {"svm_attributes": {"buffer": "x", **given}}


def ranges(ran):
    (process,) = ran.machine.processes
    return list(process.hip.kfd.ranges)


def test_preferred_on_the_cpu_is_read_across_the_link():
    ran = run([touch("x"), advise("set_preferred_location", "cpu"), launch(reads="x")], buffers=MANAGED)
    assert ran.migrated("host_to_device") == 0
    assert ran.link_bytes("h2d") == 16 * MIB
    assert ran.faults["serviced"] == 8


def test_taking_the_preference_back_lets_the_pages_migrate_again():
    steps = [touch("x"), advise("set_preferred_location", "cpu"), advise("unset_preferred_location")]
    assert run([*steps, launch(reads="x")], buffers=MANAGED).migrated("host_to_device") == 16 * MIB


def test_accessed_by_maps_data_where_it_is():
    ran = run([touch("x"), advise("set_accessed_by"), launch(reads="x")], buffers=MANAGED)
    assert ran.migrated("host_to_device") == 0


def test_unset_accessed_by_leaves_access_not_none():
    steps = [touch("x"), advise("set_accessed_by"), advise("unset_accessed_by"), launch(reads="x")]
    ran = run(steps, buffers=MANAGED)
    assert ran.outcome == "completed"
    assert ran.migrated("host_to_device") == 16 * MIB


def test_read_mostly_changes_nothing_and_says_so():
    plain = run([touch("x"), launch(reads="x")], buffers=MANAGED)
    advised = run([touch("x"), advise("set_read_mostly"), launch(reads="x")], buffers=MANAGED)
    assert advised.migrated("host_to_device") == plain.migrated("host_to_device")
    assert advised.duration("scale") == pytest.approx(plain.duration("scale"), rel=0.01)
    assert any("no read duplication" in note for note in advised.data.notes)


def test_no_access_is_fatal():
    ran = run([touch("x"), attributes(access={"gpu0": "none"}), launch(reads="x")], buffers=MANAGED)
    assert ran.outcome == "vm_fault"
    assert "EACCES" in ran.process("app").error


def test_a_failed_restore_poisons_the_entry_and_the_next_send_of_the_access_is_fatal():
    """The driver answers with an error; the process lives until the hardware tries again, within a period."""
    steps = [attributes(access={"gpu0": "none"}), launch(writes="x")]
    period = 10**6 * 8
    ran = run(steps, buffers=MANAGED, overrides={"gpu.retry.period": "8us"})
    quick = run(steps, buffers=MANAGED, overrides={"gpu.retry.period": "1us"})
    assert ran.outcome == quick.outcome == "vm_fault"
    assert 0 < ran.process("app").end_ps - quick.process("app").end_ps < period


def test_a_preferred_location_lets_a_gpu_in_that_has_no_access():
    steps = [touch("x"), attributes(access={"gpu0": "none"}, preferred_location="gpu0"), launch(reads="x")]
    assert run(steps, buffers=MANAGED).migrated("host_to_device") == 16 * MIB


def test_a_larger_granularity_means_fewer_faults():
    steps = [touch("x"), attributes(granularity="8MiB"), launch(reads="x")]
    assert run(steps, buffers=MANAGED).faults["serviced"] == 2


def test_granularity_is_clamped_to_1_gib_and_to_a_power_of_two():
    assert clamped_granule(1 << 20) == 1 << 18
    assert clamped_granule(1000) == 512
    assert clamped_granule(0) == 1
    ran = run([attributes(granularity="3MiB")], buffers=MANAGED)
    assert any("make it 2MiB" in note for note in ran.data.notes)


def test_attributes_of_a_part_split_its_range():
    ran = run_inside(scenario([advise("set_read_mostly", offset="4MiB", size="2MiB")], buffers=MANAGED))
    assert [svm.pages * 4096 // MIB for svm in ranges(ran)] == [4, 2, 10]
    assert [svm.attributes.has(SvmFlag.GPU_READ_MOSTLY) for svm in ranges(ran)] == [False, True, False]


def test_a_part_of_what_lies_in_vram_keeps_its_pages_when_it_is_split():
    steps = [prefetch("x"), advise("set_read_mostly", offset="4MiB", size="2MiB"), touch("x", "read")]
    ran = run_inside(scenario(steps, buffers=MANAGED))
    assert ran.migrated("device_to_host") == 16 * MIB
    assert ran.machine.hardware.node.devices[0].vram.used == 0


def test_memory_of_hipmalloc_has_no_attributes():
    ran = run([advise("set_read_mostly")], buffers={"x": "1MiB hipMalloc"})
    assert ran.outcome == "hip_error"


def test_prefetch_location_moves_at_once():
    ran = run([touch("x"), attributes(prefetch_location="gpu0"), launch(reads="x")], buffers=MANAGED)
    assert ran.migrated("host_to_device") == 16 * MIB
    assert ran.faults["serviced"] == 0


def test_without_xnack_access_to_malloc_memory_is_given_by_attributes():
    steps = [touch("x"), attributes(access={"gpu0": "access"}), launch(reads="x")]
    ran = run(steps, buffers={"x": "16MiB malloc"}, xnack=False)
    assert ran.outcome == "completed"
    assert ran.link_bytes("h2d") == 16 * MIB


def test_getting_attributes_of_unlike_ranges_gives_what_they_have_in_common():
    one = initial(xnack=True, gpus=0b11, granule_pages=512, preferred=0)
    two = initial(xnack=True, gpus=0b01, granule_pages=64, preferred=1)
    both = common([one, two])
    assert (both.access, both.granule_pages, both.preferred) == (0b01, 64, -2)


@pytest.mark.parametrize(("allocator", "moves"), [("malloc", True), ("heap", False), ("stack", False)])
def test_heap_and_stack_stay_in_host_memory(allocator, moves):
    ran = run([touch("x"), launch(reads="x")], buffers={"x": f"4MiB {allocator}"})
    assert ran.outcome == "completed"
    assert (ran.migrated("host_to_device") > 0) == moves


def test_a_managed_global_is_like_managed_memory_and_a_pool_like_hipmalloc():
    managed = run([touch("x"), launch(reads="x")], buffers={"x": "4MiB managed_global"})
    assert managed.migrated("host_to_device") == 4 * MIB
    pool = run([launch(writes="x")], buffers={"x": "4MiB hsa_pool"})
    assert pool.raised == 0


# -- flags that choose the memory type -------------------------------------------------------------------------------


def atomics(*advice):
    """Seconds that atomics on one line take in managed memory that lies in VRAM."""
    warm = {"launch": {"kernel": "scale", "atomics": ["x"], "wait": True}, "name": "warm"}
    timed = {"launch": {"kernel": "scale", "atomics": ["x"], "wait": True}, "name": "timed"}
    ran = run([*advice, warm, timed], buffers={"x": "2MiB hipMallocManaged"}, kernels={"scale": {"lines": 1}})
    assert ran.outcome == "completed"
    return ran.duration("timed")


def test_coarse_grained_memory_has_its_atomics_done_in_l2():
    coarse = {"advise": {"buffer": "x", "advice": "set_coarse_grain"}}
    fine, near = atomics(), atomics(coarse)
    assert fine > 2 * near
    assert atomics(coarse, {"advise": {"buffer": "x", "advice": "unset_coarse_grain"}}) == fine
    assert atomics(coarse, {"svm_attributes": {"buffer": "x", "set_flags": ["ext_coherent"]}}) == fine


@pytest.mark.parametrize(("flags", "said"), [([], True), (["gpu_exec"], False)])
def test_code_without_the_execute_bit_is_noted(flags, said):
    steps = [touch("code"), launch(writes="x")]
    steps[1]["launch"]["executes"] = ["code"]
    if flags:
        steps.insert(0, {"svm_attributes": {"buffer": "code", "set_flags": flags}})
    ran = run(steps, buffers=dict.fromkeys(("x", "code"), "2MiB hipMallocManaged"))
    assert any("GPU_EXEC" in note for note in ran.data.notes) is said


def test_a_granularity_that_the_unit_overrides_is_noted():
    steps = [{"svm_attributes": {"buffer": "x", "granularity": "64KiB"}}]
    for unit, said in (("granule", False), ("range", True), ("page", True)):
        ran = run(steps, buffers={"x": "2MiB hipMallocManaged"}, driver={"unit": unit})
        assert any("no effect" in note for note in ran.data.notes) is said
