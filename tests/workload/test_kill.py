"""kill: SIGKILL ends a process in the middle of its work; others go on, and get what it held."""

import pytest

from gpusim.errors import InputError
from gpusim.kinds import Kind
from tests.machine import invariants
from tests.programs import (
    GIB,
    MIB,
    MS,
    US,
    Ran,
    alloc,
    barrier,
    costs,
    host_spec,
    launch,
    memcpy,
    prefetch,
    process,
    run,
    run_inside,
    scenario,
    sleep,
    touch,
    vram,
)


def kill(victim: str | None = None, **common):
    return {**common, "kill": {} if victim is None else {"process": victim}}


def killed(
    steps, *, after: str = "10ms", buffers=None, gpus: int = 1, more=(), xnack: bool = True, **keys
) -> Ran:
    """`app` does `steps`; `boss` kills it after a while, and then does `more`."""
    app = process(steps, buffers=buffers, xnack=xnack)
    boss = process([sleep(after), kill("app"), *more], name="boss", buffers={"y": "60GiB hipMalloc"})
    if not any(step.get("alloc") for step in more):
        del boss["buffers"]
    ran = run_inside(scenario(processes=[app, boss], gpus=gpus, **keys), record="spans")
    invariants.check(ran)
    return ran


def test_a_killed_process_ends_there_and_is_no_failure():
    ran = killed([sleep("1s", name="long"), sleep("1us", name="never")])
    assert ran.outcome == ran.process("app").outcome == "completed"
    assert ran.process("app").error == "killed by boss.main (SIGKILL)"
    assert ran.process("app").end_ps == 10 * MS
    assert [step.name for step in ran.data.steps] == ["sleep", "kill"]
    assert ran.makespan_ps == 10 * MS


def test_its_wavefronts_and_its_kernel_are_gone():
    """Another process's kernel afterwards has the GPU for itself."""
    spec = {"scale": {"duration": "100ms"}}
    work = {"y": "1GiB hipMalloc"}
    alone = run([launch(writes="y")], buffers=work, kernels=spec).duration("scale")
    app = process([launch(writes="x")], buffers={"x": "1GiB hipMalloc"})
    boss = process([sleep("10ms"), kill("app"), launch(writes="y", name="work")], name="boss", buffers=work)
    ran = run(processes=[app, boss], kernels=spec)
    assert ran.process("app").end_ps == 10 * MS + costs().vram_alloc + costs().vram_free
    assert ran.duration("work") == pytest.approx(alone, rel=1e-6)


def test_a_hip_malloc_is_freed_when_the_kernel_has_come_to_it():
    """The other one asks for the memory before, and again when it is free."""
    ran = killed(
        [sleep("1s")],
        buffers={"x": "30GiB hipMalloc"},
        more=[alloc("y", name="early")],
    )
    assert "hipErrorOutOfMemory" in ran.process("boss").error
    ran = killed([sleep("1s")], buffers={"x": "30GiB hipMalloc"}, more=[sleep("60us"), alloc("y")])
    assert ran.outcome == "completed"
    assert ran.process("app").end_ps == 10 * MS + costs().vram_free
    assert vram(ran.machine).used == 60 * GIB // 4096


def test_host_memory_is_freed_page_by_page():
    ran = killed([touch("x"), sleep("1s")], after="1s", buffers={"x": "64MiB malloc"})
    pages = 64 * MIB // 4096
    assert ran.process("app").end_ps == pytest.approx(10**12 + pages * host_spec().pages.free)
    assert ran.machine.hardware.node.host.used == 0


def test_managed_memory_in_vram_goes_with_its_buffer_objects():
    steps = [prefetch("x"), sleep("1s")]
    ran = killed(steps, after="100ms", buffers={"x": "64MiB hipMallocManaged"})
    assert vram(ran.machine).used == 0
    assert not vram(ran.machine).bos
    freed = 64 * MIB // 4096 * host_spec().pages.free + costs().tlb_flush
    assert ran.process("app").end_ps == 100 * MS + freed


def test_killed_in_the_middle_of_a_fault_storm():
    """The fault in hand is served to its end, those that wait are drained; another process goes on faulting."""
    other = process([launch(writes="x", name="work")], name="lives", buffers={"x": "64MiB malloc"})
    app = process([launch(writes="x")], buffers={"x": "1GiB malloc"})
    boss = process([sleep("10ms"), kill("app")], name="boss")
    ran = run_inside(scenario(processes=[app, boss, other]))
    invariants.check(ran)
    assert ran.outcome == "completed"
    served = {counts.process: counts.counts["serviced"] for counts in ran.data.faults}
    assert 0 < served["app"] < 512
    assert served["lives"] == 32
    assert ran.process("app").end_ps > 10 * MS
    assert all(counts.counts["pending"] == 0 for counts in ran.data.faults)


@pytest.mark.parametrize("way", ["pinned", "pageable", "threads"])
def test_a_copy_stops_on_its_way(way):
    """8 GiB take 0.3 s; what the link has carried is what fits into 10 ms."""
    kind = {"pinned": "hipHostMalloc", "pageable": "malloc", "threads": "malloc"}[way]
    buffers = {"x": "4GiB " + ("malloc" if way == "threads" else "hipMalloc"), "h": f"4GiB {kind}"}
    steps = [
        alloc("x"),
        alloc("h"),
        touch("h"),
        *([touch("x")] if way == "threads" else []),
        memcpy("x", "h"),
    ]
    whole = run(steps, buffers=buffers)
    start = whole.step("memcpy").start_ps
    assert whole.duration("memcpy") > 0.1
    at = start + 10 * MS
    ran = killed(steps, after=f"{at // US}us", buffers=buffers)
    assert ran.outcome == "completed"
    if way != "threads":
        assert 0 < ran.link_bytes("h2d") < 0.15 * whole.link_bytes("h2d")
    assert ran.machine.hardware.node.devices[0].gpu.engines.copies == 0


def test_one_rank_of_several():
    app = process([sleep("1s")], count=3)
    boss = process([sleep("1ms"), kill("app[1]")], name="boss")
    ran = run(processes=[app, boss])
    ends = {p.name: p.end_ps for p in ran.data.processes}
    assert ends == {"app[0]": 10**12, "app[1]": MS, "app[2]": 10**12, "boss": MS}


def test_all_ranks_by_name():
    app = process([sleep("1s")], count=3)
    ran = run(processes=[app, process([sleep("1ms"), kill("app")], name="boss")])
    assert ran.makespan_ps == MS


def test_a_process_can_kill_itself():
    ran = run([sleep("1ms"), kill(), sleep("1ms", name="never")])
    assert (ran.outcome, ran.makespan_ps) == ("completed", MS)
    assert "never" not in {step.name for step in ran.data.steps}


def test_who_has_ended_cannot_be_killed():
    ran = run(processes=[process([sleep("1us")]), process([sleep("1ms"), kill("app")], name="boss")])
    assert ran.process("app").error is None
    assert ran.process("app").end_ps == US


def test_ranks_wait_in_vain_for_one_that_was_killed():
    app = process([sleep("1ms"), barrier(scope="ranks")], count=2)
    ran = run(processes=[app, process([sleep("10us"), kill("app[0]")], name="boss")])
    assert ran.process("app[0]").outcome == "completed"
    assert ran.process("app[1]").outcome == "livelock"


def test_the_time_to_free_is_on_the_critical_path():
    ran = killed([touch("x"), sleep("10s")], after="2s", buffers={"x": "1GiB malloc"})
    assert ran.attribution[Kind.SLEEP] == 2 * 10**12
    assert ran.attribution[Kind.HOST_ALLOC] == ran.makespan_ps - 2 * 10**12


def test_a_thread_that_holds_the_svm_lock_lets_it_go():
    """Killed in the middle of a CPU fault on memory in VRAM."""
    steps = [prefetch("x"), touch("x", "read")]
    whole = run(steps, buffers={"x": "256MiB malloc"})
    middle = (whole.step("host_touch").start_ps + whole.makespan_ps) // 2
    ran = killed(steps, after=f"{middle // 1000}ns", buffers={"x": "256MiB malloc"})
    assert ran.outcome == "completed"
    assert 0 < ran.migrated("device_to_host") < 256 * MIB


def test_an_unknown_process_is_a_mistake():
    with pytest.raises(InputError, match=r"'ap' is no process .*legal: app, boss.*did you mean 'app'"):
        scenario(processes=[process([sleep("1s")]), process([kill("ap")], name="boss")])


@pytest.mark.parametrize("rank", ["app[2]", "boss[0]"])
def test_an_unknown_rank_is_a_mistake(rank):
    with pytest.raises(InputError, match="is no process"):
        scenario(processes=[process([sleep("1s")], count=2), process([kill(rank)], name="boss")])
