"""The tree that YAML text becomes: values that remember where they stood."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Node:
    """One YAML value and its place (1-based). `items` of a mapping are entries, of a list (None, node)."""

    kind: str  # scalar, list, mapping
    line: int
    column: int
    value: Any = None
    items: list[Entry] = field(default_factory=list)
    nodes: int = 1  # with what aliases stand for
    height: int = 1

    def child(self, step: str | int) -> Entry | None:
        """The entry of a key or an index, or None."""
        if self.kind == "list":
            return self.items[step] if isinstance(step, int) and 0 <= step < len(self.items) else None
        return next((entry for entry in self.items if entry.key == step), None)

    def plain(self) -> Any:
        """dicts, lists and scalars; what several aliases share is copied, so that edits stay local."""
        if self.kind == "scalar":
            return self.value
        if self.kind == "list":
            return [entry.node.plain() for entry in self.items]
        return {entry.key: entry.node.plain() for entry in self.items}


@dataclass(frozen=True, slots=True)
class Entry:
    """One member of a mapping or list: the key (None in a list) and where it stood, and the value."""

    key: str | None
    line: int
    column: int
    node: Node


def holds(root: Node, path: tuple[str | int, ...]) -> bool:
    """Is there something at `path`?"""
    node = root
    for step in path:
        if (entry := node.child(step)) is None:
            return False
        node = entry.node
    return True


def locate(root: Node, path: tuple[str | int, ...], *, key: bool = False) -> tuple[int, int]:
    """Line and column of the value at `path` (or of its key), or of the nearest thing above that is there."""
    node, place = root, (root.line, root.column)
    for index, step in enumerate(path):
        entry = node.child(step)
        if entry is None:
            return place
        node = entry.node
        at_key = entry.key is not None and (key or node.kind != "scalar") and index == len(path) - 1
        place = (entry.line, entry.column) if at_key or index < len(path) - 1 else (node.line, node.column)
    return place
