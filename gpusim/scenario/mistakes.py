"""Collects every mistake of a scenario: its place, what was read, what is legal and what is near."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gpusim.errors import InputError, NotSupportedYet, Problem
from gpusim.quantity import QuantityError
from gpusim.scenario.paths import TreePath, get, listed, nearest, show
from gpusim.scenario.yaml_tree import Node, holds, locate

NOT_SUPPORTED_PAGE = "docs/reference/not-supported.md"

_LONGEST = 60


class Mistakes:
    """The list of problems of one load, and what is needed to say where each one is."""

    def __init__(
        self,
        tree: Any,
        *,
        file: str | None = None,
        root: Node | None = None,
        edits: Mapping[TreePath, str] | None = None,
    ) -> None:
        self.tree = tree  # as read, edits applied, before placeholders: names of list members come from here
        self.file = file
        self.root = root
        self.edits = edits or {}  # place -> how the user made the edit, e.g. `--set seed=x`
        self.problems: list[Problem] = []
        self.unsupported: list[Problem] = []

    def report(
        self,
        path: TreePath,
        message: str,
        *,
        read: str | None = None,
        legal: str | None = None,
        nearest: str | None = None,
        key: bool = False,
    ) -> None:
        """Add a problem at a place of the tree; `key` points at the key instead of its value."""
        file, line, column = self._place(path, key)
        problem = Problem(message, show(self.tree, path), read, legal, nearest, file, line, column)
        if problem not in self.problems:  # ranks repeat each other
            self.problems.append(problem)

    def not_supported(self, path: TreePath, feature: str) -> None:
        """Note a legal use of something that this version does not simulate."""
        file, line, column = self._place(path, True)
        message = f"{feature} is not supported yet, see {NOT_SUPPORTED_PAGE}"
        problem = Problem(message, show(self.tree, path), file=file, line=line, column=column)
        if problem not in self.unsupported:
            self.unsupported.append(problem)

    def report_validation(self, error: ValidationError, model: type[BaseModel], path: TreePath) -> None:
        """Add what pydantic found, in our words."""
        for detail in error.errors(include_url=False):
            value = detail["input"]
            if not (isinstance(value, str) and "${" in value):  # a placeholder that failed is reported
                self._from_pydantic(detail, model, path)

    def sorted(self) -> list[Problem]:
        """In the order of the file; what has no line comes last."""
        far = 1 << 60
        every = self.problems + self.unsupported
        return sorted(every, key=lambda problem: (problem.line or far, problem.column or far))

    def raise_if_any(self) -> None:
        """InputError with everything that was found; NotSupportedYet if all of it is legal."""
        if self.problems:
            raise InputError(self.sorted())
        if self.unsupported:
            raise NotSupportedYet(self.sorted())

    def _place(self, path: TreePath, key: bool) -> tuple[str | None, int | None, int | None]:
        in_file = self.root is not None and holds(self.root, path)
        for edited, how in self.edits.items():
            made = not in_file and edited[: len(path)] == path  # the edit made what encloses its place, too
            if path[: len(edited)] == edited or made:
                return how, None, None
        if self.root is None:
            return self.file, None, None
        return self.file, *locate(self.root, path, key=key)

    def _from_pydantic(self, detail: ErrorDetails, model: type[BaseModel], base: TreePath) -> None:
        loc = tuple(step for step in detail["loc"] if step != "[key]")
        kind = detail["type"]
        if kind == "extra_forbidden":
            known = keys_of(_model_at(model, loc[:-1]))
            word = str(loc[-1])
            self.report(
                base + loc,
                f"unknown key {word!r}",
                legal=listed(known, 40),
                nearest=nearest(word, known),
                key=True,
            )
            return
        if kind == "missing":
            owner, key = _model_at(model, loc[:-1]), str(loc[-1])
            self.report(
                base + loc[:-1], f"the key {key!r} is missing", legal=_described(owner, key), key=True
            )
            return
        path = _trim(self.tree, base, loc)
        if detail["loc"] and detail["loc"][-1] == "[key]":
            message = "not a name"
            self.report(path, message, read=shown(loc[-1]), legal=_NAME_LEGAL, key=True)
            return
        error = (detail.get("ctx") or {}).get("error")
        if isinstance(error, QuantityError):
            self.report(path, error.why, read=shown(detail["input"]), legal=error.legal)
            return
        message, legal = _words(detail)
        choices = _choices(detail)
        value = detail["input"]
        if isinstance(value, int | float) and isinstance(written := get(self.tree, path), str):
            value = written if "${" not in written else value  # `0B`, not the number it was read as
        near = nearest(value, choices) if isinstance(value, str) else None
        if "env" in path and kind == "string_type":
            plain = not isinstance(value, dict | list)
            message, legal = "environment variables are text: quote it", f'"{shown(value) if plain else 1}"'
        self.report(path, message, read=shown(value), legal=legal, nearest=near)


def keys_of(model: type[BaseModel] | None) -> list[str]:
    """The keys of a model as the user writes them."""
    if model is None:
        return []
    return [field.alias or name for name, field in model.model_fields.items()]


def shown(value: Any) -> str:
    """A value as the user would recognise it."""
    if isinstance(value, Mapping):
        return f"a mapping with {listed(map(str, value), 4)}" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value.value if isinstance(value, Enum) else value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_NAME_LEGAL = "a letter or _, then letters, digits, _ and -"

_PLAIN_WORDS = {
    "model_type": ("needs a mapping of keys", None),
    "model_attributes_type": ("needs a mapping of keys", None),
    "dict_type": ("needs a mapping of keys", None),
    "tuple_type": ("needs a list", "[first, second]"),
    "list_type": ("needs a list", "[first, second]"),
    "string_type": ("needs text", None),
    "finite_number": ("needs a finite number", None),
    "too_short": ("must not be empty", None),
    "string_too_long": ("is too long", None),
    "string_pattern_mismatch": ("not a name", _NAME_LEGAL),
}


def _words(detail: ErrorDetails) -> tuple[str, str | None]:
    kind, ctx = detail["type"], detail.get("ctx") or {}
    if kind in _PLAIN_WORDS:
        return _PLAIN_WORDS[kind]
    if kind in ("enum", "literal_error"):
        return "not one of the legal values", listed(_choices(detail), 40)
    if kind == "exact_type":
        wanted = str(ctx["wanted"])
        return f"needs {wanted}", "true, false" if wanted == "true or false" else None
    for name, words in (("gt", "above"), ("ge", "at least"), ("lt", "below"), ("le", "at most")):
        if name in ctx:
            return f"must be {words} {ctx[name]}", None
    return detail["msg"].removeprefix("Value error, "), None


def _choices(detail: ErrorDetails) -> list[str]:
    """The legal words of an enum or literal, out of pydantic's text `'a', 'b' or 'c'`."""
    expected = (detail.get("ctx") or {}).get("expected")
    if not isinstance(expected, str) or detail["type"] not in ("enum", "literal_error"):
        return []
    return [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(", ")]


def _model_at(model: type[BaseModel], loc: Iterable[str | int]) -> type[BaseModel] | None:
    """The model that a location inside `model` leads to."""
    here: Any = model
    for step in loc:
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(str(step)) or next(
                (field for field in here.model_fields.values() if field.alias == step), None
            )
            here = _inner(field.annotation) if field is not None else None
    return here if isinstance(here, type) and issubclass(here, BaseModel) else None


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as `tuple[Buffer, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _inner(part)) is not None), None)


def _described(model: type[BaseModel] | None, key: str) -> str | None:
    for name, field in (model.model_fields if model else {}).items():
        if key in (name, field.alias) and field.description:
            return f"{key}: {field.description}"
    return None


def _trim(tree: Any, base: TreePath, loc: TreePath) -> TreePath:
    """Drop what pydantic adds to a location that is no key: the member of a union that it tried."""
    path = base
    for step in loc:
        if isinstance(get(tree, path), dict | list) or step == loc[0]:
            path = (*path, step)
    return path
