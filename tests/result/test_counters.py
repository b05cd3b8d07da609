"""`summary.counters`: what translation and interrupts of each GPU did, with the numbers that a count by hand gives."""

import pytest

from gpusim.result.result import Result
from gpusim.rundata import GPU_COUNTERS
from gpusim.simulation import simulate
from tests.programs import MIB, launch, process, repeat, scenario, touch


def result(*args, **keys):
    program = scenario(*args, **keys)
    return Result.from_run(program, simulate(program))


def counters(*args, **keys):
    return result(*args, **keys).summary["counters"]["gpu[0]"]


@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize(
    ("node", "size", "allocator", "reads"),
    [
        ("mi210-pcie4", 64 * MIB, "hipMalloc", 32),  # a PDE0 for each 2 MiB
        ("mi300a", 16 * MIB, "hipHostMalloc", 16 * 256),  # host pages are scattered: a PTE for each
    ],
)
def test_a_stream_reads_each_entry_of_the_page_table_once(node, size, allocator, reads, stepwise):
    found = counters(
        [launch(reads="x")],
        buffers={"x": f"{size}B {allocator}"},
        kernels={"scale": {"step": "32KiB"}},  # by default so small a buffer is cut below its pages
        stepwise=stepwise,
        node=node,
    )
    directories = 6 * (reads / 512 + 3)  # each die has its own walk cache
    assert reads * 0.9 <= found["table_reads"] <= reads + directories + 1


def test_twice_as_many_passes_over_scattered_pages_are_twice_as_many_reads():
    one, two = (
        counters(
            [touch("x"), launch(reads="x")],
            buffers={"x": "32MiB malloc"},
            node="mi300a",
            kernels={"scale": {"passes": passes}},
        )["table_reads"]
        for passes in (1, 2)
    )
    assert two == pytest.approx(2 * one, rel=0.1)


def test_processes_beyond_the_vmids_take_them_from_each_other():
    programs = [
        process([repeat(2, launch(writes="x"))], name=f"p{number}", buffers={"x": "64KiB hipMalloc"})
        for number in range(16)
    ]
    assert counters(processes=programs)["vmids_taken_over"] >= 3  # 13 of them, 3 to 15


def test_rings_tell_their_peaks_and_what_they_lost():
    small = {"driver.interrupts.soft_ring": 64, "driver.interrupts.ring0": 8192}
    ran = result([launch(writes="x")], buffers={"x": "16MiB malloc"}, overrides=small)
    found = ran.summary["counters"]["gpu[0]"]
    assert found["soft_ring_peak"] == 63
    assert found["soft_ring_lost"] == ran.summary["faults"]["overflowed"] > 0
    assert found["ring0_lost"] == 0
    assert 1 <= found["interrupts"] <= ran.summary["faults"]["vectors"]["count"]


def test_the_filter_has_ring_1_alone():
    found = counters([launch(writes="x")], buffers={"x": "16MiB malloc"}, driver={"dedup": "filter"})
    assert found["ring1_peak"] == 127
    assert not {"ring0_peak", "interrupts"} & set(found)


def test_closed_forms_keep_no_ring():
    found = counters([launch(writes="x")], buffers={"x": "4MiB malloc"})
    assert set(found) == {"table_reads", "vmids_taken_over"}


def test_ats_tells_what_the_cpu_page_table_had():
    found = counters(
        [touch("x", size="64KiB"), launch(reads="x")],
        buffers={"x": "128KiB malloc"},
        node="mi300a",
        driver={"apu": "ats_pri"},
        overrides={"gpu.apu.ats.contiguous": 0},
    )
    assert (found["ats_found"], found["page_requests"], found["ppr_log_lost"]) == (16, 16, 0)
    assert found["ats_requests"] == 32
    assert found["atc_fills_4k"] == 32
    assert 1 <= found["ppr_log_peak"] <= 16


def test_each_counter_is_defined_and_can_be_asked_for():
    ran = result([launch(writes="x")], buffers={"x": "4MiB malloc"})
    for gpu, found in ran.summary["counters"].items():
        assert set(found) <= set(GPU_COUNTERS)
        for name, value in found.items():
            path = f"counters.{gpu}.{name}"
            assert ran.metric(path) == value
            assert path in ran.metrics()
