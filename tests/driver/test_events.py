"""KFD events: which a run tells, in which order, in the driver's own lines."""

import re

import pytest

from gpusim.driver.attributes import UNDEFINED
from gpusim.driver.events import EventLog, MigrateTrigger, UnmapTrigger, gpu_id
from tests.programs import MIB, launch, prefetch, run, run_inside, scenario, sleep, synchronize, touch

ONE = {"x": "2MiB hipMallocManaged"}


def lines(*args, **keys):
    ran = run_inside(scenario(*args, **keys))
    return list(ran.machine.hardware.events.lines(["app"]))


def told(*args, **keys):
    """The events as (number, last word)."""
    return [(row.split()[0], row.split()[-1]) for row in lines(*args, **keys)]


def test_a_gpu_first_touch_is_fault_start_migration_fault_end():
    assert [number for number, _ in told([touch("x"), launch(reads="x")], buffers=ONE)] == [
        "7",
        "5",
        "6",
        "8",
    ]


def test_a_second_granule_of_a_mapped_range_is_unmapped_within_its_migration():
    found = told([touch("x"), launch(reads="x")], buffers={"x": "4MiB hipMallocManaged"})
    assert [number for number, _ in found] == ["7", "5", "6", "8", "7", "5", "b", "6", "8"]
    assert found[6] == ("b", str(int(UnmapTrigger.MMU_NOTIFY_MIGRATE)))


def test_mapping_in_place_ends_in_u():
    advise = {"advise": {"buffer": "x", "advice": "set_preferred_location", "device": "cpu"}}
    assert told([touch("x"), advise, launch(reads="x")], buffers=ONE) == [("7", "R"), ("8", "U")]


def test_a_cpu_fault_migrates_and_unmaps():
    found = told([touch("x"), launch(writes="x"), touch("x", "read")], buffers=ONE)
    assert [number for number, _ in found[4:]] == ["5", "b", "6"]
    assert found[4][1] == str(int(MigrateTrigger.PAGEFAULT_CPU))


def test_a_prefetch_says_so():
    start, end = lines([touch("x"), prefetch("x")], buffers=ONE)
    assert start.split()[-1] == str(int(MigrateTrigger.PREFETCH))
    assert f"{gpu_id(0):x}:ffffffff" in start
    assert end.split()[-2:] == ["0", "0"]


def test_without_xnack_queues_are_evicted_and_restored():
    steps = [prefetch("x"), sleep("10ms"), touch("x")]
    numbers = [number for number, _ in told(steps, buffers=ONE, xnack=False)]
    assert numbers.count("9") == numbers.count("a") == 2
    assert numbers.index("9") < numbers.index("a")


def test_munmap_is_told_with_its_trigger():
    found = told([launch(writes="x"), {"munmap": {"buffer": "x"}}], buffers={"x": "2MiB malloc"})
    assert found[-1] == ("b", str(int(UnmapTrigger.UNMAP_FROM_CPU)))


@pytest.mark.parametrize("change", [{"compact": {}}, {"fork": {"steps": []}}])
def test_what_the_kernel_does_to_pages_is_told_as_mmu_notify(change):
    advise = {"advise": {"buffer": "x", "advice": "set_preferred_location", "device": "cpu"}}
    found = told([touch("x"), advise, launch(reads="x"), change], buffers={"x": "4KiB malloc"})
    assert found[2:] == [("b", str(int(UnmapTrigger.MMU_NOTIFY)))]


def test_restore_work_that_fails_is_rescheduled_until_it_gets_its_pages():
    """Others take the memory of what has gone to swap, and give it back 10 ms later."""
    threads = {
        "main": [touch("x"), {"barrier": {}}, {"swap_out": {"buffer": "x"}}],
        "hungry": [{"barrier": {}}, sleep("100us"), touch("y"), sleep("10ms"), {"free": {"buffer": "y"}}],
    }
    keys = {"buffers": {"x": "2MiB hipMallocManaged", "y": "16MiB malloc"}, "xnack": False}
    found = told(threads=threads, overrides={"cpu.memory": "18MiB", "gpu.vram": "32MiB"}, **keys)
    restores = [last for number, last in found if number == "a"]
    assert restores[-1] != "R"
    assert restores.count("R") >= 5


def test_eviction_is_told():
    keys = {"buffers": {"x": "96MiB hipMallocManaged"}, "overrides": {"gpu.vram": "64MiB"}}
    found = lines([launch(writes="x")], **keys)
    starts = [row for row in found if row.startswith("5 ")]
    assert any(row.endswith(f" {int(MigrateTrigger.TTM_EVICTION)}") for row in starts)


def test_a_fatal_fault_is_told():
    assert "1 " in lines([launch(writes="x")], buffers={"x": "2MiB malloc"}, xnack=False)[-1]


FORMS = {
    "1": r"1 [0-9a-f]+:\w+",
    "5": r"5 \d+ -\d+ @[0-9a-f]+\([0-9a-f]+\) [0-9a-f]+->[0-9a-f]+ [0-9a-f]+:[0-9a-f]+ \d",
    "6": r"6 \d+ -\d+ @[0-9a-f]+\([0-9a-f]+\) [0-9a-f]+->[0-9a-f]+ \d -?\d+",
    "7": r"7 \d+ -\d+ @[0-9a-f]+\([0-9a-f]+\) [RW]",
    "8": r"8 \d+ -\d+ @[0-9a-f]+\([0-9a-f]+\) [MU]",
    "9": r"9 \d+ -\d+ [0-9a-f]+ \d",
    "a": r"a \d+ -\d+ [0-9a-f]+( R)?",
    "b": r"b \d+ -\d+ @[0-9a-f]+\([0-9a-f]+\) [0-9a-f]+ \d",
    "e": r"e \d+ -\d+ \d+",
}


@pytest.mark.parametrize("xnack", [True, False])
def test_every_line_has_the_form_of_its_event(xnack):
    steps = [touch("x"), prefetch("x"), sleep("10ms"), launch(reads="x"), touch("x"), synchronize()]
    for row in lines(steps, buffers={"x": "8MiB hipMallocManaged"}, xnack=xnack):
        assert re.fullmatch(FORMS[row.split()[0]], row), row


def test_times_never_run_backwards_and_starts_have_ends():
    steps = [touch("x"), launch(writes="x"), touch("x"), launch(reads="x", name="again")]
    found = lines(steps, buffers={"x": "16MiB hipMallocManaged"})
    times = [int(row.split()[1]) for row in found]
    assert times == sorted(times)
    numbers = [row.split()[0] for row in found]
    assert numbers.count("5") == numbers.count("6")
    assert numbers.count("7") == numbers.count("8")


def test_the_counters_of_a_process_count_pages():
    ran = run([touch("x"), launch(reads="x"), touch("x")], buffers={"x": "8MiB hipMallocManaged"})
    (process,) = ran.data.processes
    assert process.kfd["page_in"] == process.kfd["page_out"] == 8 * MIB // 4096
    assert process.kfd["faults"] >= 4


def test_events_that_do_not_fit_are_counted(monkeypatch):
    monkeypatch.setattr("gpusim.driver.events.MOST_ROWS", 2)
    log = EventLog(on=True)
    for time in (5, 1, 9):
        log.fault_start(time * 1000, 0, 16, 0, write=True)
    assert list(log.lines(["app"])) == ["7 1 -1000 @10(1000) W", "7 5 -1000 @10(1000) W", "e 9 -1000 1"]


def test_ids_of_places():
    assert (gpu_id(-1), gpu_id(UNDEFINED)) == (0, 0xFFFFFFFF)
    assert gpu_id(0) != gpu_id(1)
