"""A scenario in a notebook: the question, the machine, and each program with its memory, files and steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from gpusim import quantity

if TYPE_CHECKING:
    from gpusim.scenario.schema import Process, Scenario
    from gpusim.workload.steps import Step

_ROWS = 30  # of one table


def html(scenario: Scenario) -> str:
    """The card. Colours of text are inherited, so that it reads in light and in dark notebooks."""
    asked = f"<div><i>{escape(scenario.question)}</i></div>" if scenario.question else ""
    facts = [
        f"{scenario.system.node}, {_gpus(scenario.system.gpus)}",
        f"driver {scenario.driver.preset}",
    ]
    facts += [f"{path} = {value}" for path, value in (scenario.overrides | scenario.parameters).items()]
    facts += [f"seed {scenario.seed}"]
    if scenario.sweep is not None:
        facts.append(f"a sweep over {', '.join(scenario.sweep.over)}")
    if scenario.expect:
        facts.append(_many(len(scenario.expect), "expected value"))
    programs = "".join(_process(process) for process in scenario.processes[:4])
    more = len(scenario.processes) - 4
    rest = f"<div>and {_many(more, 'process', 'processes')} more</div>" if more > 0 else ""
    return (
        f'<div style="max-width:780px;line-height:1.5"><div><b>{escape(scenario.name)}</b> · scenario</div>{asked}'
        f"<div>{escape(' · '.join(facts))}</div>{programs}{rest}</div>"
    )


def _process(process: Process) -> str:
    env = " ".join(f"{name}={value}" for name, value in process.env.items())
    head = f'<div style="margin-top:6px"><b>{escape(process.label)}</b> <code>{escape(env)}</code></div>'
    memory = [(name, quantity.format_size(b.size), b.allocator.value) for name, b in process.buffers.items()]
    stored = [
        (name, quantity.format_size(f.size), f"{f.filesystem.value} on {f.drive}")
        for name, f in process.files.items()
    ]
    listed = _table(("buffer", "size", "allocator"), memory) + _table(("file", "size", "where"), stored)
    threads = "".join(
        _table((f"thread {name}", "step", ""), list(_steps(steps, 0)))
        for name, steps in process.threads.items()
    )
    return head + listed + threads


def _steps(steps: Sequence[Step], depth: int) -> Iterator[tuple[str, str, str]]:
    """Name, verb and arguments of each step, those inside others moved in."""
    for step in steps:
        told = step.args.model_dump(
            mode="json", exclude_defaults=True, exclude={"steps", "branches"}, by_alias=True
        )
        words = ", ".join(f"{key}: {_words(value)}" for key, value in told.items())
        words += f", stream: {step.stream}" if step.stream else ""
        name = "\u2003" * depth + (step.name or "")
        yield name if step.when else f"{name} (left out)", step.verb, words.removeprefix(", ")
        yield from _steps(getattr(step.args, "steps", ()), depth + 1)
        for branch in getattr(step.args, "branches", ()):
            yield from _steps(branch, depth + 1)


def _words(value: object) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list) else str(value)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    left = ' style="text-align:left"'
    head = "".join(f"<th{left}>{escape(one)}</th>" for one in heads)
    body = "".join(
        "<tr>" + "".join(f"<td{left}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[:_ROWS]
    )
    more = f"<div>and {len(rows) - _ROWS} more</div>" if len(rows) > _ROWS else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def _gpus(count: int | None) -> str:
    return "all its GPUs" if count is None else _many(count, "GPU")
