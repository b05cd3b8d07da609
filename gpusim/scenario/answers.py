"""The sentences of `answer:`: text with metrics in braces, which a run fills in.

`{steps.blur[0].duration_ns}` becomes the value with its unit, `{a / b}` is calculated (see `expression.py`), and a
`:%` at the end writes a ratio as a percentage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpusim.errors import InputError, Problem

PERCENT = ":%"
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Blank:
    """What a run fills in: a metric or what is calculated from some, as a percentage or in its unit."""

    expression: str
    percent: bool


def pieces(sentence: str) -> list[str | Blank]:
    """Text and blanks in turn. Raises InputError for a brace without its partner."""
    found: list[str | Blank] = []
    end = 0
    for match in _BRACES.finditer(sentence):
        found.append(_text(sentence[end : match.start()]))
        inside = match[1].strip()
        percent = inside.endswith(PERCENT)
        found.append(Blank(inside.removesuffix(PERCENT).strip() if percent else inside, percent))
        end = match.end()
    found.append(_text(sentence[end:]))
    return [piece for piece in found if piece != ""]


def blanks(sentence: str) -> list[Blank]:
    """What is to be filled in, in order."""
    return [piece for piece in pieces(sentence) if isinstance(piece, Blank)]


def _text(part: str) -> str:
    if "{" in part or "}" in part:
        legal = "{metric} or {metric / metric :%}"
        raise InputError([Problem("a brace has no partner", read=repr(part), legal=legal)])
    return part
