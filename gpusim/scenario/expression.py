"""What can be calculated from metrics: `steps.copy.duration_ns / (steps.there.duration_ns - steps.here.duration_ns)`.

`+ - * /` with a space on both sides, parentheses and plain numbers. Units are kept track of: times are not added to
sizes, a size over a time is a rate, and a ratio has no unit. The names of units are `ns`, `s`, `bytes`, `GB/s`,
`fraction`, `word`, and None for plain numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpusim.errors import InputError, Problem

_TOKEN = re.compile(r"\s*([()]|(?:[^\s()\[\]]|\[[^\[\]]*\])+|\S)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SUMS, _PRODUCTS = ("+", "-"), ("*", "/")
_DEEPEST = 20
_LEGAL = "metrics and numbers with + - * / between them, a space on both sides of each; parentheses"
#: (of the left, sign, of the right) -> of the result, beside the rules for plain numbers
_PRODUCT_UNITS = {
    ("bytes", "/", "ns"): "GB/s",
    ("bytes", "/", "GB/s"): "ns",
    ("GB/s", "*", "ns"): "bytes",
    ("ns", "*", "GB/s"): "bytes",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A path of the metric language."""

    path: str


@dataclass(frozen=True, slots=True)
class Operation:
    """Two parts and the sign between them."""

    sign: str
    left: Node
    right: Node


Node = Metric | Operation | float


def is_calculated(text: str) -> bool:
    """Is it more than a metric?"""
    if " " not in text and "(" not in text:
        return False
    return any(character.isspace() or character in "()" for character in re.sub(r"\[[^\[\]]*\]", "", text))


def parse(text: str) -> Node:
    """The tree of an expression. Raises InputError where it cannot be read."""
    tokens = _TOKEN.findall(text)
    node, rest = _sum(tokens, 0, text)
    if rest < len(tokens):
        raise _wrong(f"{tokens[rest]!r} was not expected", text)
    if not any(True for _ in metrics(node)):
        raise _wrong("names no metric", text)
    return node


def metrics(node: Node) -> Iterator[str]:
    """The metrics in it, from left to right."""
    if isinstance(node, Metric):
        yield node.path
    elif isinstance(node, Operation):
        yield from metrics(node.left)
        yield from metrics(node.right)


def first_metric(text: str) -> str:
    """The leftmost metric of an expression: what it is about."""
    return next(metrics(parse(text))) if is_calculated(text) else text


def unit(node: Node, of: Callable[[str], str | None]) -> str | None:
    """The unit of the result. Raises InputError where units do not go together."""
    if isinstance(node, Metric):
        return of(node.path)
    if isinstance(node, float):
        return None
    left, right = unit(node.left, of), unit(node.right, of)
    if "word" in (left, right):
        raise InputError([Problem("words cannot be calculated with", legal="metrics that are numbers")])
    plain = (None, "fraction")
    if node.sign in _SUMS:
        if left == right or (left in plain and right in plain):
            return left if left == right else None
    elif (left, node.sign, right) in _PRODUCT_UNITS:
        return _PRODUCT_UNITS[left, node.sign, right]  # type: ignore[index]
    elif right in plain:
        return left if left not in plain else None
    elif node.sign == "*" and left in plain:
        return right
    elif node.sign == "/" and left == right:
        return None
    message = f"{left or 'a number'} {node.sign} {right or 'a number'} has no meaning"
    raise InputError([Problem(message, legal="parts of the same unit, or a ratio of them")])


def evaluate(node: Node, of: Callable[[str], float | None]) -> float | None:
    """Its value; None where a part has none, or where it would be divided by nothing."""
    if isinstance(node, Metric):
        return of(node.path)
    if isinstance(node, float):
        return node
    left, right = evaluate(node.left, of), evaluate(node.right, of)
    if left is None or right is None:
        return None
    if node.sign == "+":
        return left + right
    if node.sign == "-":
        return left - right
    if node.sign == "*":
        return left * right
    return left / right if right else None


def _sum(tokens: list[str], at: int, text: str, depth: int = 0) -> tuple[Node, int]:
    node, at = _product(tokens, at, text, depth)
    while at < len(tokens) and tokens[at] in _SUMS:
        right, after = _product(tokens, at + 1, text, depth)
        node, at = Operation(tokens[at], node, right), after
    return node, at


def _product(tokens: list[str], at: int, text: str, depth: int) -> tuple[Node, int]:
    node, at = _part(tokens, at, text, depth)
    while at < len(tokens) and tokens[at] in _PRODUCTS:
        right, after = _part(tokens, at + 1, text, depth)
        node, at = Operation(tokens[at], node, right), after
    return node, at


def _part(tokens: list[str], at: int, text: str, depth: int) -> tuple[Node, int]:
    if at >= len(tokens):
        raise _wrong("ends too early" if tokens else "is empty", text)
    token = tokens[at]
    if token == "(":
        if depth >= _DEEPEST:
            raise _wrong("has too many parentheses", text)
        node, at = _sum(tokens, at + 1, text, depth + 1)
        if at >= len(tokens) or tokens[at] != ")":
            raise _wrong("a parenthesis is not closed", text)
        return node, at + 1
    if _NUMBER.fullmatch(token):
        return float(token), at + 1
    if not (token[0].isalpha() or token[0] == "_"):
        raise _wrong(f"{token!r} was not expected", text)
    return Metric(token), at + 1


def _wrong(why: str, text: str) -> InputError:
    return InputError([Problem(why, read=repr(text), legal=_LEGAL)])
