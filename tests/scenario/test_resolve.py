"""The machine of a scenario: profiles put together, overrides on top, and every number with its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusim.driver.driver_spec import DriverSpec
from gpusim.errors import InputError
from gpusim.hardware.gpu_spec import GpuSpec, LinkSpec
from gpusim.linux.host_spec import HostSpec
from gpusim.quantity import GIB, US
from gpusim.scenario import loader, profiles
from gpusim.scenario.resolve import ALIASES, ResolvedSystem, build

NODE = """\
profile_version: 1
name: mine
cpu: epyc-7003-mi210
gpus:
  - profile: mi210
    link: &link
      h2d: {value: 20GB/s, source: my run of 2026-01-02, grade: measured}
      d2h: {value: 21GB/s, source: my run of 2026-01-02, grade: measured}
      coupling: {value: 0.1, source: a guess, grade: assumed, range: [0.05, 0.4]}
      latency: {value: 1us, source: a guess, grade: assumed, range: [0.5us, 2us]}
  - {profile: mi300x, count: 2, link: *link}
"""


def machine(right: str, **changes: Any) -> ResolvedSystem:
    return loader.resolve(loader.loads(right, sets=changes))


def test_a_machine_is_made_of_plain_trees_for_the_specs(right: str) -> None:
    system = machine(right)
    gpu = build(GpuSpec, system.gpus[1], "gpu[1]")
    assert gpu.gfx == "gfx90a"
    assert build(LinkSpec, system.links[1], "link[1]").coupling == 0.13
    assert build(HostSpec, system.cpu, "cpu").cores == 32
    assert build(DriverSpec, system.driver, "driver").switches.recent_skip == "2ms"
    assert len(system.gpus) == len(system.links) == 2
    assert system.gpu_profiles == ["mi210", "mi210"]
    assert system.versions["gpus/mi210"] >= 1


def test_every_number_has_its_source(right: str) -> None:
    system = machine(right)
    parameter = system.parameters["gpu.hbm.bandwidth"]
    assert (parameter.value, parameter.text, parameter.grade) == (1366e9, "1366GB/s", "measured")
    assert parameter.range == (1225e9, 1511e9)
    assert system.parameters["link.coupling"].grade == "assumed"
    assert "assumed" in system.provenance["link.coupling"]
    roots = {path.partition(".")[0] for path in system.parameters}
    assert roots == {"gpu", "link", "cpu", "driver", "drive", "node"}


def test_overrides_change_numbers_and_say_so(right: str) -> None:
    changes = {
        "overrides.gpu.hbm.size": "32GiB",
        "overrides.gpu[1].compute.compute_units": 60,
        "overrides.link.latency": "2us",
        "overrides.driver.svm.default_granularity": "4MiB",
        "overrides.cpu.memory": "64GiB",
    }
    system = machine(right, **changes)
    assert [build(GpuSpec, tree, "gpu").hbm.size for tree in system.gpus] == [32 * GIB, 32 * GIB]
    assert [tree["compute"]["compute_units"] for tree in system.gpus] == [104, 60]
    assert [build(LinkSpec, tree, "link").latency for tree in system.links] == [2 * US, 2 * US]
    assert system.driver["svm"]["default_granularity"] == "4MiB"
    changed = system.parameters["gpu.hbm.size"]
    assert (changed.grade, changed.value) == ("override", 32 * GIB)
    assert changed.source == "overrides of the scenario, instead of 68702699520B"
    assert machine(right).gpus[0]["hbm"]["size"] == "68702699520B", "the profile is as it was"


def test_old_and_short_paths_stay_alive(right: str) -> None:
    assert machine(right, **{"overrides.gpu.vram": "32GiB"}).gpus[0]["hbm"]["size"] == "32GiB"
    known = machine(right).parameters
    assert all(path in known for path in ALIASES.values())


@pytest.mark.parametrize(
    ("path", "value", "message", "nearest"),
    [
        ("gpu.hbm.sise", "32GiB", "the machine has no such number", "gpu.hbm.size"),
        ("gpu.hbm", "32GiB", "the machine has no such number", "gpu.hbm.size"),
        ("gpu[2].hbm.size", "32GiB", "the machine has no such number", "gpu.hbm.size"),
        ("gppu.hbm.size", "32GiB", "the machine has no such number", "gpu.hbm.size"),
        ("gpu", "32GiB", "the machine has no such number", None),
        ("drive.nvme0.size", "1GiB", "the machine has no such number", None),
        ("gpu.hbm.size", 32, "the value is of another kind", None),
        ("gpu.hbm.size", "32G", "the value is of another kind", None),
        ("gpu.hbm.size", "32us", "the value is of another kind", None),
        ("gpu.compute.compute_units", "many", "the value is of another kind", None),
        ("gpu.compute.compute_units", True, "the value is of another kind", None),
    ],
)
def test_an_override_that_cannot_be_is_told(
    right: str, path: str, value: object, message: str, nearest: str | None
) -> None:
    text = right.replace(
        "seed: 7", f"seed: 7\noverrides: {{'{path}': {str(value).lower() if value is True else value}}}"
    )
    with pytest.raises(InputError) as refusal:
        loader.loads(text)
    (problem,) = refusal.value.problems
    assert (problem.message, problem.path) == (message, f"overrides.{path}")
    assert problem.line == 25
    if nearest is not None:
        assert problem.nearest == nearest


def test_a_spec_that_refuses_a_number_names_its_path(right: str) -> None:
    tree = machine(right).gpus[0]
    tree["compute"]["compute_units"] = -4
    with pytest.raises(InputError) as refusal:
        build(GpuSpec, tree, "gpu[0]")
    assert str(refusal.value) == "gpu[0].compute.compute_units: must be above 0 (read -4)"


def test_gpus_that_differ_have_numbers_of_their_own(right: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(NODE)
    system = machine(right, **{"system.node": str(file), "system.gpus": 3})
    assert system.gpu_profiles == ["mi210", "mi300x", "mi300x"]
    assert system.parameters["gpu[0].hbm.size"].value < system.parameters["gpu[2].hbm.size"].value
    assert "gpu.hbm.size" not in system.parameters
    same = machine(right, **{"system.node": str(file), "system.gpus": 3, "overrides.gpu.hbm.size": "1GiB"})
    assert "gpu[0].hbm.size" not in same.parameters
    assert same.parameters["gpu.hbm.size"].text == "1GiB"


def test_a_node_may_carry_its_parts_in_itself(right: str, tmp_path: Path) -> None:
    import yaml

    tree = yaml.safe_load(NODE)
    host = yaml.safe_load(profiles.load("cpus", "epyc-7003-mi210").text)
    host["cores"] = {"value": 8, "source": "lscpu", "grade": "measured"}
    tree["cpu"] = host
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(tree))
    system = machine(right, **{"system.node": str(file)})
    assert build(HostSpec, system.cpu, "cpu").cores == 8
    assert system.parameters["cpu.cores"].source == "lscpu"


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        (
            "source: a guess, grade: assumed, range: [0.05, 0.4]",
            "grade: assumed, range: [0.05, 0.4]",
            9,
            "its source",
        ),
        ("grade: measured}\n      d2h", "grade: mesured}\n      d2h", 7, "needs its grade"),
        ("grade: assumed, range: [0.05, 0.4]", "grade: assumed", 9, "what is assumed needs a `range`"),
        (
            "grade: assumed, range: [0.05, 0.4]",
            "grade: fitted",
            9,
            "what is fitted needs its `rows` or a `range`",
        ),
        ("range: [0.05, 0.4]", "range: [0.2, 0.4]", 9, "does not hold the value"),
        ("range: [0.05, 0.4]", "range: [1us, 2us]", 9, "needs two amounts of the value's kind"),
        ("range: [0.05, 0.4]", "rnage: [0.05, 0.4]", 9, "unknown key 'rnage'"),
        (
            "{value: 20GB/s, source: my run of 2026-01-02, grade: measured}",
            "20GB/s",
            7,
            "its source and grade",
        ),
        ("profile_version: 1", "profile_version: one", 1, "needs a whole number from 1"),
        ("name: mine\n", "", 1, "a profile needs its name"),
    ],
)
def test_a_profile_without_sources_is_refused(
    right: str, tmp_path: Path, old: str, new: str, where: int, message: str
) -> None:
    assert NODE.count(old) == 1
    file = tmp_path / "mine.yaml"
    file.write_text(NODE.replace(old, new))
    with pytest.raises(InputError) as refusal:
        machine(right, **{"system.node": str(file)})
    problem = next(problem for problem in refusal.value.problems if message in problem.message)
    assert (problem.file, problem.line) == (str(file), where)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("profile: mi300x", "profile: mi300", "there is no gpu profile 'mi300'"),
        ("cpu: epyc-7003-mi210", "cpu: epic", "there is no cpu profile 'epic'"),
        ("cpu: epyc-7003-mi210\n", "", "needs the name of a profile"),
        ("count: 2", "count: 0", "the count of GPUs is from 1 to 64"),
        ("gpus:\n", "gpus:\n  - mi210\n", "needs a list of {profile, count, link}"),
    ],
)
def test_a_node_with_unknown_parts_is_refused(
    right: str, tmp_path: Path, old: str, new: str, message: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(NODE.replace(old, new))
    with pytest.raises(InputError, match=message.replace("{", r"\{")):
        machine(right, **{"system.node": str(file)})


def test_profiles_are_found_by_name() -> None:
    assert {"mi210", "mi300x", "radeon-vii"} <= set(profiles.names("gpus"))
    (found,) = profiles.find("mi210")
    assert (found.kind, found.name) == ("gpus", "mi210")
    assert "profile_version: 1" in found.text
    with pytest.raises(InputError, match="did you mean 'mi210'"):
        profiles.find("mi21")
