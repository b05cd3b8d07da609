"""`--set`, `with_` and sweeps edit the tree before it is checked: the same rules, and a clear place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim.errors import InputError, Problem
from gpusim.quantity import GIB, S
from gpusim.scenario import loader
from gpusim.scenario.words import Allocator, EngineMode
from gpusim.workload.steps.control import Repeat
from gpusim.workload.steps.launch import Launch

Spoil = Callable[..., list[Problem]]


def test_with_makes_a_changed_copy(right: str) -> None:
    base = loader.loads(right)
    changed = base.with_(
        **{
            "parameters.prefetch": True,
            "processes.app.env.HSA_XNACK": "0",
            "processes.app.buffers.x.size": "1GiB",
            "processes.app.buffers.x.allocator": Allocator.MALLOC,
            "processes.app.threads.main.rounds.repeat.steps.scale.launch.wait": False,
            "limits.simulated_time": "60s",
            "engine.mode": "stepwise",
            "overrides.gpu.vram": "32GiB",
            "seed": np.int64(9),
        }
    )
    app = changed.processes[0]
    assert app.threads["main"][1].when is True
    assert app.env == {"HSA_XNACK": "0"}
    assert app.buffers["x"].size == GIB
    rounds = app.threads["main"][2].args
    assert isinstance(rounds, Repeat)
    assert isinstance(rounds.steps[0].args, Launch)
    assert rounds.steps[0].args.wait is False
    assert changed.limits.simulated_time == 60 * S
    assert changed.engine.mode is EngineMode.STEPWISE
    assert changed.overrides == {"gpu.vram": "32GiB"}
    assert changed.seed == 9
    assert base == loader.loads(right), "the first one is as it was"


def test_changes_add_up(right: str) -> None:
    scenario = loader.loads(right).with_(seed=1).with_(**{"parameters.rounds": 5})
    assert (scenario.seed, scenario.parameters["rounds"]) == (1, 5)
    assert scenario.raw["parameters"] == {"prefetch": False, "rounds": 5}
    assert scenario.raw["processes"][0]["threads"]["main"][2]["repeat"]["times"] == "${rounds}"


def test_members_of_lists_have_names_and_numbers(right: str) -> None:
    base = loader.loads(right)
    by_name = base.with_(**{"processes.app.threads.main.fill.host_touch.access": "read"})
    by_number = base.with_(**{"processes[0].threads.main[0].host_touch.access": "read"})
    assert by_name == by_number != base


def test_the_seed_of_a_load_replaces_that_of_the_file(right: str) -> None:
    assert loader.loads(right, seed=3).seed == 3


@pytest.mark.parametrize(
    ("argument", "path", "value"),
    [
        ("parameters.prefetch=true", "parameters.prefetch", True),
        ("parameters.how=on", "parameters.how", "on"),
        ("seed=12", "seed", 12),
        ("x.size= 4GiB ", "x.size", "4GiB"),
        ("a.reads=[x, y]", "a.reads", ["x", "y"]),
        ("a.b=", "a.b", ""),
        ("a.b==x", "a.b", "=x"),
        ("processes.app.env.HSA_XNACK=0", "processes.app.env.HSA_XNACK", "0"),
        ('processes.app.env.HSA_XNACK="0"', "processes.app.env.HSA_XNACK", "0"),
        ("processes.app.env.PATH=a: b", "processes.app.env.PATH", "a: b"),
    ],
)
def test_the_command_line_gives_yaml_values(argument: str, path: str, value: Any) -> None:
    assert loader.parse_set(argument) == (path, value)


@pytest.mark.parametrize("argument", ["seed", "=3", "seed=[1", "seed=!!python/object:x {}", "seed=a: b: c"])
def test_a_malformed_set_is_refused(argument: str) -> None:
    with pytest.raises(InputError, match="--set"):
        loader.parse_set(argument)


@pytest.mark.parametrize(
    ("path", "message", "nearest"),
    [
        ("parameters.prefetsch", "there is no such path: 'parameters' has no 'prefetsch'", "prefetch"),
        ("processes.ap.count", "there is no such path: 'processes' has no 'ap'", "app"),
        ("processes.app.buffers.y.size", "there is no such path: 'processes.app.buffers' has no 'y'", None),
        ("processes.app.threads.main.fil.when", "'processes.app.threads.main' has no 'fil'", "fill"),
        ("kernels.scael.passes", "there is no such path: 'kernels' has no 'scael'", "scale"),
        ("system.node.name", "there is no such path: 'system.node' is a value, not a mapping", None),
        ("processes[3].count", "there is no such path: 'processes' has 1 members", None),
        ("sead", "unknown key 'sead'", "seed"),
        ("engin.mode", "unknown key 'engin'", "engine"),
        ("limits.simulated", "unknown key 'simulated'", "simulated_time"),
        ("overrides.gpu.hbm.bandwith", "the machine has no such number", "gpu.hbm.bandwidth"),
        ("", "is not a path", None),
        ("a..b", "is not a path", None),
        ("processes[x]", "is not a path", None),
    ],
)
def test_a_path_that_does_not_exist_names_the_nearest(
    right: str, path: str, message: str, nearest: str | None
) -> None:
    with pytest.raises(InputError) as refusal:
        loader.loads(right, sets={path: 1})
    problem = refusal.value.problems[-1]
    assert message in problem.message
    assert problem.nearest == nearest
    assert problem.file == f"--set {path}=1"
    assert problem.line is None


def test_a_wrong_value_blames_the_set_and_not_the_file(spoil: Spoil) -> None:
    problem = spoil(sets={"processes.app.buffers.x.size": 4096})[0]
    assert problem.file == "--set processes.app.buffers.x.size=4096"
    assert problem.message == "a size needs a unit"
    assert problem.path == "processes.app.buffers.x.size"


def test_objects_that_yaml_has_no_word_for_are_refused(right: str) -> None:
    with pytest.raises(InputError, match="object is no value of a scenario"):
        loader.loads(right).with_(seed=object())


def test_two_members_of_one_name_need_a_number(right: str) -> None:
    text = right.replace("seed: 7", "  - {name: app}\nseed: 7")
    with pytest.raises(InputError, match=r"2 members of 'processes' have this name: use \[index\]"):
        loader.loads(text, sets={"processes.app.count": 2})


def sweeping(right: str, over: str) -> list[Problem]:
    with pytest.raises(InputError) as refusal:
        loader.loads(right + f"sweep: {{over: {over}}}\n")
    return list(refusal.value.problems)


def test_a_sweep_is_checked_before_its_first_run(right: str) -> None:
    good = loader.loads(
        right + "sweep: {over: {parameters.rounds: [1, 2], system.gpus: [2]}, replications: 3}\n"
    )
    assert good.sweep is not None
    assert good.sweep.over == {"parameters.rounds": (1, 2), "system.gpus": (2,)}
    assert sweeping(right, "{parameters.round: [1]}")[0].nearest == "rounds"
    assert sweeping(right, "{name: [a, b]}")[0].message == "this cannot be swept"
    bad = sweeping(right, "{processes.app.buffers.x.size: [1GiB, 2G, 3GiB]}")
    assert len(bad) == 1
    assert bad[0].path == "sweep.over.processes.app.buffers.x.size[1]"
    assert "ambiguous" in bad[0].message
    assert sweeping(right, "{processes.app.threads.main.fill.kind: [a]}")[0].path.endswith("kind[0]")


def test_relative_paths_begin_at_the_file(right: str, tmp_path: Path) -> None:
    from gpusim.scenario import profiles

    (tmp_path / "mine.yaml").write_text(profiles.load("nodes", "mi210-pcie4").text)
    file = tmp_path / "scenario.yaml"
    file.write_text(right.replace("mi210-pcie4", "./mine.yaml"))
    assert loader.resolve(loader.load(file)).gpu_profiles == ["mi210", "mi210"]
    file.write_text(right.replace("mi210-pcie4", "./other.yaml"))
    with pytest.raises(InputError, match=r"no node profile file .*other\.yaml"):
        loader.load(file)
