"""A result is run again from its own directory: what the scenario names lies there too."""

import shutil
from pathlib import Path

import pytest
import yaml

import gpusim as gs
from gpusim.errors import InputError
from gpusim.scenario import companions, loader
from gpusim.scenario.profiles import load

TRACED = """\
version: 1
name: traced
system: {node: mi210-pcie4, gpus: 1}
kernels:
  walk: {pattern: trace, file: traces/walk.csv}
  back: {pattern: trace, file: traces/walk.csv}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers: {x: {size: 8MiB, allocator: malloc}}
    threads:
      main:
        - {name: walk, launch: {kernel: walk, reads: [x], wait: true}}
        - {name: back, launch: {kernel: back, reads: [x], wait: true}}
"""
PLAIN = """\
processes:
  - name: app
    threads: {main: [{sleep: {duration: 1ms}}]}
"""
WALK = "kernel,wavefront,order,page,kind\nwalk,0,1,0,read\nwalk,0,2,512,write\nback,0,1,512,read\n"


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "traces").mkdir(parents=True)
    (folder / "traces" / "walk.csv").write_text(WALK)
    (folder / "traced.yaml").write_text(TRACED)
    return folder / "traced.yaml"


def test_a_result_with_a_trace_runs_again_from_where_it_lies(traced: Path, tmp_path: Path) -> None:
    first = gs.run(traced, out=tmp_path / "out")
    first_id = loader.run_id(gs.load(traced))
    shutil.rmtree(traced.parent)
    again = gs.load(tmp_path / "out" / "scenario.yaml")
    assert loader.run_id(again) == first_id
    assert gs.run(again).summary["makespan_ns"] == first.summary["makespan_ns"]
    assert [path.name for path in (tmp_path / "out" / "files").iterdir()] == ["walk.csv"]


def test_a_result_that_was_read_back_takes_its_files_along(traced: Path, tmp_path: Path) -> None:
    gs.run(traced, out=tmp_path / "out")
    gs.open_result(tmp_path / "out").save(tmp_path / "moved")
    shutil.rmtree(tmp_path / "out")
    assert gs.open_result(tmp_path / "moved").scenario.kernels["walk"].file == "files/walk.csv"


def test_another_trace_is_another_run(traced: Path) -> None:
    before = loader.run_id(gs.load(traced))
    (traced.parent / "traces" / "walk.csv").write_text(WALK + "walk,0,3,4,read\n")
    assert loader.run_id(gs.load(traced)) != before


def test_a_machine_of_ones_own_comes_along_with_its_parts(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    (folder / "parts").mkdir(parents=True)
    node = load("nodes", "mi210-4nvme").text
    drive = load("drives", "solidigm-d7-ps1010").text
    (folder / "lab.yaml").write_text(
        node.replace("name: mi210-4nvme", "name: lab").replace("solidigm-d7-ps1010", "parts/fast.yaml")
    )
    (folder / "parts" / "fast.yaml").write_text(drive.replace("name: solidigm-d7-ps1010", "name: fast"))
    scenario = folder / "scenario.yaml"
    scenario.write_text(TRACED.replace("mi210-pcie4", "lab.yaml").split("kernels:", maxsplit=1)[0] + PLAIN)
    text, files = companions.copy_of(gs.load(scenario))
    assert sorted(files) == ["files/fast.yaml", "files/lab.yaml"]
    assert yaml.safe_load(text)["system"]["node"] == "files/lab.yaml"
    (tmp_path / "copy").mkdir()
    companions.write_beside(tmp_path / "copy", files)
    (tmp_path / "copy" / "scenario.yaml").write_text(text)
    copied = gs.load(tmp_path / "copy" / "scenario.yaml")
    assert loader.run_id(copied) == loader.run_id(gs.load(scenario))


def test_files_of_one_name_are_told_apart(traced: Path) -> None:
    other = traced.parent / "other"
    other.mkdir()
    (other / "walk.csv").write_text(WALK)
    traced.write_text(TRACED.replace("file: traces/walk.csv}", "file: other/walk.csv}", 1))
    _, files = companions.copy_of(gs.load(traced))
    assert sorted(files) == ["files/2/walk.csv", "files/walk.csv"]


def test_a_trace_that_has_gone_is_named(traced: Path) -> None:
    scenario = gs.load(traced)
    shutil.rmtree(traced.parent / "traces")
    with pytest.raises(InputError, match="No such file"):
        companions.copy_of(scenario)


def test_a_scenario_that_names_no_files_has_none_beside_it() -> None:
    scenario = loader.loads(TRACED.split("kernels:", maxsplit=1)[0] + PLAIN)
    assert companions.copy_of(scenario) == (loader.resolved_yaml(scenario), {})


def test_a_tiled_kernel_reads_back_though_it_has_no_step() -> None:
    tiled = PLAIN.replace("processes:", "kernels:\n  t: {pattern: tiled, tile: 16}\nprocesses:")
    scenario = loader.loads(TRACED.split("kernels:", maxsplit=1)[0] + tiled)
    assert loader.loads(loader.resolved_yaml(scenario)).kernels == scenario.kernels
