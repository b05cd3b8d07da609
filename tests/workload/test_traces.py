"""Trace files: what they may say, what is wrong with them, and wavefronts that do what they say."""

import pytest

from gpusim.errors import InputError
from gpusim.hardware.access import AccessKind
from gpusim.scenario import loader
from gpusim.simulation import simulate
from gpusim.workload.trace_file import read_trace
from tests.programs import Ran

SCENARIO = """\
version: 1
name: traced
system: {node: mi210-pcie4, gpus: 1}
driver: {recent_skip: "off"}
kernels:
  walk: {pattern: trace, file: walk.csv}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: 8MiB, allocator: malloc}
      y: {size: 4MiB, allocator: malloc}
    threads:
      main:
        - {name: walk, launch: {kernel: walk, reads: [x, y], wait: true}}
"""
GOOD = """\
kernel,wavefront,order,page,kind
walk,0,1,0,read
walk,0,3,1024,write
walk,0,2,512,read
walk,1,1,0x800,atomic
other,0,1,5,execute
"""


def traced(tmp_path, text, scenario=SCENARIO):
    (tmp_path / "walk.csv").write_text(text)
    (tmp_path / "s.yaml").write_text(scenario)
    return loader.load(tmp_path / "s.yaml")


def test_accesses_come_by_wavefront_and_in_order(tmp_path):
    (tmp_path / "walk.csv").write_text(GOOD)
    waves = read_trace("walk.csv", tmp_path)["walk"]
    assert {wave: [access.page for access in accesses] for wave, accesses in waves.items()} == {
        0: [0, 512, 1024],
        1: [2048],
    }
    assert waves[1][0].kind is AccessKind.ATOMIC


def test_addresses_and_times_do_as_well(tmp_path):
    (tmp_path / "walk.csv").write_text(
        "time,address,kind,kernel,wavefront\n0.5,0x2fff,read,walk,3\n0.25,0,read,walk,3\n"
    )
    assert [access.page for access in read_trace("walk.csv", tmp_path)["walk"][3]] == [0, 2]


@pytest.mark.parametrize("mode", ["grouped", "stepwise"])
def test_the_wavefronts_of_a_trace_fault_where_it_says(tmp_path, mode):
    scenario = traced(tmp_path, GOOD, SCENARIO + f"engine: {{mode: {mode}}}\n")
    ran = Ran(simulate(scenario, record="summary"))
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 4
    pages = sorted(ran.data.tables["faults"]["page"].tolist())
    assert [page - pages[0] for page in pages[:3]] == [0, 512, 1024]


def test_a_trace_on_mapped_memory_is_what_its_accesses_move(tmp_path):
    lines = [f"walk,{wave},{number},{number % 2048},read" for wave in range(64) for number in range(512)]
    scenario = traced(
        tmp_path,
        "kernel,wavefront,order,page,kind\n" + "\n".join(lines),
        SCENARIO.replace("malloc", "hipMalloc"),
    )
    ran = Ran(simulate(scenario, record="summary"))
    moved = 64 * 512 * 512
    assert ran.raised == 0
    assert next(use for use in ran.data.uses if use.name == "gpu[0].hbm").bytes == pytest.approx(
        moved, rel=0.01
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "needs one column kernel"),
        ("kernel,wavefront,order,page\n", 1, "needs one column kind"),
        ("kernel,wavefront,order,page,address,kind\n", 1, "needs one column page or address"),
        ("kernel,wavefront,order,page,kind,colour\n", 1, "unknown column"),
        ("kernel,wavefront,order,page,kind\nwalk,0,1,0\n", 2, "number of cells"),
        ("kernel,wavefront,order,page,kind\n\nwalk,-1,1,0,read\n", 3, "not a wavefront"),
        ("kernel,wavefront,order,page,kind\nwalk,0,soon,0,read\n", 2, "to order accesses by"),
        ("kernel,wavefront,order,page,kind\nwalk,0,nan,0,read\n", 2, "to order accesses by"),
        ("kernel,wavefront,order,page,kind\nwalk,0,1,0x,read\n", 2, "not a page"),
        ("kernel,wavefront,order,page,kind\nwalk,0,1,-4,read\n", 2, "not a page"),
        ("kernel,wavefront,order,page,kind\nwalk,0,1,0,look\n", 2, "not a kind of access"),
        ("kernel,wavefront,order,page,kind\n", None, "no accesses"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, line, message):
    with pytest.raises(InputError) as caught:
        traced(tmp_path, text)
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.line == line
    assert problem.file.endswith("walk.csv")


def test_all_bad_lines_are_named_at_once(tmp_path):
    bad = "kernel,wavefront,order,page,kind\nwalk,0,1,0,look\nwalk,0,2,0,read\nwalk,x,2,0,read\n"
    with pytest.raises(InputError) as caught:
        traced(tmp_path, bad)
    assert [problem.line for problem in caught.value.problems] == [2, 4]


def test_a_trace_that_is_not_there_is_an_error(tmp_path):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    with pytest.raises(InputError, match="No such file"):
        loader.load(tmp_path / "s.yaml")


def test_a_trace_must_know_the_kernel(tmp_path):
    with pytest.raises(InputError, match="no accesses of kernel walk"):
        traced(tmp_path, GOOD.replace("walk", "stroll"))


def test_a_page_beyond_the_buffers_names_its_line(tmp_path):
    scenario = traced(tmp_path, GOOD.replace("0x800", "3072"))
    with pytest.raises(InputError, match="page 3072 in line 5"):
        simulate(scenario, record="summary")


def test_keys_that_a_trace_ignores_are_errors(tmp_path):
    with pytest.raises(InputError, match="would ignore"):
        traced(tmp_path, GOOD, SCENARIO.replace("file: walk.csv", "file: walk.csv, passes: 2"))


def test_a_byte_order_mark_of_a_spreadsheet_does_no_harm(tmp_path):
    assert traced(tmp_path, "\ufeff" + GOOD).name == "traced"


def test_a_cell_without_end_is_no_csv(tmp_path):
    with pytest.raises(InputError, match="not a CSV file"):
        traced(tmp_path, GOOD + "walk,0,4,0," + "w" * 140_000 + "\n")


def test_a_name_that_no_file_can_have_is_an_error(tmp_path):
    with pytest.raises(InputError, match="not a file name"):
        traced(tmp_path, GOOD, SCENARIO.replace("walk.csv", '"a\\0b"'))


def test_a_launch_is_credited_with_what_its_accesses_ask_for(tmp_path):
    ran = Ran(simulate(traced(tmp_path, GOOD), record="summary"))
    (step,) = ran.data.steps
    assert step.bytes == 4 * 64 * 8  # of its own lines: lanes, and bytes a lane
