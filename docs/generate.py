"""Writes the reference pages that repeat what the code says.

`make docs` runs it, and a test compares the pages in the tree with it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import get_args

import click
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import gpusim
from gpusim import quantity
from gpusim.cli import cli
from gpusim.kinds import DEFINITIONS, LABELS, Kind
from gpusim.result.schema import TABLES
from gpusim.scenario.step_reader import VERBS
from gpusim.spec import Size, Spec
from gpusim.workload.kernel import KernelSpec

HERE = Path(__file__).resolve().parent
SUFFIX = "NOT_SUPPORTED_YET"
REFUSED = "(not supported yet)"  # in the help of a command or an option

KINDS = """\
# Kinds of span

Every stretch of simulated time that something spent is a span, and every span has a kind. In the breakdown
of `gpusim explain`, the shares of the kinds on the critical path sum to 100 % of the simulated time. The code
is the name of the kind in Python; a table's column `<code>_ns`, in lower case, holds the time of that kind.
"""

NOT_SUPPORTED = """\
# Not supported yet

Version 1 of the scenario language is complete. What this page lists is known and checked, but this version of
gpusim does not simulate it (or, if it is a command, does not have it). It answers "not supported yet" with
exit status 2, before any simulation.
"""

STEPS = """\
# Steps and kernels

A host thread is a list of steps. A step is one verb with its arguments, e.g. `{host_touch: {buffer: x}}`. Any
step may have a `name` (default: the verb) and `when` (false: it is left out); verbs that work in a stream may
have `stream`. Sizes and times carry units. [Not supported yet](not-supported.md) lists the verbs that are
checked and not simulated. `gpusim schema` prints all of the language as a JSON Schema.
"""

COMMANDS = """\
# The command line

Exit status: 0 fine; 1 a bug of gpusim; 2 the input is wrong; 3 the simulated program died or made no progress; 4
`validate` found a row out of tolerance; 130 interrupted. Several files: the highest of 2 > 1 > 4 > 3 > 0. With
`--json` a command prints JSON and nothing else. `gpusim --version` prints the version.
"""

RESULTS = """\
# Results

A result directory holds `summary.json` and one Parquet file for each table that has rows. In Python,
`result.summary` is the same dictionary, and `result.tables["faults"]` is a pandas DataFrame.
`gpusim schema results` prints a JSON Schema of the summary and the columns below. Times are in nanoseconds of
simulated time; a name that has a unit ends in it.
"""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def kinds_page() -> str:
    """Every kind of span, in the order of the reports."""
    rows = ((LABELS[kind], f"`{kind.name}`", DEFINITIONS[kind]) for kind in Kind)
    return f"{KINDS}\n{table(('kind', 'code', 'definition'), rows)}\n"


def steps_page() -> str:
    """Every argument of every verb, and the keys of a kernel."""
    sections = [STEPS, _section("A kernel", KernelSpec)]
    sections += [_section(f"`{verb}`", spec) for verb, spec in VERBS.items()]
    return "\n".join(sections)


def _section(title: str, spec: type[Spec]) -> str:
    """The keys of one spec, as the scenario writes them."""
    rows = [
        (f"`{field.alias or name}`", _default(field), (field.description or "") + _choice(field.annotation))
        for name, field in spec.model_fields.items()
    ]
    text = " ".join((spec.__doc__ or "").split())
    keys = table(("key", "default", "what"), rows) if rows else "No keys."
    return f"## {title}\n\n{text}\n\n{keys}\n"


def _default(field: FieldInfo) -> str:
    """The default as a scenario would write it; empty where the description tells it."""
    default = field.default
    if field.is_required():
        return "required"
    if default is PydanticUndefined or default is None or default == ():
        return ""
    if get_args(Size)[1] in field.metadata:
        default = quantity.format_size(default)
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _choice(annotation: object) -> str:
    """The words of an enumeration."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return ": " + ", ".join(f"`{word}`" for word in kind)
    return ""


def commands_page() -> str:
    """Every command with its arguments and options."""
    sections = [COMMANDS]
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=f"gpusim {name}", **cli.context_settings)
        usage = " ".join([f"gpusim {name}", *command.collect_usage_pieces(context)])
        paragraphs = (command.help or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        rows = [
            (f"`{' '.join([*option.opts, *_metavar(option, context)])}`", _option_help(option))
            for option in command.params
            if isinstance(option, click.Option)
        ]
        options = f"\n{table(('option', 'what'), rows)}\n" if rows else ""
        sections.append(f"## `gpusim {name}`\n\n`{usage}`\n\n{text}\n{options}")
    return "\n".join(sections)


def _metavar(option: click.Option, context: click.Context) -> list[str]:
    return [] if option.is_flag else [option.make_metavar(context)]


def _option_help(option: click.Option) -> str:
    shown = f" Default: `{option.default}`." if option.show_default and option.default is not None else ""
    return f"{option.help or ''}{shown}"


def results_page() -> str:
    """Every column of every table."""
    pieces = {f"{kind.name.lower()}_ns" for kind in Kind}
    sections = [RESULTS]
    for name, columns in TABLES.items():
        rows = [
            (f"`{column.name}`", column.type, column.unit or "", column.description)
            for column in columns
            if column.name not in pieces
        ]
        if len(rows) < len(columns):
            rows.append(("`<kind>_ns`", "number", "ns", "one column for each [kind](kinds.md) that occurred"))
        sections.append(f"## {name}\n\n{table(('column', 'type', 'unit', 'what'), rows)}\n")
    return "\n".join(sections)


def not_supported() -> dict[str, list[str]]:
    """What this version refuses with "not supported yet": kind of thing -> names.

    Collected from the constants whose names end in NOT_SUPPORTED_YET (`DRIVER_PRESETS_NOT_SUPPORTED_YET` lists
    presets of the driver) and from the help of the command line. So whatever the code refuses by is on the page.
    """
    found: dict[str, set[str]] = {"commands": set(), "command options": set()}
    for name, command in cli.commands.items():
        if REFUSED in (command.help or ""):
            found["commands"].add(f"gpusim {name}")
        for option in command.params:
            if isinstance(option, click.Option) and REFUSED in (option.help or ""):
                found["command options"].add(f"gpusim {name} {option.opts[0]}")
    for info in pkgutil.walk_packages(gpusim.__path__, "gpusim."):
        for constant, value in vars(importlib.import_module(info.name)).items():
            if constant.endswith(SUFFIX):
                what = constant.removesuffix(SUFFIX).strip("_").replace("_", " ").lower()
                found.setdefault(what, set()).update(map(str, value))
    return {what: sorted(names) for what, names in sorted(found.items()) if names}


def not_supported_page() -> str:
    """What this version knows and refuses to simulate."""
    rows = [(what, ", ".join(f"`{name}`" for name in names)) for what, names in not_supported().items()]
    left = table(("what", "not supported yet"), rows) if rows else "Nothing is left."
    return f"{NOT_SUPPORTED}\n{left}\n"


#: page, relative to docs/ -> what writes it
PAGES: dict[str, Callable[[], str]] = {
    "reference/command-line.md": commands_page,
    "reference/kinds.md": kinds_page,
    "reference/steps.md": steps_page,
    "reference/results.md": results_page,
    "reference/not-supported.md": not_supported_page,
}


def main() -> None:
    """Write the pages that are out of date."""
    for name, render in PAGES.items():
        page, text = HERE / name, render()
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
