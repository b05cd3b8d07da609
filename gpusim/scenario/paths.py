"""Dotted paths into a scenario: `processes.app.threads.main.scale.launch.gpu`.

Lists are addressed by the names of their members (a step without a name by its verb) or by `[index]`. Inside
the tree a path is a tuple of keys and indices.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from gpusim.errors import InputError, Problem

TreePath = tuple[str | int, ...]

STEP_KEYS = ("name", "when", "stream")

#: mappings whose keys are paths themselves
_PATH_KEYED: tuple[TreePath, ...] = (("overrides",), ("sweep", "over"))
#: mappings whose keys are names that the scenario chose: a path cannot make a new one
_NAMED = ("parameters", "kernels", "buffers", "files", "threads")
_TOKEN = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like `word`, if any does."""
    options = {option.lower(): option for option in known}
    close = difflib.get_close_matches(word.lower(), options, 1, 0.6)
    return options[close[0]] if close else None


def listed(words: Iterable[str], most: int = 12) -> str:
    """`a, b, c`, cut where it gets long."""
    every = list(words)
    return ", ".join(every[:most]) + (f", ... ({len(every)} in all)" if len(every) > most else "")


def member_name(item: Any) -> str | None:
    """How a list member is addressed: its name, or the verb of a step."""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("name"), str):
        return str(item["name"])
    verbs = [key for key in item if key not in STEP_KEYS]
    return str(verbs[0]) if len(verbs) == 1 else None


def show(tree: Any, path: TreePath) -> str:
    """The dotted path of a place, list members by name where that is unambiguous."""
    text = ""
    for step in path:
        if isinstance(step, int):
            name = None
            if isinstance(tree, list) and 0 <= step < len(tree):
                name = member_name(tree[step])
                if [member_name(item) for item in tree].count(name) > 1:
                    name = None
                tree = tree[step]
            text += f".{name}" if name else f"[{step}]"
        else:
            text += f".{step}"
            tree = tree.get(step) if isinstance(tree, dict) else None
    return text.removeprefix(".")


def find(tree: Any, path: str, origin: str | None = None) -> TreePath:
    """The place that `path` names, whether or not the last keys are there yet.

    Raises InputError for a path that cannot exist: an unknown name, or a key of something that is no mapping.
    Keys that the language fixes are not checked here: validation knows them better.
    """
    tokens = _tokens(path, origin)
    found: list[str | int] = []
    node = tree
    for index, token in enumerate(tokens):
        here = tuple(found)
        if here in _PATH_KEYED:
            found.append("".join(_joined(tokens[index:])))
            return tuple(found)
        if isinstance(node, list):
            position = _member(node, token, tree, here, path, origin)
            found.append(position)
            node = node[position]
        elif isinstance(node, dict) or node is None:
            key = str(token)
            node = node or {}
            if key not in node and here and here[-1] in _NAMED:
                raise _missing(path, tree, here, key, node, origin)
            found.append(key)
            node = node.get(key)
        else:
            place = show(tree, here)
            raise _refused(f"there is no such path: {place!r} is a value, not a mapping", path, origin)
    return tuple(found)


def assign(tree: dict[str, Any], path: TreePath, value: Any) -> None:
    """Put `value` at a place that `find` gave, making the mappings on the way."""
    node: Any = tree
    for step in path[:-1]:
        if isinstance(node, dict) and node.get(step) is None:
            node[step] = {}
        node = node[step]
    node[path[-1]] = value


def get(tree: Any, path: TreePath) -> Any:
    """The value at a place, or None."""
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree


def _tokens(path: str, origin: str | None) -> list[str | int]:
    tokens: list[str | int] = []
    position = 0
    while position < len(path):
        match = _TOKEN.match(path, position)
        if match is None or (position == 0 and path[0] in ".["):
            break
        tokens.append(match[1] if match[1] is not None else int(match[2]))
        position = match.end()
    if position < len(path) or not tokens:
        legal = "keys and names joined by dots, e.g. processes.app.env.HSA_XNACK"
        raise InputError([Problem("is not a path", path=path or "''", legal=legal, file=origin)])
    return tokens


def _joined(tokens: Iterable[str | int]) -> Iterable[str]:
    for index, token in enumerate(tokens):
        yield f"[{token}]" if isinstance(token, int) else f".{token}" if index else token


def _member(
    items: list[Any], token: str | int, tree: Any, here: TreePath, path: str, origin: str | None
) -> int:
    place = show(tree, here)
    if isinstance(token, int):
        if -len(items) <= token < len(items):
            return token % len(items)
        message = f"there is no such path: {place!r} has {len(items)} members"
        raise _refused(message, path, origin)
    names = [member_name(item) for item in items]
    matches = [index for index, name in enumerate(names) if name == token]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise _refused(f"{len(matches)} members of {place!r} have this name: use [index]", path, origin)
    raise _missing(path, tree, here, token, [name for name in names if name], origin)


def _missing(
    path: str, tree: Any, here: TreePath, key: str, known: Iterable[str], origin: str | None
) -> InputError:
    names = [str(name) for name in known]
    place = show(tree, here)
    legal = listed(names) or "none: it is empty"
    return InputError(
        [
            Problem(
                f"there is no such path: {place!r} has no {key!r}",
                path=path,
                legal=legal,
                nearest=nearest(key, names),
                file=origin,
            )
        ]
    )


def _refused(message: str, path: str, origin: str | None) -> InputError:
    legal = "keys with dots between them, members of lists by name or [index]: processes.app.buffers.x.size"
    return InputError([Problem(message, path=path, legal=legal, file=origin)])
