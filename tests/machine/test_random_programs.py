"""Whatever a program does: nothing but InputError is raised, the books agree, and a run can be repeated.

The programs are small (pages to a few MiB, a few steps), the properties are those of `tests.machine.invariants`.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from gpusim.errors import InputError
from gpusim.linux.address_space import VmaKind
from tests.machine.invariants import check
from tests.machine.random_programs import SVM, programs
from tests.programs import Ran, launch, process, repeat, run, run_inside, scenario, sleep

BIG = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
ENDS = ("completed", "hip_error")


def play(program, record="summary"):
    """Run a program; None where it needs what is not supported yet."""
    try:
        ran = run_inside(scenario(**program), record=record)
    except InputError:
        event("not supported")
        return None
    event(ran.outcome)
    return ran


@settings(BIG, max_examples=80)
@given(programs(), st.sampled_from(["summary", "spans"]))
def test_programs_with_xnack_on_end_well(program, record):
    ran = play(program, record)
    if ran is not None:
        assert ran.outcome in ENDS, ran.data.processes
        check(ran)


@settings(BIG, max_examples=100)
@given(programs(gpus=2))
def test_programs_on_two_gpus_end_well(program):
    ran = play(program)
    if ran is not None:
        assert ran.outcome in ENDS, ran.data.processes
        check(ran)


@settings(BIG, max_examples=100)
@given(programs(xnack=False))
def test_programs_with_xnack_off_end_well_or_with_a_memory_access_fault(program):
    ran = play(program)
    if ran is not None:
        assert ran.outcome in (*ENDS, "vm_fault"), ran.data.processes
        check(ran)


@settings(BIG, max_examples=50)
@given(st.lists(programs(), min_size=2, max_size=2))
def test_two_processes_on_one_gpu_end_well(both):
    merged = dict(both[0])
    merged["kernels"] = {**{f"k{i}": {} for i in range(2)}, **both[1]["kernels"], **both[0]["kernels"]}
    processes = [
        {
            "name": f"p{number}",
            "env": {"HSA_XNACK": "1"},
            "buffers": {
                name: dict(zip(("size", "allocator"), text.split(), strict=True))
                for name, text in p["buffers"].items()
            },
            "threads": p["threads"],
        }
        for number, p in enumerate(both)
    ]
    for key in ("buffers", "threads", "xnack"):
        del merged[key]
    ran = play(merged | {"processes": processes})
    if ran is not None:
        assert ran.outcome in ENDS, ran.data.processes
        check(ran)


@settings(BIG, max_examples=60)
@given(programs())
def test_a_run_does_not_depend_on_what_is_recorded_and_can_be_repeated(program):
    runs = [play(program, record) for record in ("summary", "summary", "off", "spans")]
    if runs[0] is None:
        return
    summary, again, off, spans = runs
    assert _told(summary) == _told(again) == _told(off) == _told(spans)
    assert summary.attribution == again.attribution == spans.attribution
    assert off.data.attribution is None
    for name, column in summary.data.tables["faults"].items():
        assert (
            list(column) == list(again.data.tables["faults"][name]) == list(spans.data.tables["faults"][name])
        )


def _told(ran: Ran):
    steps = [(s.path, s.thread, s.start_ps, s.end_ps, s.bytes) for s in ran.data.steps]
    return ran.outcome, ran.makespan_ps, steps, ran.faults, [vars_of(total) for total in ran.data.migrations]


def vars_of(total):
    return total.direction, total.count, total.bytes, total.time_ps


@settings(BIG, max_examples=100)
@given(programs(copies_of_svm=False, streams_only=True))
def test_links_carry_what_was_asked_for(program):
    """Copies, migrations and zero copy, in each direction; a transfer is a whole number of bytes."""
    ran = play(program)
    if ran is None or ran.outcome != "completed":
        return
    asked = {"h2d": ran.migrated("host_to_device"), "d2h": ran.migrated("device_to_host")}
    roundings = 0
    for steps in program["threads"].values():
        for step, times in executed(steps):
            roundings += add_bytes(asked, step, program, times)
    for way in ("h2d", "d2h"):
        assert ran.link_bytes(way) == pytest.approx(asked[way], abs=1 + roundings), way


def executed(steps, times=1):
    """Every step inside, and how often it is done."""
    for step in steps:
        yield step, times
        if "repeat" in step:
            yield from executed(step["repeat"]["steps"], times * step["repeat"]["times"])
        for branch in step.get("parallel", {}).get("branches", ()):
            yield from executed(branch, times)


def add_bytes(asked, step, program, times):
    """Add what a step moves across the link; returns how many transfers may have been rounded."""
    size = {name: int(text.split("B ")[0]) for name, text in program["buffers"].items()}
    kind = {name: text.split()[1] for name, text in program["buffers"].items()}
    if "memcpy" in step:
        dst, src = step["memcpy"]["dst"], step["memcpy"]["src"]
        length = min(size[dst], size[src])
        if kind[dst] == "hipMalloc" and kind[src] == "hipHostMalloc":
            asked["h2d"] += length * times
        elif kind[dst] == "hipHostMalloc" and kind[src] == "hipMalloc":
            asked["d2h"] += length * times
        return 0
    if "memset" in step and kind[step["memset"]["buffer"]] == "hipHostMalloc":
        asked["d2h"] += size[step["memset"]["buffer"]] * times
        return times * (size[step["memset"]["buffer"]] // 65536 + 1)
    if "launch" not in step:
        return 0
    args = step["launch"]
    passes = program["kernels"][args["kernel"]].get("passes", 1)
    for way, names in (("h2d", args.get("reads", ())), ("d2h", args["writes"])):
        asked[way] += sum(size[name] * passes * times for name in names if kind[name] == "hipHostMalloc")
    largest = max(size[name] for name in [*args.get("reads", ()), *args["writes"]])
    return times * passes * (largest // 65536 + 1)


@settings(BIG, max_examples=30, phases=[Phase.generate])  # no search for a smaller example while this fails
@given(programs(frees=False, streams_only=True))
def test_grouped_and_stepwise_do_the_same_work(program):
    grouped, stepwise = play(program), play(program | {"stepwise": True})
    if grouped is None or stepwise is None or "parallel" in str(program) or len(program["threads"]) > 1:
        return
    assert grouped.outcome == stepwise.outcome
    check(stepwise)
    assert len(grouped.data.steps) == len(stepwise.data.steps)


def test_the_programs_use_every_allocator_and_every_verb():
    seen = set()

    @settings(BIG, max_examples=100)
    @given(programs())
    def look(program):
        seen.update(text.split()[1] for text in program["buffers"].values())
        for steps in program["threads"].values():
            for step, _ in executed(steps):
                seen.update(step)

    look()
    verbs = {
        "launch",
        "host_touch",
        "prefetch",
        "memcpy",
        "memset",
        "alloc",
        "free",
        "synchronize",
        "repeat",
        "parallel",
    }
    assert verbs | {"hipMalloc", "hipHostMalloc", "record", "wait", "sleep", *SVM} <= seen


def test_a_span_table_takes_at_most_48_bytes_a_row():
    ran = run([{"host_touch": {"buffer": "x"}}], buffers={"x": "8MiB malloc"}, record="spans")
    spans = ran.data.tables["spans"]
    assert sum(column.dtype.itemsize for column in spans.values()) <= 48


@settings(BIG, max_examples=60)
@given(
    programs(gpus=2),
    st.integers(0, 200),
    st.sampled_from(["1us", "30us"]),
    st.sampled_from(["summary", "spans"]),
)
def test_a_process_that_is_killed_anywhere_leaves_nothing_behind(program, times, grain, record):
    """Somebody kills it after a while; what it held is free again, and a neighbour is none the worse for it."""
    arguments = dict(program)
    victim = process(
        buffers=arguments.pop("buffers"), threads=arguments.pop("threads"), xnack=arguments.pop("xnack")
    )
    neighbour = process([launch("k0", writes="n")], name="lives", buffers={"n": "8MiB malloc"})
    boss = process(
        [repeat(times, sleep(grain)), {"kill": {"process": "app"}}]
        if times
        else [{"kill": {"process": "app"}}],
        name="boss",
    )
    ran = play(arguments | {"processes": [victim, boss, neighbour]}, record)
    if ran is None:
        return
    check(ran)
    assert ran.process("lives").outcome == ran.process("boss").outcome == "completed"
    assert ran.process("app").outcome in ENDS
    event(str(ran.process("app").error)[:6])
    assert ran.machine is not None
    mine = next(process for process in ran.machine.processes if process.name == "app")
    if mine.dead:
        node = ran.machine.hardware.node
        held = sum(
            vma.where.count(1)
            for other in ran.machine.processes
            if other is not mine
            for vma in other.hip.kfd.mm
        )
        assert node.host.used == held
        assert all(device.vram.allocated == 0 for device in node.devices)
        assert all(device.gpu.engines.copies == 0 for device in node.devices)


@settings(BIG, max_examples=80)
@given(
    programs(gpus=2),
    st.sampled_from(["shared", "private"]),
    st.sampled_from(["0%", "40%", "100%"]),
    st.booleans(),
)
def test_programs_that_map_files_end_well(program, mapping, cached, crowded):
    """What would be malloc is a file; `crowded`: the page cache has room for a few MiB."""
    sizes = {name: text.split() for name, text in program["buffers"].items()}
    mapped = {name: size for name, (size, allocator) in sizes.items() if allocator == "malloc"}
    buffers = program["buffers"] | {name: f"{size} mmap {name} {mapping}" for name, size in mapped.items()}
    files = {name: f"{size} {cached}" for name, size in mapped.items()}
    small = {"cpu.memory": "48MiB", "gpu.vram": "64MiB"} if crowded else {}
    ran = play(program | {"buffers": buffers, "files": files, "overrides": small})
    if ran is not None:
        event(f"{len(mapped)} files")
        ends = (*ENDS, "host_out_of_memory", "out_of_memory") if crowded else ENDS
        assert ran.outcome in ends, ran.data.processes
        check(ran)


@settings(BIG, max_examples=60)
@given(programs(gpus=8), st.lists(st.sampled_from(["", " numa=0", " numa=1"]), min_size=4, max_size=4))
def test_programs_on_two_sockets_end_well(program, nodes):
    """Buffers of the host are bound to one NUMA node, to the other, or to none."""
    buffers = {
        name: text + ("" if text.endswith("hipMalloc") else node)
        for (name, text), node in zip(program["buffers"].items(), nodes, strict=False)
    }
    ran = play(program | {"buffers": buffers, "node": "mi100-2s", "overrides": {"driver.noretry": 0}})
    if ran is not None:
        assert ran.outcome in ENDS, ran.data.processes
        check(ran)
        assert ran.machine is not None
        living = [process for process in ran.machine.processes if not process.dead]
        live = [vma for process in living for vma in process.hip.kfd.mm]
        pinned = [vma for vma in live if vma.kind is VmaKind.PINNED]
        for node, bound in enumerate(ran.machine.hardware.node.host.bound):
            in_ram = sum(vma.where.count(1) for vma in live if vma.numa == node)
            assert bound == in_ram + sum(vma.pages for vma in pinned if vma.numa == node)
