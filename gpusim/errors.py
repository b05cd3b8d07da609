"""The exception tree, drawn once.

GpusimError
├── InputError            the input is wrong; carries every problem found; exit code 2
│   └── NotSupportedYet   the input is legal, but this version does not simulate it; exit code 2
├── SimulatedFailure      raised inside a simulated program; becomes an outcome, never a traceback
├── CallError             a simulated call returns an error code; its caller decides what follows
└── InvariantError        a bug of ours: a conservation or tiling check failed; exit code 1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in the input: place, cause and remedy.

    `path` is the key's dotted path; `file`, `line` and `column` (1-based) are None where the input is not a file.
    """

    message: str
    path: str = ""
    read: str | None = None
    legal: str | None = None
    nearest: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        head = ": ".join(part for part in (place, self.path, self.message) if part)
        tail = []
        if self.read is not None:
            tail.append(f"read {self.read}")
        if self.legal is not None:
            tail.append(f"legal: {self.legal}")
        if self.nearest is not None:
            tail.append(f"did you mean {self.nearest!r}?")
        return head + (f" ({'; '.join(tail)})" if tail else "")


class GpusimError(Exception):
    """Base of everything that gpusim raises on purpose."""

    def _repr_html_(self) -> str:
        return f"<b>{type(self).__name__}</b>: {escape(str(self))}"


class InputError(GpusimError):
    """The input is wrong. `problems` holds every mistake that was found, in file order."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = (
            (Problem(problems),) if isinstance(problems, str) else tuple(problems)
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows when nobody catches it: the mistakes, and not the way through our code."""
        return [f"{type(self).__name__}:", *(f"  {problem}" for problem in self.problems)]

    def _repr_html_(self) -> str:
        heads = ("where", "what", "read", "legal")
        rows = []
        for one in self.problems:
            place = ":".join(str(part) for part in (one.file, one.line, one.column) if part is not None)
            where = " ".join(part for part in (place, one.path) if part)
            what = one.message + (f"; did you mean {one.nearest!r}?" if one.nearest is not None else "")
            cells = (where, what, one.read or "", one.legal or "")
            rows.append("".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells))
        head = "".join(f'<th style="text-align:left">{name}</th>' for name in heads)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<b>{type(self).__name__}</b><table><tr>{head}</tr>{body}</table>"


class NotSupportedYet(InputError):
    """Legal input that this version does not simulate."""


class SimulatedFailure(GpusimError):
    """The simulated program failed. `outcome` is a word of summary.json, e.g. `out_of_memory`."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(
            outcome, message
        )  # SimPy makes a copy from these when a process waits for what fails
        self.outcome = outcome

    def __str__(self) -> str:
        return str(self.args[1])


class CallError(GpusimError):
    """A simulated call returns an error: `code` is an errno (`EIO`), a HIP code (`hipErrorUnknown`) or a hipFile code.

    Whoever called catches it: a library may try again, a program fails of it.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    @property
    def is_errno(self) -> bool:
        """An errno, not a code of HIP or hipFile?"""
        return not self.code.startswith("hip")


class InvariantError(GpusimError):
    """A check on the simulator itself failed: a bug of ours, with what is needed to report it."""


def not_written(file: str, error: OSError) -> InputError:
    """The system does not let a file that the user has named be written."""
    legal = "a file in a folder that is there"
    return InputError([Problem(f"cannot be written: {error.strerror}", legal=legal, file=file)])
