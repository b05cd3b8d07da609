"""The machine that a scenario names: profiles put together, driver switches and `overrides` applied.

Overrides name numbers by path. The roots are `gpu` (all GPUs; `gpu[1]` one of them), `link` and `link[1]`
(the GPU's link to its CPU), `cpu`, `driver`, `drive.NAME` and `node`; what follows is the path in that
profile, e.g. `gpu.hbm.bandwidth` or `driver.svm.default_granularity`. `ALIASES` keeps short and former names
alive.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gpusim.driver.switches import SUPPORTED
from gpusim.errors import InputError, NotSupportedYet, Problem
from gpusim.rundata import Parameter
from gpusim.scenario import profiles
from gpusim.scenario.mistakes import NOT_SUPPORTED_PAGE, Mistakes, shown
from gpusim.scenario.paths import TreePath, assign, get, nearest
from gpusim.scenario.schema import Driver, Scenario, System

ModelT = TypeVar("ModelT", bound=BaseModel)
Tree = dict[str, Any]

#: short or former path -> path of today
ALIASES: Mapping[str, str] = {
    "gpu.vram": "gpu.hbm.size",
    "cpu.ram": "cpu.memory",
    "gpu.utcl2.miss": "gpu.walker.read",
}
_ROOT = re.compile(r"(gpu|link)(?:\[(\d+)\])?|cpu|node|driver|drive")


_START = "as `gpusim profiles NAME --yaml` prints it"


@dataclass(frozen=True)
class ResolvedSystem:
    """Plain trees for the specs of the parts, and where each number came from.

    `gpus[i]` and `links[i]` belong to GPU i. `parameters` has every number by its override path; those that
    all GPUs share are there once, as `gpu.hbm.size`.
    """

    node: Tree
    cpu: Tree
    driver: Tree
    gpus: list[Tree]
    links: list[Tree]
    drives: dict[str, Tree]
    gpu_profiles: list[str]
    parameters: dict[str, Parameter]
    versions: dict[str, int] = field(default_factory=dict)  # profile -> profile_version

    @property
    def provenance(self) -> dict[str, str]:
        """Path -> source and grade in words."""
        return {path: f"{p.source} ({p.grade})" for path, p in self.parameters.items()}


def resolve(scenario: Scenario) -> ResolvedSystem:
    """The machine of a scenario. Raises InputError for a profile, GPU or override that does not exist."""
    folder = scenario.source.parent if scenario.source is not None else None
    machine = assemble(scenario.system, scenario.driver, folder)
    return override(machine, scenario.overrides)


def assemble(system: System, driver: Driver, folder: Path | None = None) -> ResolvedSystem:
    """The machine without overrides. `folder` is where relative paths of profile files begin."""
    node = profiles.load("nodes", system.node, beside=folder)
    beside = node.file.parent if profiles.is_path(system.node) else None
    tree = copy.deepcopy(node.tree)
    parameters = {f"node.{path}": parameter for path, parameter in node.parameters.items()}
    versions = {f"nodes/{node.name}": node.version}
    host = _part("cpus", tree.pop("cpu", None), "cpu", node, beside)
    members = list(_gpus(tree.pop("gpus", None), node, beside, system.gpus))
    disks = dict(_drives(tree.pop("drives", None), node, beside))
    chosen = _driver(driver)
    for part in (host, chosen, *(gpu for gpu, _, _ in members), *disks.values()):
        if part.version:
            versions[f"{part.kind}/{part.name}"] = part.version
    for path in [path for path in parameters if path.startswith(("node.gpus.", "node.drives.", "node.cpu."))]:
        del parameters[path]
    _add(parameters, "cpu", host.parameters)
    _add(parameters, "driver", chosen.parameters)
    for name, disk in disks.items():
        _add(parameters, f"drive.{name}", disk.parameters)
    for index, (gpu, _, link) in enumerate(members):
        _add(parameters, _one("gpu", index, [other.name for other, _, _ in members]), gpu.parameters)
        _add(parameters, _one("link", index, [entry for _, entry, _ in members]), link)
    trees = [_spec(gpu.tree) for gpu, _, _ in members]
    links = [copy.deepcopy(entry.get("link") or {}) for _, entry, _ in members]
    driver_tree = _spec(chosen.tree)
    switches = {name: value.value for name in SUPPORTED if (value := getattr(driver, name)) is not None}
    driver_tree["switches"] = {**(driver_tree.get("switches") or {}), **switches}
    return ResolvedSystem(
        node=tree,
        cpu=_spec(host.tree),
        driver=driver_tree,
        gpus=trees,
        links=links,
        drives={name: _spec(disk.tree) for name, disk in disks.items()},
        gpu_profiles=[gpu.name for gpu, _, _ in members],
        parameters=parameters,
        versions=versions,
    )


def override(machine: ResolvedSystem, overrides: Mapping[str, Any]) -> ResolvedSystem:
    """A copy with other numbers. Raises InputError with every override that is not legal."""
    if not overrides:
        return machine
    changed: ResolvedSystem = replace(
        machine,
        node=copy.deepcopy(machine.node),
        cpu=copy.deepcopy(machine.cpu),
        driver=copy.deepcopy(machine.driver),
        gpus=copy.deepcopy(machine.gpus),
        links=copy.deepcopy(machine.links),
        drives=copy.deepcopy(machine.drives),
        parameters=dict(machine.parameters),
    )
    problems = [
        problem
        for path, value in overrides.items()
        if (problem := _override(changed, ALIASES.get(path, path), path, value)) is not None
    ]
    if problems:
        raise InputError(problems)
    return changed


def build(model: type[ModelT], tree: Tree, root: str) -> ModelT:
    """The spec of a part from its tree; `root` (`gpu[0]`, `driver`, ...) begins the paths in messages."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        mistakes = Mistakes({root: tree})
        mistakes.report_validation(error, model, (root,))
        raise InputError(mistakes.problems) from None


def _override(machine: ResolvedSystem, path: str, written: str, value: Any) -> Problem | None:
    place = f"overrides.{written}"
    targets = list(_targets(machine, path))
    known = [key for key in machine.parameters if "." in key]
    old = [get(tree, inside) for tree, inside in targets]
    if not targets or any(item is None or isinstance(item, dict | list) for item in old):
        return Problem(
            "the machine has no such number",
            path=place,
            legal="`gpusim profiles` lists them; e.g. " + ", ".join(known[:3]) if known else None,
            nearest=nearest(path, [*known, *ALIASES]),
        )
    for before in old:
        kinds = [kind[1] if (kind := profiles.amount(item)) else "word" for item in (before, value)]
        if kinds[0] != kinds[1] or isinstance(before, bool) != isinstance(value, bool):
            legal = f"a {kinds[0]} such as {before}"
            return Problem("the value is of another kind", path=place, read=shown(value), legal=legal)
    for tree, inside in targets:
        assign(tree, inside, value)
    number = profiles.amount(value)
    machine.parameters[path] = Parameter(
        path,
        number[0] if number else value,
        str(value),
        f"overrides of the scenario, instead of {old[0]}",
        "override",
        None,
    )
    if path.startswith(("gpu.", "link.")):  # numbers that GPUs had of their own are no longer theirs
        root, _, rest = path.partition(".")
        for key in [
            key for key in machine.parameters if re.fullmatch(rf"{root}\[\d+\]\.{re.escape(rest)}", key)
        ]:
            del machine.parameters[key]
    return None


def _targets(machine: ResolvedSystem, path: str) -> Iterator[tuple[Tree, TreePath]]:
    """The trees that an override path reaches into, and the path inside each."""
    root, _, rest = path.partition(".")
    match = _ROOT.fullmatch(root)
    inside = tuple(rest.split("."))
    if match is None or not rest:
        return
    if match[1]:
        trees = machine.gpus if match[1] == "gpu" else machine.links
        yield from ((tree, inside) for i, tree in enumerate(trees) if match[2] is None or int(match[2]) == i)
    elif root == "drive":
        name, _, rest = rest.partition(".")
        if name in machine.drives and rest:
            yield machine.drives[name], tuple(rest.split("."))
    else:
        tree: Tree = getattr(machine, root)
        yield tree, inside


def _driver(driver: Driver) -> profiles.Profile:
    known = profiles.names("drivers")
    if driver.preset in known:
        return profiles.load("drivers", driver.preset)
    message = f"driver preset {driver.preset} is not supported yet, see {NOT_SUPPORTED_PAGE}"
    raise NotSupportedYet([Problem(message, path="driver.preset", legal=", ".join(known))])


def preset_switches(driver: Driver) -> dict[str, Any]:
    """The switches of the preset alone."""
    return dict(_spec(_driver(driver).tree).get("switches") or {})


def _part(kind: str, entry: Any, key: str, node: profiles.Profile, beside: Path | None) -> profiles.Profile:
    """A profile that a node names, or one that is written out inside the node."""
    if isinstance(entry, str):
        return profiles.load(kind, entry, beside=beside)
    if isinstance(entry, dict):
        own = {
            path.removeprefix(f"{key}."): replace(parameter, path=path.removeprefix(f"{key}."))
            for path, parameter in node.parameters.items()
            if path.startswith(f"{key}.")
        }
        return profiles.Profile(kind, str(entry.get("name", f"{node.name}.{key}")), 0, entry, own, node.file)
    message = "needs the name of a profile, or a profile written out"
    raise InputError([Problem(message, path=key, read=shown(entry), legal=_START, file=str(node.file))])


def _gpus(
    entries: Any, node: profiles.Profile, beside: Path | None, wanted: int | None
) -> Iterator[tuple[profiles.Profile, Tree, Mapping[str, Parameter]]]:
    """(profile, entry of the node, parameters of its link) for each GPU that is used."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        message = "needs a list of {profile, count, link}"
        raise InputError(
            [Problem(message, path="gpus", read=shown(entries), legal=_START, file=str(node.file))]
        )
    total = sum(_count(entry, node) for entry in entries)
    if wanted is not None and wanted > total:
        legal = f"1 to {total}"
        message = f"node {node.name} has {total} GPUs"
        raise InputError([Problem(message, path="system.gpus", read=str(wanted), legal=legal)])
    left = total if wanted is None else wanted
    for number, entry in enumerate(entries):
        key = f"gpus.{number}"
        profile = _part("gpus", entry.get("spec", entry.get("profile")), f"{key}.spec", node, beside)
        link = {
            path.removeprefix(f"{key}.link."): parameter
            for path, parameter in node.parameters.items()
            if path.startswith(f"{key}.link.")
        }
        for _ in range(min(left, _count(entry, node))):
            yield profile, entry, link
        left -= min(left, _count(entry, node))


def _count(entry: Tree, node: profiles.Profile, what: str = "GPUs") -> int:
    count = entry.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 64:
        message = f"the count of {what} is from 1 to 64"
        raise InputError(
            [
                Problem(
                    message,
                    path="gpus.count" if what == "GPUs" else "drives.count",
                    read=shown(count),
                    legal="1 to 64",
                    file=str(node.file),
                )
            ]
        )
    return count


def _drives(
    entries: Any, node: profiles.Profile, beside: Path | None
) -> Iterator[tuple[str, profiles.Profile]]:
    """Each drive of a node with its profile; with a `count`, `nvme` is nvme0, nvme1, ..."""
    for number, entry in enumerate(entries or []):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            message = "needs a list of {name, profile, count}"
            raise InputError(
                [Problem(message, path="drives", read=shown(entry), legal=_START, file=str(node.file))]
            )
        source = entry.get("spec", entry.get("profile"))
        profile = _part("drives", source, f"drives.{number}.spec", node, beside)
        if "count" not in entry:
            yield entry["name"], profile
            continue
        for member in range(_count(entry, node, "drives")):
            yield f"{entry['name']}{member}", profile


def _spec(tree: Tree) -> Tree:
    """What is for the part itself: without the profile's own keys."""
    about = ("name", "profile_version", "description")
    return copy.deepcopy({key: value for key, value in tree.items() if key not in about})


def _one(root: str, index: int, members: list[Any]) -> str:
    """`gpu` where all members are alike, else `gpu[index]`."""
    return root if all(member == members[0] for member in members) else f"{root}[{index}]"


def _add(parameters: dict[str, Parameter], root: str, found: Mapping[str, Parameter]) -> None:
    for path, parameter in found.items():
        whole = f"{root}.{path}"
        parameters[whole] = replace(parameter, path=whole)
