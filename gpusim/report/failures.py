"""What the command line does when something goes wrong: exit codes, messages, never a traceback.

| code | means |
|---|---|
| 0 | fine |
| 1 | a bug of ours |
| 2 | the input is wrong |
| 3 | the simulated program died or made no progress: a result, reported and written |
| 4 | `validate` found a row out of tolerance |
| 130 | interrupted |
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

import click

from gpusim.errors import GpusimError, InputError, InvariantError, NotSupportedYet, Problem

FINE = 0
BUG = 1
WRONG_INPUT = 2
DIED = 3
OUT_OF_TOLERANCE = 4
INTERRUPTED = 130

_SEVERITY = (FINE, DIED, OUT_OF_TOLERANCE, BUG, WRONG_INPUT)  # of several files, the last of these wins
_DEBUG = "GPUSIM_DEBUG"

Made = TypeVar("Made")


def code_of(outcome: str) -> int:
    """3 for every outcome but `completed`."""
    return FINE if outcome == "completed" else DIED


def highest(codes: Iterable[int]) -> int:
    """The code of several files: 2 before 1 before 4 before 3 before 0."""
    return max(codes, key=_SEVERITY.index, default=FINE)


def refuse(asked: Mapping[str, bool]) -> None:
    """Raise NotSupportedYet for the options or commands that are asked for."""
    wanted = [name for name, there in asked.items() if there]
    if wanted:
        raise NotSupportedYet(
            [Problem(f"{name} is not supported yet", legal="what `gpusim --help` lists") for name in wanted]
        )


def parsed_sets(sets: Sequence[str]) -> dict[str, Any]:
    """`--set path=value` options as a mapping; a path given twice has its last value."""
    from gpusim.scenario import loader

    return dict(loader.parse_set(one) for one in sets)


def only_with(option: str, given: bool, others: Mapping[str, Any]) -> None:
    """Raise a usage error for options that would be ignored without `option`."""
    ignored = [f"--{name}" for name, value in others.items() if value not in (None, ())]
    if ignored and not given:
        raise click.UsageError(f"{', '.join(ignored)} would be ignored without {option}.")


def not_with(option: str, others: Mapping[str, bool]) -> None:
    """Raise a usage error for options that do not go with `option`."""
    clash = [name for name, there in others.items() if there]
    if clash:
        raise click.UsageError(f"{', '.join(clash)} does not go with {option}.")


def parsed_axes(over: Sequence[str], option: str = "--over") -> dict[str, list[Any]]:
    """`--over path=a,b,c` options as a mapping from path to values. Commas in quotes or brackets do not
    split.
    """
    from gpusim.scenario import loader

    axes: dict[str, list[Any]] = {}
    for one in over:
        path, found, text = one.partition("=")
        if not found or not path.strip() or not text.strip():
            legal = "PATH=A,B,C, e.g. parameters.prefetch=false,true"
            raise InputError([Problem(f"{option} needs a path and values", read=repr(one), legal=legal)])
        axes[path.strip()] = [loader.parse_set(f"{path}={value}")[1] for value in split_commas(text)]
    return axes


def split_commas(text: str) -> list[str]:
    """`a,"b,c",[d, e]` -> three parts."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += letter
    return [part.strip() for part in parts]


@dataclass(frozen=True, slots=True)
class Tried(Generic[Made]):
    """What came of one of several files: what was made of it, or the problems that prevented it."""

    file: Path
    made: Made | None
    code: int
    problems: tuple[Problem, ...] = ()


def each(files: Iterable[Path], work: Callable[[Path], Made]) -> list[Tried[Made]]:
    """Do `work` for every file, whatever the others do; complaints go to stderr."""
    found: list[Tried[Made]] = []
    for file in files:
        try:
            found.append(Tried(file, work(file), FINE))
        except Exception as error:  # noqa: BLE001 - the other files still have their turn
            said = Problem(f"{type(error).__name__}: {error}", file=str(file))
            problems = error.problems if isinstance(error, InputError) else (said,)
            found.append(Tried(file, None, complain(error), problems))
    return found


#: what a system call says of the place that the user gave, and not of us
_OF_THE_MACHINE = frozenset(
    getattr(errno, name)
    for name in (
        "EACCES",
        "EDQUOT",
        "EFBIG",
        "EIO",
        "ELOOP",
        "EMFILE",
        "ENAMETOOLONG",
        "ENOSPC",
        "EPERM",
        "EROFS",
    )
)


def complain(error: Exception) -> int:
    """Say on stderr what went wrong; the exit code for it."""
    if isinstance(error, InputError):
        for problem in error.problems:
            _say(str(problem) if problem.file else f"gpusim: {problem}")
        return WRONG_INPUT
    if isinstance(error, click.ClickException):
        _say(
            f"{error.ctx.get_usage()}\n" if isinstance(error, click.UsageError) and error.ctx else "", end=""
        )
        _say(f"gpusim: {error.format_message()}")
        return WRONG_INPUT
    if isinstance(error, GpusimError) and not isinstance(error, InvariantError):
        _say(f"gpusim: {error}")
        return BUG
    if isinstance(error, FileNotFoundError) and _nowhere():
        _say("gpusim: the current directory does not exist any more: change to one that does")
        return WRONG_INPUT
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        place = f"{error.filename}: " if error.filename is not None else "what this command writes: "
        _say(f"gpusim: {place}{error.strerror}")
        return WRONG_INPUT
    if isinstance(error, MemoryError):
        _say("gpusim: this machine has not enough memory for the run")
        return BUG
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    words = " ".join(str(error).split())
    _say(f"gpusim: a bug of ours: {type(error).__name__}: {words}{notes}")
    if os.environ.get(_DEBUG):
        import traceback

        _say("".join(traceback.format_exception(error)), end="")
    else:
        _say(
            "Please report it with the scenario, the output of `gpusim --version`, and what this command "
            f"prints with {_DEBUG}=1 set."
        )
    return BUG


def leave(work: Callable[[], int]) -> NoReturn:
    """Run a command and end the process with its code, whatever happens in it."""
    reopen()
    try:
        code = work()
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        code = end.exit_code
    except BrokenPipeError:  # whoever reads has seen enough
        code = FINE
        deafen()
    except (KeyboardInterrupt, click.Abort) as end:
        code = INTERRUPTED
        _say(
            f"gpusim: interrupted; {'; '.join(getattr(end, '__notes__', ())) or 'nothing half-written is left'}"
        )
    except Exception as error:  # noqa: BLE001 - a user never sees a traceback
        code = complain(error)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        deafen()
    sys.exit(code)


def reopen() -> None:
    """Let what a closed stream (`>&-`) would take go nowhere.

    It also takes the stream's number, which the next file that is opened would get otherwise.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def deafen() -> None:
    """Let further output go nowhere, so that nobody trips over the closed pipe again."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - it is no file
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _nowhere() -> bool:
    """Has the current directory been deleted?"""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _say(words: str, end: str = "\n") -> None:
    try:
        sys.stderr.write(words + end)
    except UnicodeEncodeError:
        sys.stderr.write(words.encode("ascii", "replace").decode() + end)
    except (OSError, ValueError):  # stderr is closed: there is nobody to tell
        pass
