"""A knob: something that whoever runs the program can choose, and the edits of the scenario that choose it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpusim.scenario import paths
from gpusim.scenario.paths import TreePath
from gpusim.scenario.placeholders import mentions

#: groups of knobs, in the order of reports; `over` are those that the user names
GROUPS = (
    "xnack",
    "allocator",
    "prefetch",
    "advice",
    "granularity",
    "route",
    "threads",
    "io_size",
    "depth",
    "over",
)
NONE = "none"


@dataclass(frozen=True, slots=True)
class Assign:
    """Put a value at a place of the scenario's tree; None takes the key away."""

    place: TreePath
    value: Any


@dataclass(frozen=True, slots=True)
class Insert:
    """Put a step into a list of steps, before the one that has this index. Of several at one place the lowest
    `order` comes first.
    """

    place: TreePath
    step: Mapping[str, Any]
    order: int = 0


Edit = Assign | Insert


@dataclass(frozen=True, slots=True)
class Option:
    """One value of a knob: its label, and how it is chosen. The scenario's own needs no edits."""

    label: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Knob:
    """`options[own]` is what the scenario has.

    The knob does something only where one of `active` holds: (another knob, labels of it). Elsewhere it stays at the
    option `idle`.
    """

    name: str
    group: str
    options: tuple[Option, ...]
    own: int = 0
    idle: int = 0
    active: tuple[tuple[str, frozenset[str]], ...] = ()

    @property
    def labels(self) -> list[str]:
        """The options in words."""
        return [option.label for option in self.options]

    @property
    def places(self) -> set[TreePath]:
        """The values of the scenario that it sets."""
        return {edit.place for option in self.options for edit in option.edits if isinstance(edit, Assign)}


def edited(tree: Mapping[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    """A copy of a scenario's tree with the edits made. All places are those of the tree as it was."""
    made: dict[str, Any] = copy.deepcopy(dict(tree))
    inserts: list[Insert] = []
    for edit in edits:
        if isinstance(edit, Insert):
            inserts.append(edit)
        elif edit.value is None:
            holder = paths.get(made, edit.place[:-1])
            if isinstance(holder, dict):
                holder.pop(edit.place[-1], None)
        else:
            paths.assign(made, edit.place, edit.value)
    # from the last place to the first, inner lists before the lists around them: what is left to do stays in place
    for insert in sorted(inserts, key=lambda one: (one.place, one.order), reverse=True):
        steps = paths.get(made, insert.place[:-1])
        steps.insert(insert.place[-1], copy.deepcopy(dict(insert.step)))
    _drop_unused(tree, made)
    return made


def _drop_unused(before: Mapping[str, Any], made: dict[str, Any]) -> None:
    """A parameter that no value uses any more is a mistake in the language: it goes with its last use."""
    parameters = made.get("parameters") or {}
    while True:
        gone = [name for name in parameters if _used(before, name) and not _used(made, name)]
        if not gone:
            return
        for name in gone:
            del parameters[name]


def _used(tree: Mapping[str, Any], name: str) -> bool:
    return any(
        mentions(
            [value for other, value in part.items() if other != name] if key == "parameters" else part, name
        )
        for key, part in tree.items()
        if part is not None and key not in ("sweep", "expect")
    )


def words(tree: Mapping[str, Any], edit: Edit) -> str:
    """How a person makes an edit: an option of the command line, or a step and its place."""
    if isinstance(edit, Insert):
        steps = paths.get(tree, edit.place[:-1])
        index = int(edit.place[-1])
        step = json.dumps(edit.step, ensure_ascii=False).replace('"', "")
        if index < len(steps):
            return f"step {step} before {paths.show(tree, edit.place)}"
        return f"step {step} at the end of {paths.show(tree, edit.place[:-1])}"
    where = paths.show(tree, edit.place)
    if edit.value is None:
        return f"without {where}"
    value = json.dumps(edit.value) if not isinstance(edit.value, str) else edit.value
    return f"--set {where}={value}"
