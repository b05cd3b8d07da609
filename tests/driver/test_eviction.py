"""VRAM is full: whole ranges leave in the order in which they came, hipMalloc memory stays, and work goes on."""

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import gpusim
from gpusim.errors import InputError
from gpusim.kinds import Kind
from tests.machine.invariants import check
from tests.machine.random_programs import programs
from tests.programs import (
    GRANULE,
    MIB,
    PAGE,
    alloc,
    launch,
    parallel,
    prefetch,
    process,
    repeat,
    run,
    run_inside,
    scenario,
    sleep,
    synchronize,
    touch,
    vram,
)

SMALL = {"gpu.vram": "32MiB"}


def inside(steps, buffers, **keys):
    ran = run_inside(scenario(steps, buffers=buffers, **{"overrides": SMALL, **keys}))
    check(ran)
    return ran


def evicted(ran):
    """Ranges that left, as numbers of pages, in order."""
    rows = ran.data.tables["migrations"]
    gone = zip(rows["trigger"], rows["page"], rows["pages"], strict=True)
    return [(int(page), int(pages)) for trigger, page, pages in gone if trigger == "TTM_EVICTION"]


def test_a_kernel_over_twice_the_vram_ends_with_vram_full():
    ran = inside([launch(writes="x")], {"x": "64MiB malloc"})
    assert ran.outcome == "completed"
    assert vram(ran.machine).used == vram(ran.machine).peak == vram(ran.machine).pages
    assert len(evicted(ran)) == 16  # 32 granules came, 16 stayed
    assert ran.migrated("device_to_host") == ran.link_bytes("d2h") == 32 * MIB


def test_a_working_set_that_just_fits_evicts_nothing():
    ran = inside([launch(writes="x")], {"x": "32MiB malloc"})
    assert evicted(ran) == []
    assert Kind.EVICTION not in ran.attribution


def test_the_oldest_range_leaves_first():
    ran = inside([launch(writes="x")], {"x": "64MiB malloc"})
    rows = ran.data.tables["migrations"]
    came = [
        int(page)
        for trigger, page in zip(rows["trigger"], rows["page"], strict=True)
        if trigger == "PAGEFAULT_GPU"
    ]
    assert [page for page, _ in evicted(ran)] == came[:16]


def test_using_a_range_does_not_keep_it():
    """GPU accesses do not touch TTM's list: `hot` came first, is used again and again, and still goes first."""
    steps = [
        launch(writes="hot", name="first"),
        launch(writes="x"),
        launch(reads="hot", name="use"),
        launch(writes="y", name="more"),
        launch(reads="hot", name="again"),
    ]
    buffers = {"hot": "2MiB malloc", "x": "28MiB malloc", "y": "4MiB malloc"}
    ran = inside(steps, buffers)
    assert len(evicted(ran)) == 2
    assert evicted(ran)[0][0] == int(ran.data.tables["faults"]["page"][0])
    assert ran.duration("again") > 2 * ran.duration("use")


@pytest.mark.parametrize(("smallest", "range_size"), [("2MiB", 2 * MIB), ("16MiB", 16 * MIB)])
def test_a_registered_range_leaves_whole(smallest, range_size):
    """`kfd_svm.md` 3.4: the unit is the buffer object of one range, whatever part of it is in use."""
    overrides = {**SMALL, "driver.svm.range_min": smallest}  # VRAM / 32 is below that
    steps = [launch(writes="x"), launch(writes="y", name="more")]
    ran = inside(steps, {"x": "16MiB hipMallocManaged", "y": "32MiB malloc"}, overrides=overrides)
    assert [pages * PAGE for _, pages in evicted(ran)] == [range_size] * (16 * MIB // range_size)


def test_a_first_touch_takes_the_memory_of_the_whole_range():
    """The buffer object is as large as the range: one granule of a 16 MiB range holds 16 MiB."""
    ran = inside(
        [prefetch(name, size="2MiB") for name in "xyz"],
        dict.fromkeys("xyz", "16MiB hipMallocManaged"),
        overrides={**SMALL, "driver.svm.range_min": "16MiB"},
    )
    assert [pages * PAGE for _, pages in evicted(ran)] == [2 * MIB]  # what there was of x
    assert vram(ran.machine).peak * PAGE == 32 * MIB


def test_what_was_evicted_is_faulted_in_again():
    ran = inside([repeat(3, launch(writes="x"))], {"x": "64MiB malloc"})
    came = ran.migrated("host_to_device") // GRANULE
    assert came == ran.faults["serviced"] - 32  # the first 32 found nothing to copy
    assert came > 16


def test_the_time_of_an_eviction_is_on_the_path_of_who_needs_the_memory():
    ran = inside([launch(writes="x")], {"x": "64MiB malloc"})
    waited = sum(ran.data.tables["faults"]["eviction_ps"])
    assert ran.attribution[Kind.EVICTION] == pytest.approx(waited, rel=0.01)
    assert waited > 0.3 * ran.makespan_ps


def test_bytes_moved_per_useful_byte():
    """A walk over twice the VRAM, twice: all comes and goes, for two bytes asked for (`thrash`)."""
    steps = [touch("x"), repeat(2, launch(reads="x"))]
    kernels = {"scale": {"workgroups": 1}}
    ran = gpusim.run(scenario(steps, buffers={"x": "64MiB malloc"}, overrides=SMALL, kernels=kernels))
    assert ran.metric("thrash.evictions") == 48
    assert ran.metric("thrash.ratio") == pytest.approx((64 * 2 + 48 * 2) / (64 * 2))
    assert any("48 ranges were evicted" in note for note in ran.summary["notes"])


def test_an_answer_that_hangs_on_the_cost_of_migration_says_so():
    moved = run([touch("x"), launch(writes="x")], buffers={"x": "64MiB malloc"})
    still = run([launch(writes="x")], buffers={"x": "64MiB malloc"})
    assert any("MAN055-MAN060" in note for note in moved.data.notes)
    assert not any("MAN055-MAN060" in note for note in still.data.notes)


# -- hipMalloc ---------------------------------------------------------------------------------------------------------


def test_hip_malloc_evicts_ranges():
    steps = [launch(writes="x"), alloc("y"), launch(writes="x", name="again")]
    ran = inside(steps, {"x": "32MiB malloc", "y": "16MiB hipMalloc"})
    assert ran.outcome == "completed"
    assert len(evicted(ran)) >= 8
    assert vram(ran.machine).allocated * PAGE == 16 * MIB


def test_hip_malloc_does_not_evict_hip_malloc():
    steps = [alloc("x"), alloc("y")]
    ran = run(steps, buffers={"x": "20MiB hipMalloc", "y": "20MiB hipMalloc"}, overrides=SMALL)
    assert ran.outcome == "out_of_memory"


def test_a_range_that_does_not_fit_beside_hip_malloc_stays_in_system_memory():
    """KFD's limit refuses it, and the fault is served all the same (`kfd_svm.md` 2.3), with result M."""
    ran = inside([launch(writes="x")], {"full": "32MiB hipMalloc", "x": "8MiB malloc"})
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 4
    assert ran.attribution[Kind.ZERO_COPY_LINK] > 0
    assert set(ran.data.tables["faults"]["result"]) == {"M"}
    assert evicted(ran) == []


def test_a_prefetch_that_does_not_fit_leaves_pages_where_they_are():
    steps = [touch("x"), prefetch("x"), launch(reads="x")]
    ran = inside(steps, {"full": "32MiB hipMalloc", "x": "8MiB malloc"})
    assert ran.migrated("host_to_device") == 0
    assert ran.faults["serviced"] == 0  # mapped where they are
    assert ran.attribution[Kind.ZERO_COPY_LINK] > 0


def test_a_prefetch_beyond_vram_evicts_its_own_first_ranges():
    """The prefetch trap of a working set that does not fit: its start is gone when it ends."""
    ran = inside([touch("x"), prefetch("x"), launch(reads="x")], {"x": "48MiB malloc"})
    assert len(evicted(ran)) >= 8
    assert ran.faults["serviced"] > 0


# -- running wavefronts ------------------------------------------------------------------------------------------------


def test_a_kernel_at_work_on_what_is_evicted_goes_on_where_it_was():
    """A long walk over mapped memory is cut when its pages leave; it faults for them, and does each step once."""
    walk = launch("walk", reads="x", wait=False, stream="walk")
    kernels = {"scale": {}, "walk": {"passes": 400, "step": "64KiB"}}
    quiet = inside([prefetch("x"), walk, synchronize()], {"x": "24MiB malloc"}, kernels=kernels)
    steps = [prefetch("x"), walk, sleep("1ms"), launch(writes="y"), synchronize()]
    ran = inside(steps, {"x": "24MiB malloc", "y": "24MiB malloc"}, kernels=kernels)
    assert quiet.faults["serviced"] == 0
    assert ran.faults["serviced"] > 12
    assert len(evicted(ran)) > 8
    done, alone = (one.machine.hardware.node.devices[0].gpu.wave_steps for one in (ran, quiet))
    assert done == alone + 24 * 16


def test_a_range_of_another_process_is_evicted_and_comes_back():
    first = process(
        [launch(writes="x"), sleep("1s"), launch(writes="x", name="back")],
        name="first",
        buffers={"x": "32MiB malloc"},
    )
    second = process([sleep("0.5s"), launch(writes="y")], name="second", buffers={"y": "16MiB malloc"})
    ran = run_inside(scenario(processes=[first, second], overrides=SMALL))
    check(ran)
    assert ran.outcome == "completed"
    rows = ran.data.tables["migrations"]
    owners = {
        p for p, trigger in zip(rows["process"], rows["trigger"], strict=True) if trigger == "TTM_EVICTION"
    }
    assert "first" in owners
    assert ran.faults["serviced"] > 16 + 8


def test_with_xnack_off_an_eviction_stops_queues_and_the_kernel_reads_across_the_link():
    """Without XNACK nothing brings pages back: the restore worker maps them in RAM."""
    kernels = {"scale": {"passes": 3000}}
    off = process(
        [prefetch("x"), launch(reads="x")], name="off", xnack=False, buffers={"x": "16MiB hipMallocManaged"}
    )
    on = process([sleep("10ms"), launch(writes="y")], name="on", buffers={"y": "32MiB malloc"})
    ran = run_inside(scenario(processes=[off, on], overrides=SMALL, kernels=kernels))
    check(ran)
    assert ran.outcome == "completed"
    assert ran.link_bytes("h2d") > 16 * MIB
    assert Kind.QUEUES_STOPPED in ran.attribution


def test_ranges_evicted_into_full_host_memory_kill_who_asked():
    ran = run([launch(writes="x")], buffers={"x": "64MiB malloc"}, overrides={**SMALL, "cpu.memory": "8MiB"})
    assert ran.outcome == "host_out_of_memory"


def test_a_process_that_dies_while_its_range_is_evicted_leaves_no_one_waiting():
    dies = process(
        [launch(writes="x"), parallel([sleep("30ms"), launch(reads="gone", name="bad")], [sleep("30.5ms")])],
        name="dies",
        buffers={"x": "32MiB malloc", "gone": "4KiB hipMalloc"},
    )
    dies["threads"]["main"][1]["parallel"]["branches"][0].insert(1, {"free": {"buffer": "gone"}})
    lives = process([sleep("29ms"), launch(writes="y")], name="lives", buffers={"y": "32MiB malloc"})
    ran = run_inside(scenario(processes=[dies, lives], overrides=SMALL))
    check(ran)
    assert ran.process("dies").outcome == "hip_error"
    assert ran.process("lives").outcome == "completed"


@pytest.mark.parametrize(
    ("steps", "size"),
    [([launch(writes="x")], "64MiB"), ([touch("x"), repeat(3, launch(writes="x"))], "48MiB")],
)
def test_stepwise_evicts_as_much_in_as_long(steps, size):
    grouped, stepwise = (
        inside(steps, {"x": f"{size} malloc"}, stepwise=stepwise) for stepwise in (False, True)
    )
    assert grouped.makespan_ps == pytest.approx(stepwise.makespan_ps, rel=0.05)
    assert grouped.faults["serviced"] == pytest.approx(stepwise.faults["serviced"], rel=0.06)
    assert len(evicted(grouped)) == pytest.approx(len(evicted(stepwise)), abs=2)


# -- whatever a program does -------------------------------------------------------------------------------------------

BIG = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])


@settings(BIG, max_examples=120)
@given(programs(), st.sampled_from(["4MiB", "6MiB", "10MiB"]))
def test_vram_is_never_over_capacity_and_each_page_is_in_one_place(program, size):
    try:
        ran = run_inside(scenario(**program | {"limit": "1s"}, overrides={"gpu.vram": size}))
    except InputError:
        return
    event(ran.outcome)
    event(f"evictions: {len(evicted(ran)) > 0}")
    assert ran.outcome in ("completed", "hip_error", "out_of_memory", "limit")
    if ran.outcome != "limit":  # then something is half moved
        check(ran)
    assert ran.machine.hardware.node.devices[0].vram.peak <= ran.machine.hardware.node.devices[0].vram.pages


@settings(BIG, max_examples=60)
@given(st.lists(programs(), min_size=2, max_size=2), st.sampled_from(["4MiB", "6MiB"]))
def test_two_processes_that_evict_each_other_end_well(both, size):
    first, second = both
    processes = [
        process(name=name, buffers=entry["buffers"], threads=entry["threads"])
        for name, entry in (("first", first), ("second", second))
    ]
    kernels = {**{f"k{i}": {} for i in range(2)}, **second["kernels"], **first["kernels"]}
    keys = {"kernels": kernels, "limit": "1s", "seed": first["seed"], "overrides": {"gpu.vram": size}}
    try:
        ran = run_inside(scenario(processes=processes, **keys))
    except InputError:
        return
    event(ran.outcome)
    assert ran.outcome in ("completed", "hip_error", "out_of_memory", "limit")
    if ran.outcome != "limit":  # then something is half moved
        check(ran)


@settings(BIG, max_examples=60)
@given(
    programs(gpus=2),
    st.sampled_from(["mi250x-frontier", "mi210-xgmi", "mi210-pcie4"]),
    st.sampled_from(["through_ram", "direct"]),
    st.sampled_from([{}, {"eviction": "random"}, {"eviction": "lru", "prefetch": "tree"}]),
)
def test_pages_that_wander_between_two_full_gpus_stay_in_one_place(program, node, peers, policy):
    keys = {
        "node": node,
        "overrides": {"gpu.vram": "6MiB"},
        "driver": {"peer_migration": peers},
        "policy": policy,
    }
    try:
        ran = run_inside(scenario(**program | {"limit": "1s"}, **keys))
    except InputError:
        return
    event(ran.outcome)
    assert ran.outcome in ("completed", "hip_error", "out_of_memory", "limit")
    if ran.outcome != "limit":
        check(ran)


@settings(BIG, max_examples=25)
@given(programs())
def test_the_same_seed_gives_the_same_evictions(program):
    try:
        one, two = (
            run_inside(scenario(**program | {"limit": "1s"}, overrides={"gpu.vram": "4MiB"}))
            for _ in range(2)
        )
    except InputError:
        return
    assert evicted(one) == evicted(two)
    assert one.makespan_ps == two.makespan_ps
