"""A scenario back to text: resolved YAML that says the same, a hash that names the result, a JSON Schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.scenario import loader
from gpusim.scenario.yaml_nodes import compose, read_text
from gpusim.shipped import validation_dir
from gpusim.workload.steps import STEPS

ROOT = Path(__file__).parents[2]
STARTER = Path(loader.__file__).with_name("starter.yaml")
SHIPPED = sorted({*ROOT.glob("scenarios/*.yaml"), *validation_dir().glob("*.yaml"), STARTER})


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_every_shipped_scenario_loads_back_from_its_resolved_text(file: Path) -> None:
    scenario = loader.load(file)
    text = loader.resolved_yaml(scenario)
    again = loader.loads(text, file=file)
    assert again == scenario
    assert loader.resolved_yaml(again) == text
    assert loader.run_id(again) == loader.run_id(scenario)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_json_schema_accepts_every_shipped_scenario(file: Path) -> None:
    validator = jsonschema.Draft202012Validator(loader.json_schema())
    for text in (read_text(file), loader.resolved_yaml(loader.load(file))):
        validator.validate(compose(text)[0].plain())


def test_the_resolved_text_has_every_default_and_every_edit_in_it(right: str) -> None:
    scenario = loader.loads(right, sets={"parameters.rounds": 5, "processes.app.buffers.x.size": "1536MiB"})
    tree: Any = compose(loader.resolved_yaml(scenario))[0].plain()
    assert tree["parameters"] == {"prefetch": False, "rounds": 5}
    assert tree["kernels"]["scale"]["step"] == "64KiB"
    assert tree["processes"][0]["buffers"]["x"]["size"] == "1536MiB"
    fill, move, rounds = tree["processes"][0]["threads"]["main"]
    assert fill["host_touch"] == {"buffer": "x", "access": "write"}
    assert move["when"] == "${prefetch}"
    assert rounds["repeat"]["times"] == "${rounds}"


def test_the_resolved_text_can_be_changed_as_the_first_one_could(right: str) -> None:
    scenario = loader.loads(loader.resolved_yaml(loader.loads(right)))
    assert scenario.with_(**{"parameters.prefetch": True}).processes[0].threads["main"][1].when is True


def test_parameters_that_use_each_other_survive(right: str) -> None:
    scenario = loader.loads(right.replace("rounds: 3", 'rounds: "${n}", n: 3'))
    assert loader.loads(loader.resolved_yaml(scenario)) == scenario


def test_ranks_and_placeholders_survive(right: str) -> None:
    text = right.replace("- name: app", "- name: app\n    count: 2").replace("gpu: gpu1", 'gpu: "gpu${rank}"')
    scenario = loader.loads(text.replace("steps.scale[0]", "steps.scale[0][1]"))
    assert loader.loads(loader.resolved_yaml(scenario)) == scenario


@pytest.mark.parametrize(
    "word", ["on", "1", "0x1", "1e3", "true", "null", "~", "", " x ", "a: b", "- a", "#", "'", "é"]
)
def test_text_that_looks_like_something_else_stays_text(right: str, word: str) -> None:
    scenario = loader.loads(right, sets={"processes.app.env.WORD": word, "question": word})
    again = loader.loads(loader.resolved_yaml(scenario))
    assert again == scenario
    assert again.processes[0].env["WORD"] == word


@settings(max_examples=60)
@given(size=st.integers(2**33, 2**42), time=st.integers(1, 10**15), seed=st.integers(0, 2**63 - 1))
def test_numbers_survive_exactly(size: int, time: int, seed: int) -> None:
    scenario = loader.load(
        STARTER,
        sets={"processes.app.buffers.x.size": f"{size}B", "limits.simulated_time": f"{time}ps", "seed": seed},
    )
    again = loader.loads(loader.resolved_yaml(scenario))
    assert again == scenario
    assert again.processes[0].buffers["x"].size == size


def test_the_id_names_what_decides_the_result(right: str) -> None:
    scenario = loader.loads(right)
    assert len(loader.run_id(scenario)) == 12
    assert loader.run_id(scenario) == loader.run_id(loader.loads(f"# a comment\n{right}"))
    different = [
        scenario.with_(seed=8),
        scenario.with_(**{"parameters.prefetch": True}),
        scenario.with_(**{"overrides.gpu.hbm.size": "32GiB"}),
        scenario.with_(**{"driver.recent_skip": "off"}),
        scenario.with_(**{"system.gpus": 3}),
    ]
    assert len({loader.run_id(other) for other in [scenario, *different]}) == 6


def test_the_id_is_the_same_in_another_process() -> None:
    code = "import sys; from gpusim.scenario import loader; print(loader.run_id(loader.load(sys.argv[1])))"
    env = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-c", code, STARTER], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout.strip() == loader.run_id(loader.load(STARTER))


def test_the_json_schema_is_one_that_editors_accept() -> None:
    schema = loader.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert json.loads(json.dumps(schema)) == schema
    verbs = {next(iter(step["required"])) for step in schema["$defs"]["Step"]["oneOf"]}
    assert {"launch", "file_read", "repeat"} <= verbs
    assert verbs == set(STEPS)
    assert schema["properties"]["question"]["description"]
    assert schema["$defs"]["KernelSpec"]["properties"]["step"]["default"] == "64KiB"


def schema_errors(text: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(loader.json_schema())
    return [error.json_path for error in validator.iter_errors(compose(text)[0].plain())]


def test_the_json_schema_accepts_the_right_scenario(right: str) -> None:
    assert schema_errors(right) == []


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("size: 4GiB", "size: 4G", "$.processes[0].buffers.x.size"),
        ("size: 4GiB", "size: 4096", "$.processes[0].buffers.x.size"),
        ("size: 4GiB", "size: 0B", "$.processes[0].buffers.x.size"),
        ("size: 4GiB", "size: 0.00 GiB", "$.processes[0].buffers.x.size"),
        ("size: 4GiB", "size: 1e30GiB", "$.processes[0].buffers.x.size"),
        ("size: 4GiB", "size: 100000000000000000000B", "$.processes[0].buffers.x.size"),
        ("hipMallocManaged", "hipMallocManged", "$.processes[0].buffers.x.allocator"),
        ("seed: 7", "seed: seven", "$.seed"),
        ("seed: 7", "sead: 7", "$"),
        ("host_touch", "host_tuch", "$.processes[0].threads.main[0]"),
        ("version: 1", "version: 2", "$.version"),
        ('HSA_XNACK: "1"', "HSA_XNACK: 1", "$.processes[0].env.HSA_XNACK"),
    ],
)
def test_the_json_schema_sees_mistakes_while_one_types(right: str, old: str, new: str, path: str) -> None:
    assert path in schema_errors(right.replace(old, new))


@pytest.mark.parametrize(
    "text", ["4GiB", "64KiB", "800.6 MB", ".5GB", "1e3kB", "4G", "4", "4Gb", "x", "-1GiB", "4 m", ""]
)
def test_the_pattern_of_a_size_agrees_with_the_parser(right: str, text: str) -> None:
    from gpusim.quantity import QuantityError, parse_size

    try:
        parse_size(text)
        legal = True
    except QuantityError:
        legal = False
    assert (schema_errors(right.replace("size: 4GiB", f"size: '{text}'")) == []) is legal


def test_a_file_step_has_a_schema(right: str) -> None:
    text = right.replace(
        "host_touch: {buffer: x, access: write}", "file_read: {file: [f, f], buffer: w, io_size: 1MiB}"
    )
    text = text.replace(
        "    buffers:", "    files: {f: {size: 8GiB, filesystem: xfs, drive: nvme0}}\n    buffers:"
    )
    assert schema_errors(text) == []
    assert schema_errors(text.replace("io_size: 1MiB", "io_size: 1MiB, api: aio")) != []
