"""Profiles: the numbers of GPUs, nodes, CPUs, drives and drivers, each with its source and grade.

A profile is YAML whose leaves are `{value, source, grade, range, rows}`. A leaf is split in two: the parts
get the value and never see where it came from; reports get a `Parameter`. What is left beside leaves is
structure: names of other profiles, counts, words.

| grade | means | needs |
|---|---|---|
| measured | read off the real thing | |
| datasheet | the vendor says so | |
| fitted | set so that the model meets `rows` | `rows` or `range` |
| assumed | nobody knows | `range` |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpusim import quantity, shipped
from gpusim.errors import InputError, Problem
from gpusim.rundata import Parameter
from gpusim.scenario import yaml_nodes
from gpusim.scenario.mistakes import Mistakes, shown
from gpusim.scenario.paths import TreePath, listed, nearest

KINDS = ("nodes", "gpus", "cpus", "drives", "drivers")
GRADES = ("measured", "datasheet", "fitted", "assumed")
LEAF_KEYS = ("value", "source", "grade", "range", "rows")

#: keys whose plain numbers are structure, not facts about a machine
_STRUCTURE = ("profile_version", "count")
#: mappings of words that may look like quantities
_WORDS = ("switches",)

_START = "what `gpusim profiles NAME --yaml` prints"

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile: `tree` holds plain values, `parameters` says where each came from, by dotted path."""

    kind: str
    name: str
    version: int
    tree: Tree
    parameters: Mapping[str, Parameter]
    file: Path

    @property
    def text(self) -> str:
        """The YAML that it was read from."""
        return yaml_nodes.read_text(self.file)


def names(kind: str) -> list[str]:
    """The shipped profiles of one kind: `nodes`, `gpus`, `cpus`, `drives` or `drivers`."""
    return sorted(file.stem for file in (shipped.profiles_dir() / kind).glob("*.yaml"))


def find(name: str) -> list[Profile]:
    """Every shipped profile of this name. Raises InputError, with the nearest name, if there is none."""
    found = [load(kind, name) for kind in KINDS if name in names(kind)]
    if not found:
        every = [known for kind in KINDS for known in names(kind)]
        raise InputError([_unknown("", name, every, None)])
    return found


def load(kind: str, name: str, *, beside: Path | None = None) -> Profile:
    """A profile by name, or by the path of a file (relative to the folder `beside`). Raises InputError."""
    if is_path(name):
        file = Path(name).expanduser()
        if beside is not None and not file.is_absolute():
            file = beside / file
        if file.is_dir() or not file.exists():
            what = f"{kind[:-1]} profile"
            why = f"a directory is no {what}" if file.is_dir() else f"there is no {what} file {str(file)!r}"
            legal = (
                f"{listed(names(kind), 40)}, or the path of a file; `gpusim profiles NAME --yaml` prints one"
            )
            raise InputError([Problem(why, read=repr(name), legal=legal)])
    else:
        if name not in names(kind):
            raise InputError([_unknown(kind[:-1], name, names(kind), None)])
        file = shipped.profiles_dir() / kind / f"{name}.yaml"
    try:
        state = file.stat()
        key = (state.st_mtime_ns, state.st_size)
    except (OSError, ValueError):
        key = (0, 0)
    return _read(kind, file, key)


def is_path(name: str) -> bool:
    """Is this the path of a file rather than the name of a shipped profile?"""
    return "/" in name or "\\" in name or name.endswith((".yaml", ".yml"))


def _unknown(what: str, name: str, known: list[str], file: str | None) -> Problem:
    legal = f"{listed(known, 40)}, or the path of a file"
    return Problem(
        f"there is no {what} profile {name!r}".replace("  ", " "),
        read=repr(name),
        legal=legal,
        nearest=nearest(name, known),
        file=file,
    )


@lru_cache(maxsize=256)
def _read(kind: str, file: Path, state: tuple[int, int]) -> Profile:
    """Read and check one file; `state` only says which version of the file is in the cache."""
    root, problems = yaml_nodes.compose(yaml_nodes.read_text(file), str(file))
    tree = root.plain()
    mistakes = Mistakes(tree, file=str(file), root=root)
    mistakes.problems += problems
    if not isinstance(tree, dict):
        mistakes.report((), "a profile is a mapping", read=shown(tree), legal=_START)
        raise InputError(mistakes.sorted())
    parameters: dict[str, Parameter] = {}
    values = split(tree, (), mistakes, parameters)
    version = values.get("profile_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        mistakes.report(
            ("profile_version",),
            "needs a whole number from 1",
            read=shown(version),
            legal="profile_version: 1",
        )
    name = values.get("name")
    if not isinstance(name, str):
        mistakes.report(("name",), "a profile needs its name", read=shown(name), legal="name: ...")
    if mistakes.problems:
        raise InputError(mistakes.sorted())
    return Profile(kind, str(name), int(values["profile_version"]), values, parameters, file)


def split(node: Any, path: TreePath, mistakes: Mistakes, parameters: dict[str, Parameter]) -> Any:
    """Values without provenance; provenance goes to `parameters`, mistakes to `mistakes`."""
    if isinstance(node, dict):
        if "value" in node:
            return _leaf(node, path, mistakes, parameters)
        return {key: split(child, (*path, key), mistakes, parameters) for key, child in node.items()}
    if isinstance(node, list):
        return [split(child, (*path, index), mistakes, parameters) for index, child in enumerate(node)]
    if _needs_source(node, path):
        legal = "{value: ..., source: ..., grade: " + " or ".join(GRADES) + "}"
        mistakes.report(
            path, "a number of a profile needs its source and grade", read=shown(node), legal=legal
        )
    return node


def _needs_source(node: Any, path: TreePath) -> bool:
    if (path and path[-1] in _STRUCTURE) or any(step in _WORDS for step in path):
        return False
    if isinstance(node, str):
        return amount(node) is not None
    return isinstance(node, bool | int | float)


def _leaf(node: Tree, path: TreePath, mistakes: Mistakes, parameters: dict[str, Parameter]) -> Any:
    value, source, grade = node["value"], node.get("source"), node.get("grade")
    for key in node:
        if key not in LEAF_KEYS:
            near = nearest(str(key), LEAF_KEYS)
            mistakes.report(
                (*path, key), f"unknown key {key!r}", legal=listed(LEAF_KEYS), nearest=near, key=True
            )
    if not isinstance(source, str) or not source.strip():
        mistakes.report((*path, "source"), "a leaf needs its source", read=shown(source), legal="text")
    if grade not in GRADES:
        near = nearest(str(grade), GRADES)
        mistakes.report(
            (*path, "grade"), "a leaf needs its grade", read=shown(grade), legal=listed(GRADES), nearest=near
        )
    if not isinstance(value, bool | int | float | str) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        mistakes.report((*path, "value"), "needs one finite value", read=shown(value))
        return value
    bounds = _range(node, path, mistakes)
    if grade == "assumed" and bounds is None and amount(value) is not None:
        mistakes.report(path, "what is assumed needs a `range`", legal="range: [lowest, highest]")
    if grade == "fitted" and bounds is None and not node.get("rows"):
        mistakes.report(path, "what is fitted needs its `rows` or a `range`", legal="rows: [FAU004]")
    dotted = ".".join(map(str, path))
    rows = node.get("rows")
    fitted = f" (fitted to {listed(map(str, rows))})" if isinstance(rows, list) and rows else ""
    number = amount(value)
    parameters[dotted] = Parameter(
        dotted, value if number is None else number[0], str(value), f"{source}{fitted}", str(grade), bounds
    )
    return value


def _range(node: Tree, path: TreePath, mistakes: Mistakes) -> tuple[Any, Any] | None:
    bounds = node.get("range")
    if bounds is None:
        return None
    where = (*path, "range")
    read = [amount(bound) for bound in bounds] if isinstance(bounds, list) and len(bounds) == 2 else []
    value = amount(node["value"])
    if len(read) != 2 or value is None or any(bound is None or bound[1] != value[1] for bound in read):
        mistakes.report(
            where, "needs two amounts of the value's kind", read=shown(bounds), legal="[low, high]"
        )
        return None
    low, high = (bound[0] for bound in read if bound is not None)
    if not low <= value[0] <= high:
        mistakes.report(where, "does not hold the value", read=f"{bounds} around {node['value']}")
    return low, high


_PARSERS: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("size", quantity.parse_size),
    ("time", quantity.parse_duration),
    ("rate", quantity.parse_rate),
    ("frequency", quantity.parse_frequency),
    ("number", quantity.parse_fraction),
)


def amount(value: Any) -> tuple[float, str] | None:
    """(number in base units, kind) of a number or of text with a unit; None for words and truth values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return (value, "number") if math.isfinite(value) else None
    if not isinstance(value, str) or (not value[:1].isdigit() and not value.startswith(".")):
        return None
    for kind, parse in _PARSERS:
        try:
            return parse(value), kind
        except quantity.QuantityError:
            continue
    return None


def walk(tree: Any, path: TreePath = ()) -> Iterator[tuple[TreePath, Any]]:
    """Every scalar of a tree with its path."""
    if isinstance(tree, dict):
        for key, child in tree.items():
            yield from walk(child, (*path, key))
    elif isinstance(tree, list):
        for index, child in enumerate(tree):
            yield from walk(child, (*path, index))
    else:
        yield path, tree
