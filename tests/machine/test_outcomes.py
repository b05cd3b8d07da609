"""How a simulated program ends: completed, dead, stuck or cut off; one process's end is not another's."""

import pytest

from gpusim.machine.harvest import OUTCOMES
from tests.programs import GIB, MIB, MS, barrier, launch, prefetch, process, run, sleep, touch

MALLOC = {"x": "16MiB malloc"}


def test_a_program_completes():
    ran = run([launch(writes="x")], buffers=MALLOC)
    assert ran.outcome == "completed"
    assert ran.process("app").error is None
    assert ran.process("app").end_ps == ran.makespan_ps


def test_malloc_memory_without_xnack_is_a_memory_access_fault():
    ran = run([launch(writes="x")], buffers=MALLOC, xnack=False)
    assert ran.outcome == "vm_fault"
    error = ran.process("app").error
    assert "memory access fault by gpu[0] on address 0x7f" in error
    assert "(write of x)" in error
    assert "set HSA_XNACK=1" in error


def test_a_read_is_called_a_read():
    ran = run([launch(reads="x")], buffers=MALLOC, xnack=False)
    assert "(read of x)" in ran.process("app").error


def test_without_a_variable_xnack_is_off():
    program = {
        "name": "app",
        "buffers": {"x": {"size": "4KiB", "allocator": "malloc"}},
        "threads": {"main": [launch(writes="x")]},
    }
    assert run(processes=[program]).outcome == "vm_fault"


def test_a_gpu_that_cannot_switch_has_no_xnack():
    """MI50 and Radeon VII follow the boot parameter, which is off."""
    ran = run([launch(writes="x")], buffers=MALLOC, xnack=True, node="radeonvii-pcie3")
    assert ran.outcome == "vm_fault"


def test_another_process_goes_on_and_completes():
    dies = process([launch(writes="x")], name="dies", buffers=MALLOC, xnack=False)
    lives = process([launch(writes="x", name="work")], name="lives", buffers=MALLOC)
    ran = run(processes=[dies, lives])
    assert ran.process("dies").outcome == "vm_fault"
    assert ran.process("lives").outcome == "completed"
    assert ran.outcome == "vm_fault"
    assert ran.faults["serviced"] == 8
    assert ran.makespan_ps == ran.process("lives").end_ps


def test_a_process_that_dies_takes_its_other_threads_and_streams_with_it():
    threads = {
        "one": [sleep("1ms"), launch(writes="x")],
        "two": [launch(writes="y", name="long", stream="s"), sleep("1ms", name="never")],
    }
    ran = run(
        threads=threads,
        buffers=MALLOC | {"y": "1GiB hipMalloc"},
        xnack=False,
        kernels={"scale": {"duration": "10ms"}},
    )
    assert ran.outcome == "vm_fault"
    assert "never" not in {step.name for step in ran.data.steps}
    assert ran.process("app").end_ps < 2 * MS


def test_the_kernels_of_others_get_the_slots_of_the_dead():
    dies = process([sleep("1ms"), launch(writes="x", name="bad")], name="dies", buffers=MALLOC, xnack=False)
    lives = process(
        [launch(writes="y", name="work")], name="lives", buffers={"y": "1GiB hipMalloc"}, xnack=False
    )
    spec = {"scale": {"duration": "10ms"}}
    ran = run(processes=[dies, lives], kernels=spec)
    assert ran.process("lives").outcome == "completed"
    assert ran.duration("work") == pytest.approx(10e-3, rel=0.01)


@pytest.mark.parametrize(("built", "xnack", "outcome"), [
    ("any", True, "completed"),
    ("any", False, "completed"),
    ("on", True, "completed"),
    ("on", False, "hip_error"),
    ("off", True, "hip_error"),
    ("off", False, "completed"),
])  # fmt: skip
def test_a_code_object_loads_in_its_xnack_mode(built, xnack, outcome):
    ran = run(
        [launch(writes="x")],
        buffers={"x": "1MiB hipMalloc"},
        kernels={"scale": {"xnack": built}},
        xnack=xnack,
    )
    assert ran.outcome == outcome
    if outcome == "hip_error":
        assert "is not built for XNACK" in ran.process("app").error


def test_an_error_that_the_program_ignores_leaves_it_completed():
    program = process(
        [launch(writes="x"), sleep("1ms")], buffers={"x": "1MiB hipMalloc"}, xnack=False, on_error="continue"
    )
    ran = run(processes=[program], kernels={"scale": {"xnack": "on"}})
    assert ran.outcome == "completed"
    assert "hipErrorNoBinaryForGpu" in ran.process("app").error
    assert ran.step("sleep").end_ps > 0


def test_a_memory_access_fault_cannot_be_ignored():
    program = process([launch(writes="x"), sleep("1ms")], buffers=MALLOC, xnack=False, on_error="continue")
    assert run(processes=[program]).outcome == "vm_fault"


def test_memory_that_a_prefetch_cannot_move_is_an_error():
    ran = run([prefetch("x")], buffers={"x": "1MiB hipMalloc"})
    assert ran.outcome == "hip_error"
    assert "only hipMallocManaged and malloc memory moves" in ran.process("app").error


def test_the_limit_of_simulated_time_ends_the_run():
    ran = run([launch(writes="x")], buffers={"x": "1GiB malloc"}, limit="10ms")
    assert ran.outcome == "limit"
    assert ran.makespan_ps == 10 * MS
    assert "simulated time limit" in ran.process("app").error
    assert ran.faults["serviced"] == pytest.approx(10 / 0.34, rel=0.1)
    assert ran.faults["pending"] > 0


def test_a_program_that_ends_before_the_limit_completes():
    ran = run([sleep("1ms")], limit="1ms")
    assert ran.outcome == "completed"


def test_a_process_that_waits_for_ever_is_a_livelock():
    threads = {"a": [sleep("1ms"), barrier()], "b": [barrier(label="first"), barrier(label="second")]}
    ran = run(threads=threads)
    assert ran.outcome == "livelock"
    assert "nothing can happen any more, and app has not ended" in ran.process("app").error
    assert ran.process("app").end_ps == MS


def test_ranks_that_wait_for_a_dead_one_are_stuck():
    program = {
        "name": "rank",
        "count": 2,
        "env": {"HSA_XNACK": "${rank}"},
        "buffers": {"x": {"size": "1MiB", "allocator": "malloc"}},
        "threads": {"main": [launch(writes="x"), barrier(scope="ranks")]},
    }
    ran = run(processes=[program])
    assert ran.process("rank[0]").outcome == "vm_fault"
    assert ran.process("rank[1]").outcome == "livelock"


def test_the_run_has_the_worst_outcome_of_its_processes():
    oom = process([sleep("1us")], name="oom", buffers={"x": "65GiB hipMalloc"})
    fault = process([launch(writes="x")], name="fault", buffers=MALLOC, xnack=False)
    fine = process([sleep("1us", name="nap")], name="fine")
    ran = run(processes=[oom, fine, fault])
    assert {p.name: p.outcome for p in ran.data.processes} == {
        "oom": "out_of_memory",
        "fault": "vm_fault",
        "fine": "completed",
    }
    assert ran.outcome == "vm_fault"
    assert OUTCOMES.index("vm_fault") > OUTCOMES.index("out_of_memory")


def test_one_gpu_that_cannot_switch_decides_for_the_process():
    """Only GPUs that the process sees count."""
    program = process([launch(writes="x")], buffers=MALLOC, env={"ROCR_VISIBLE_DEVICES": "1"})
    assert run(processes=[program], gpus=2).outcome == "completed"


def test_what_ran_on_a_dead_gpu_queue_leaves_no_waiters():
    both = [
        process(
            [touch("x"), launch(writes="x", name=f"k{i}")],
            name=f"p{i}",
            buffers={"x": "64MiB malloc"},
            xnack=xnack,
        )
        for i, xnack in enumerate((True, False))
    ]
    ran = run(processes=both)
    assert ran.process("p0").outcome == "completed"
    assert ran.process("p1").outcome == "vm_fault"
    assert ran.migrated("host_to_device") == 64 * MIB


def test_a_big_machine_with_nothing_to_do_costs_nothing():
    ran = run([sleep("1us")], buffers={"x": "100GiB hipMalloc"}, node="mi300x-pcie5", gpus=8)
    assert ran.outcome == "completed"
    assert 100 * GIB > 0


def test_what_goes_on_after_a_program_has_died_is_not_its_time():
    """The copy is still under way when the next step kills the program."""
    steps = [
        {"memcpy": {"dst": "b", "src": "a", "async": True}},
        {"host_touch": {"buffer": "c"}},
        {"alloc": {"buffer": "c"}},
    ]
    ran = run(steps, buffers={"b": "4KiB hipHostMalloc", "a": "4KiB malloc", "c": "4KiB hipMalloc"})
    assert ran.outcome != "completed"
    for use in ran.data.uses:
        assert sum(use.bytes_per_bin) == use.bytes
        assert len(use.bytes_per_bin) * use.bin_ps < ran.makespan_ps + use.bin_ps
