"""YAML text to a small tree of nodes that remember where they stood.

PyYAML (libyaml where it is built in) turns text into events; the tree is built from those, without recursion,
so that every limit is checked before it can hurt:

- 10 MiB of UTF-8 text, one document, one million nodes, 64 levels;
- an alias counts as a copy of what it names: at most 100,000 nodes may come from aliases, counted without
  copying;
- no tags, no merge keys, no alias inside what it names, no key twice, keys are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpusim.errors import InputError, Problem
from gpusim.scenario.yaml_scalars import resolve_plain
from gpusim.scenario.yaml_tree import Entry, Node

MAX_BYTES = 10 * 2**20
MAX_NODES = 1_000_000
MAX_ALIASED_NODES = 100_000
MAX_DEPTH = 64
_YAML_TEXT = "YAML text in UTF-8"
_YAML_FILE = "a file of YAML text in UTF-8; `gpusim init FILE` writes a scenario to start from"
MAX_PROBLEMS = 100  # of one kind of file; whoever has more is better served by the first hundred

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufeff\uff00-\ufffd\U00010000-\U0010ffff]")


def read_text(path: Path) -> str:
    """The text of a file, or an InputError that says why not."""

    def refuse(message: str, line: int | None = None, column: int | None = None) -> InputError:
        return InputError([Problem(message, legal=_YAML_FILE, file=str(path), line=line, column=column)])

    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise refuse("no such file") from None
    except IsADirectoryError:
        raise refuse("this is a directory") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise refuse(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise refuse("is larger than 10 MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if b"\0" in data:
            raise refuse("is a binary file") from None
        before = data[: error.start]
        raise refuse(
            f"is not UTF-8 text: byte {data[error.start]:#04x}",
            before.count(b"\n") + 1,
            error.start - before.rfind(b"\n"),
        ) from None


def compose(text: str, file: str | None = None) -> tuple[Node, list[Problem]]:
    """The tree of a YAML text and the mistakes that do not hide others. Mistakes that do raise InputError."""
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_BYTES:
        raise InputError([Problem("is larger than 10 MiB", legal="a text of a few KiB", file=file)])
    if bad := _UNPRINTABLE.search(text):
        before = text[: bad.start()]
        place = (before.count("\n") + 1, bad.start() - before.rfind("\n"))
        message = f"holds the unprintable character {bad[0]!a}"
        raise InputError([Problem(message, legal=_YAML_TEXT, file=file, line=place[0], column=place[1])])
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise InputError([*builder.problems, _syntax(error, file)]) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise InputError(
            [*builder.problems, Problem(f"bad YAML: {error}", legal=_YAML_TEXT, file=file)]
        ) from None
    if builder.root is None:
        raise InputError(
            [Problem("is empty", legal="a scenario; `gpusim init` writes one to start from", file=file)]
        )
    return builder.root, builder.problems


def _said_of(what: str, problem: Problem) -> Problem:
    """A mistake in a short text: its line and column say nothing."""
    return Problem(problem.message, legal=problem.legal or "a YAML value; quote text", file=what)


def parse_value(text: str, what: str) -> Any:
    """The plain value of a short YAML text, e.g. of `--set path=text`. Errors name `what`."""
    try:
        node, problems = compose(text if text.strip() else "''", what)
    except InputError as error:
        raise InputError([_said_of(what, problem) for problem in error.problems]) from None
    if problems:
        raise InputError([_said_of(what, problem) for problem in problems])
    return node.plain()


class _Builder:
    """Takes events, keeps a stack of open collections, and counts."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}  # None: still open
        self._nodes = 0
        self._aliased = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            opened = self._stack.pop()
            if opened.anchor is not None:
                self._anchors[opened.anchor] = opened.node
            self._attach(opened.node, event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._fatal(event, "a second YAML document begins here; a scenario is one document")

    def _scalar(self, event: Any) -> None:
        self._no_tag(event)
        plain = event.tag is None and event.implicit[0]
        value = resolve_plain(event.value) if plain else event.value
        node = Node("scalar", event.start_mark.line + 1, event.start_mark.column + 1, value)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._count(event)
        if self._stack and self._stack[-1].wants_key:
            self._key(event, node, plain)
        else:
            self._attach(node, event)

    def _key(self, event: Any, node: Node, plain: bool) -> None:
        opened = self._stack[-1]
        text = event.value
        if plain and text == "<<":
            self._problem(event, "merge keys (<<) are not part of YAML 1.2; write the keys out")
        elif not isinstance(node.value, str):
            self._problem(event, f"a key is text, but {text!r} reads as {_kind(node.value)}; quote it")
        opened.key = text
        opened.key_place = (node.line, node.column)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise self._fatal(event, f"the alias *{event.anchor} names no anchor &{event.anchor} above it")
        node = self._anchors[event.anchor]
        if node is None:
            raise self._fatal(event, f"the alias *{event.anchor} is inside what it names")
        self._aliased += node.nodes
        if self._aliased > MAX_ALIASED_NODES:
            raise self._fatal(event, f"aliases stand for more than {MAX_ALIASED_NODES:,} values")
        if len(self._stack) + node.height > MAX_DEPTH:
            raise self._fatal(event, f"nested more than {MAX_DEPTH} levels deep")
        if self._stack and self._stack[-1].wants_key:
            raise self._fatal(event, "an alias cannot be a key; write the key out")
        self._attach(node, event)

    def _open(self, event: Any) -> None:
        self._no_tag(event)
        self._count(event)
        if self._stack and self._stack[-1].wants_key:
            raise self._fatal(
                event, "a key is text, not a list or mapping (a placeholder ${...} must be quoted)"
            )
        if len(self._stack) >= MAX_DEPTH:
            raise self._fatal(event, f"nested more than {MAX_DEPTH} levels deep")
        kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
        node = Node(kind, event.start_mark.line + 1, event.start_mark.column + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(node, event.anchor))

    def _attach(self, node: Node, event: Any) -> None:
        if not self._stack:
            self.root = node
            return
        opened = self._stack[-1]
        parent = opened.node
        parent.nodes += node.nodes
        parent.height = max(parent.height, node.height + 1)
        if parent.kind == "list":
            parent.items.append(Entry(None, node.line, node.column, node))
            return
        key, (line, column) = opened.key or "", opened.key_place
        opened.key = None
        first = opened.seen.setdefault(key, line)
        if len(opened.seen) == len(parent.items):
            message = f"the key {key!r} is here twice (first in line {first})"
            self._add(Problem(message, legal="each key once", file=self.file, line=line, column=column))
            return
        parent.items.append(Entry(key, line, column, node))

    def _no_tag(self, event: Any) -> None:
        if event.tag is not None:
            self._problem(event, f"YAML tags are not allowed, read {_shorten(event.tag)!r}")

    def _count(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._fatal(event, f"holds more than {MAX_NODES:,} values")

    def _problem(self, event: Any, message: str) -> None:
        mark = event.start_mark
        self._add(Problem(message, file=self.file, line=mark.line + 1, column=mark.column + 1))

    def _add(self, problem: Problem) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def _fatal(self, event: Any, message: str) -> InputError:
        self._problem(event, message)
        return InputError(self.problems)


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    node: Node
    anchor: str | None
    key: str | None = None
    key_place: tuple[int, int] = (0, 0)
    seen: dict[str, int] = field(default_factory=dict)  # key -> line

    @property
    def wants_key(self) -> bool:
        return self.node.kind == "mapping" and self.key is None


def _kind(value: Any) -> str:
    names: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number"}
    return "nothing" if value is None else names.get(type(value), "text")


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


def _syntax(error: yaml.MarkedYAMLError, file: str | None) -> Problem:
    mark = error.problem_mark or error.context_mark
    said = error.problem or error.context or "unreadable"
    remedies: Iterator[str] = (remedy for found, remedy in _REMEDIES if found in said)
    remedy = next(remedies, "")
    context = f" {error.context}" if error.context and error.problem else ""
    message = f"bad YAML{context}: {said}" + (f"; {remedy}" if remedy else "")
    if mark is None:
        return Problem(message, file=file)
    return Problem(message, file=file, line=mark.line + 1, column=mark.column + 1)


_REMEDIES = (
    ("cannot start any token", "indent with spaces, and quote text that begins with a tab, @, ` or %"),
    ("mapping values are not allowed", "quote text that contains ': ', and put one key on a line"),
    ("could not find expected ':'", "a key needs a colon and a space after it"),
    ("expected <block end>", "look at the indentation of this line and the ones above"),
    ("did not find expected ',' or", "a [ or { is not closed, or text in it needs quotes"),
    ("found unexpected end of stream", "a quote is not closed"),
)
