"""`${name}` in values: parameters, and `${rank}` inside a process.

A value that is nothing but one placeholder takes the parameter's value and type; inside longer text, and
everywhere under `env`, it becomes text. `$${` stands for a literal `${`. There is no arithmetic; `when` may
negate or compare (`not ${prefetch}`, `${how} == fault`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gpusim.errors import Problem
from gpusim.scenario.paths import TreePath, listed, nearest
from gpusim.scenario.yaml_scalars import resolve_plain

Report = Callable[..., None]  # (path, message, **details of a Problem)
Scalar = bool | int | float | str

RANK = "rank"
_PLACEHOLDER = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_NAME = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_-]*)\s*")


def mentions(node: Any, name: str) -> bool:
    """Does any value in this tree use the placeholder?"""
    if isinstance(node, str):
        return name in names_in(node)
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return any(mentions(child, name) for child in children)


def names_in(text: str) -> set[str]:
    """The names of the placeholders in a text."""
    if "${" not in text:
        return set()
    return {
        name[1] for match in _PLACEHOLDER.finditer(text) if match[1] and (name := _NAME.fullmatch(match[1]))
    }


class Substitution:
    """Replaces placeholders in a tree, reports what it cannot, and remembers which names were used."""

    def __init__(self, values: Mapping[str, Scalar], report: Report) -> None:
        self.values = values
        self.report = report
        self.used: set[str] = set()

    def apply(self, node: Any, path: TreePath, *, as_text: bool = False) -> Any:
        """A copy of `node` with values in the place of placeholders."""
        if isinstance(node, str):
            return self._text(node, path, as_text) if "${" in node else node
        if isinstance(node, dict):
            return {
                key: self.apply(child, (*path, key), as_text=as_text or key == "env")
                for key, child in node.items()
            }
        if isinstance(node, list):
            return [self.apply(child, (*path, index), as_text=as_text) for index, child in enumerate(node)]
        return node

    def _text(self, text: str, path: TreePath, as_text: bool) -> Any:
        whole = _PLACEHOLDER.fullmatch(text)
        if whole is not None and whole[1] is not None and not as_text:
            return self._value(whole[1], text, path)
        return _PLACEHOLDER.sub(lambda match: self._piece(match, text, path), text)

    def _piece(self, match: re.Match[str], text: str, path: TreePath) -> str:
        if match[0] == "$${":
            return "${"
        if match[1] is None:
            self.report(path, "a placeholder is not closed", read=repr(text), legal="${name}")
            return ""
        return written(self._value(match[1], text, path))

    def _value(self, inside: str, text: str, path: TreePath) -> Scalar:
        name = _NAME.fullmatch(inside)
        if name is None:
            self.report(
                path, "not a placeholder", read=repr(text), legal="${name} with a name of `parameters`"
            )
            return text
        key = name[1]
        self.used.add(key)
        if key in self.values:
            return self.values[key]
        if key == RANK:
            self.report(path, "${rank} has a meaning inside a process only")
            return text
        known = list(self.values)
        self.report(
            path,
            f"there is no parameter {key!r}",
            legal=f"parameters: {listed(known)}" if known else "the scenario has no `parameters`",
            nearest=nearest(key, known),
        )
        return text


def resolve_parameters(raw: Mapping[str, Any], report: Report) -> dict[str, Scalar]:
    """The values of `parameters`, which may use each other (but not in a circle)."""
    resolved: dict[str, Scalar] = {}
    waiting = {key: value for key, value in raw.items() if isinstance(value, bool | int | float | str)}
    while waiting:
        ready = [
            key
            for key, value in waiting.items()
            if not (isinstance(value, str) and names_in(value) & waiting.keys())
        ]
        if not ready:
            for key, value in waiting.items():
                report(("parameters", key), "parameters use each other in a circle", read=repr(value))
            return resolved | waiting
        for key in ready:
            resolved[key] = Substitution(resolved, report).apply(waiting.pop(key), ("parameters", key))
    return resolved


def written(value: Any) -> str:
    """A scalar as YAML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def condition(value: Any) -> bool | Problem:
    """What `when` says once placeholders are replaced; a Problem (without a place) when it says nothing."""
    if isinstance(value, bool):
        return value
    legal = 'true, false, "${parameter}", "not ${parameter}", "${parameter} == value" or "!="'
    wrong = Problem("`when` needs true or false", read=repr(value), legal=legal)
    if not isinstance(value, str):
        return wrong
    text = value.strip()
    for operator in ("==", "!="):
        left, found, right = text.partition(operator)
        if found:
            same = resolve_plain(left.strip()) == resolve_plain(right.strip())
            return same if operator == "==" else not same
    negated = text.startswith("not ")
    plain = resolve_plain(text.removeprefix("not ").strip())
    if not isinstance(plain, bool):
        return wrong
    return plain != negated
