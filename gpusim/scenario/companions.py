"""The files that a scenario names (traces of kernels, profiles of one's own machine), to lie beside a copy of it.

A copy of a scenario in another folder has to find them: they are given new names, relative to the copy.
"""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from typing import Any

from gpusim.errors import InputError, Problem
from gpusim.scenario import profiles
from gpusim.scenario.export import as_yaml, resolved, resolved_yaml
from gpusim.scenario.schema import Scenario

#: the folder beside the copy
FOLDER = "files"


def copy_of(scenario: Scenario) -> tuple[str, dict[str, bytes]]:
    """The text of a resolved scenario, and what has to lie beside it: relative names and contents.

    Raises InputError for a file that cannot be read any more.
    """
    traces = {name: kernel.file for name, kernel in scenario.kernels.items() if kernel.file is not None}
    own_node = profiles.is_path(scenario.system.node)
    if not traces and not own_node:
        return resolved_yaml(scenario), {}
    folder = scenario.source.parent if scenario.source is not None else Path()
    taken = _Taken()
    tree = resolved(scenario)
    for name, file in traces.items():
        path = folder / file
        tree["kernels"][name]["file"] = taken.add(path, _read(path))
    if own_node:
        tree["system"]["node"] = _node(folder / Path(scenario.system.node).expanduser(), taken)
    return as_yaml(tree), taken.files


def write_beside(folder: Path, files: dict[str, bytes]) -> None:
    """Put what `copy_of` gave into a folder. Raises OSError."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def beside(folder: Path | None) -> dict[str, bytes]:
    """What `write_beside` put into a folder."""
    if folder is None:
        return {}
    found = sorted(path for path in (folder / FOLDER).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def fingerprints(scenario: Scenario, tree: dict[str, Any]) -> dict[str, Any]:
    """A resolved tree with what named files hold in the place of where they lie."""
    folder = scenario.source.parent if scenario.source is not None else Path()
    for name, kernel in scenario.kernels.items():
        if kernel.file is not None:
            tree["kernels"][name]["file"] = hashlib.sha256(_read(folder / kernel.file)).hexdigest()
    if profiles.is_path(scenario.system.node):
        tree["system"]["node"] = PurePosixPath(scenario.system.node.replace("\\", "/")).stem
    return tree


class _Taken:
    """Files that were taken along, each under a name of its own."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._names: dict[Path, str] = {}

    def add(self, path: Path, content: bytes) -> str:
        known = self._names.get(path.resolve())
        if known is not None:
            return known
        name, number = f"{FOLDER}/{path.name}", 1
        while name in self.files:
            number += 1
            name = f"{FOLDER}/{number}/{path.name}"  # the name of a profile is that of its file
        self.files[name] = content
        self._names[path.resolve()] = name
        return name


def _node(path: Path, taken: _Taken) -> str:
    """A node's profile, and those that it names by path in turn."""
    text = _read(path).decode()
    for part in _parts(profiles.load("nodes", str(path)).tree):
        own = Path(part).expanduser()
        name = taken.add(path.parent / own, _read(path.parent / own))
        text = text.replace(part, f"./{PurePosixPath(name).relative_to(FOLDER)}")
    return taken.add(path, text.encode())


def _parts(tree: Any) -> list[str]:
    """The paths that a node names: its CPU, its GPUs, its drives."""
    named = [tree.get("cpu"), *(entry.get("profile") for entry in _listed(tree))]
    return list(dict.fromkeys(part for part in named if isinstance(part, str) and profiles.is_path(part)))


def _listed(tree: Any) -> list[dict[str, Any]]:
    return [entry for key in ("gpus", "drives") for entry in tree.get(key) or [] if isinstance(entry, dict)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(
            [Problem(reason, file=str(path), legal="the file that the scenario names")]
        ) from error
