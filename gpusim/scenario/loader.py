"""Load a scenario: text, tree, edits, parts, checks across parts; then a frozen `Scenario`, or every mistake.

`load` is what the command line and `gpusim.load` call. All that goes into a scenario on the way (`--set`, a
seed, `Scenario.with_`) is an edit of the raw tree, so that it meets the same checks as the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gpusim.errors import InputError, NotSupportedYet, Problem
from gpusim.scenario import not_supported, paths, profiles, yaml_nodes
from gpusim.scenario.export import json_schema, resolved_yaml, run_id
from gpusim.scenario.machine_check import check_machine
from gpusim.scenario.mistakes import Mistakes, shown
from gpusim.scenario.origin import Origin
from gpusim.scenario.parts import Parts
from gpusim.scenario.paths import TreePath
from gpusim.scenario.placeholders import written
from gpusim.scenario.reader import Reader
from gpusim.scenario.resolve import ResolvedSystem, assemble, override, resolve
from gpusim.scenario.schema import Driver, Scenario, System
from gpusim.scenario.validate import Checker
from gpusim.workload.trace_file import read_trace

__all__ = ["json_schema", "load", "loads", "parse_set", "resolve", "resolved_yaml", "run_id", "starter"]

#: sweep points that are checked one by one before the first run
_MOST_POINTS = 64


def load(source: str | Path, *, sets: Mapping[str, Any] | None = None, seed: int | None = None) -> Scenario:
    """The scenario of a file, or of YAML text (a str with a line break in it).

    `sets` maps dotted paths to plain Python values that replace those of the file; `seed` replaces the seed.
    Raises InputError with every mistake, or NotSupportedYet.
    """
    given: object = source  # Python does not hold callers to what is annotated
    if not isinstance(given, str | Path):
        legal = "the path of a YAML file, or YAML text; yaml.dump makes text of a dict"
        raise InputError([Problem("a scenario is a file or a text", read=type(given).__name__, legal=legal)])
    if isinstance(source, str) and "\n" in source:
        return loads(source, sets=sets, seed=seed)
    file = Path(source)
    return loads(yaml_nodes.read_text(file), file=file, sets=sets, seed=seed)


def loads(
    text: str, *, file: Path | None = None, sets: Mapping[str, Any] | None = None, seed: int | None = None
) -> Scenario:
    """The scenario of a YAML text. `file` is for messages, and where relative paths in it begin."""
    edits = tuple((sets or {}).items())
    if seed is not None:
        edits += (("seed", seed),)
    return _build(Origin(text, file, edits, given=len(edits)), check_sweep=True)


def starter() -> str:
    """The text of a scenario to start from, with comments: what `gpusim init` writes."""
    return yaml_nodes.read_text(Path(__file__).with_name("starter.yaml"))


def parse_set(argument: str) -> tuple[str, Any]:
    """`path=value` of the command line. The value is YAML; under `env` it is text as it stands."""
    path, found, text = argument.partition("=")
    path = path.strip()
    if not found or not path:
        legal = "path=value, e.g. parameters.prefetch=true"
        raise InputError([Problem("--set needs a path and a value", read=repr(argument), legal=legal)])
    if "env" in path.split(".")[:-1]:
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        return path, text[1:-1] if quoted else text
    return path, yaml_nodes.parse_value(text, f"--set {argument}")


def changed(scenario: Scenario, changes: Mapping[str, Any]) -> Scenario:
    """What `Scenario.with_` does."""
    origin = _origin(scenario)
    return _build(replace(origin, edits=(*origin.edits, *changes.items())), check_sweep=True)


def raw(scenario: Scenario) -> dict[str, Any]:
    """The tree that a scenario was built from: plain data, edits made, placeholders as they are."""
    return raw_tree(_origin(scenario))


def raw_tree(origin: Origin) -> dict[str, Any]:
    """The same for an origin that is known to be right."""
    tree, _ = _edited(origin, yaml_nodes.compose(origin.text, origin.shown)[0].plain())
    return tree


def _origin(scenario: Scenario) -> Origin:
    if scenario._origin is None:
        raise InputError(
            [Problem("this scenario has no source to change", legal="one that gpusim.load gave")]
        )
    return scenario._origin


def _build(origin: Origin, *, check_sweep: bool) -> Scenario:
    root, problems = yaml_nodes.compose(origin.text, origin.shown)
    tree = root.plain()
    if not isinstance(tree, dict):
        mistakes = Mistakes(tree, file=origin.shown, root=root)
        legal = "keys such as version, name, system, processes"
        mistakes.report((), "a scenario is a mapping of keys", read=shown(tree), legal=legal)
        raise InputError([*problems, *mistakes.problems])
    tree, edits = _edited(origin, tree)
    mistakes = Mistakes(tree, file=origin.shown, root=root, edits=edits)
    mistakes.problems += problems
    parts = Reader(tree, mistakes).read()
    machine = _machine(parts, origin, mistakes)
    Checker(parts, machine, mistakes).check()
    _check_traces(parts, origin, mistakes)
    not_supported.check(parts, mistakes)
    if check_sweep:
        _check_sweep(origin, tree, mistakes)
    mistakes.raise_if_any()
    scenario = parts.scenario
    if scenario is None:  # pragma: no cover
        raise AssertionError("a scenario that could not be built must have reported why")
    scenario._origin = origin
    return scenario


def _check_traces(parts: Parts, origin: Origin, mistakes: Mistakes) -> None:
    """Can the trace files of kernels be read, and do they know these kernels?"""
    folder = origin.file.parent if origin.file is not None else Path()
    for name, kernel in parts.kernels.items():
        if kernel is None or kernel.file is None:
            continue
        try:
            trace = read_trace(kernel.file, folder)
        except InputError as error:
            mistakes.problems += error.problems
            continue
        if name not in trace:
            legal = ", ".join(sorted(trace))
            mistakes.report(("kernels", name, "file"), f"has no accesses of kernel {name}", legal=legal)


def _edited(origin: Origin, tree: dict[str, Any]) -> tuple[dict[str, Any], dict[TreePath, str]]:
    """The tree with the edits made, and what each place was set by."""
    places: dict[TreePath, str] = {}
    problems: list[Problem] = []
    for number, (path, value) in enumerate(origin.edits):
        how = f"{path}={_short(value)}"
        how = f"--set {how}" if number < origin.given else f"with_({how})"
        try:
            place = paths.find(tree, path, how)
            paths.assign(tree, place, _plain(value, how))
            places[place] = how
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tree, places


def _plain(value: Any, how: str) -> Any:
    """A Python value as YAML could have given it. Raises InputError for what YAML has no word for."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(child, how) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(child, how) for child in value]
    if callable(item := getattr(value, "item", None)) and getattr(value, "ndim", None) == 0:
        return _plain(item(), how)  # a numpy scalar
    legal = "text, numbers, true or false, lists and mappings of those"
    message = f"{type(value).__name__} is no value of a scenario"
    raise InputError([Problem(message, read=_short(repr(value)), legal=legal, file=how)])


def _short(value: Any) -> str:
    text = written(value) if isinstance(value, bool | str) or value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _machine(parts: Parts, origin: Origin, mistakes: Mistakes) -> ResolvedSystem | None:
    """The machine that the scenario names, problems reported; None if it cannot be put together."""
    try:
        system = System.model_validate(parts.tree.get("system"))
    except ValidationError:
        return None  # the reader has reported it
    try:
        driver = Driver.model_validate(parts.tree.get("driver") or {})
    except ValidationError:
        driver = Driver()  # reported too; the rest of the machine can still be checked
    if profiles.is_path(system.node) and origin.file is None and not Path(system.node).is_absolute():
        folder = Path.cwd()
    else:
        folder = origin.file.parent if origin.file is not None else Path.cwd()
    machine: ResolvedSystem | None = None
    try:
        machine = assemble(system, driver, folder)
        overrides = parts.tree.get("overrides")
        if isinstance(overrides, dict):
            chosen = {key: value for key, value in overrides.items() if _is_scalar(value)}
        else:
            chosen = {}
        wrong = check_machine(override(machine, chosen), chosen)
        if wrong:
            raise InputError(wrong)
    except NotSupportedYet:
        return machine  # `not_supported.check` says so with the place
    except InputError as error:
        for problem in error.problems:
            _report_machine(problem, mistakes)
    return machine


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float | str)


def _report_machine(problem: Problem, mistakes: Mistakes) -> None:
    """A problem of the machine at the key of the scenario that asked for it."""
    if problem.file is not None:  # in a profile file: it has its own place
        mistakes.problems.append(problem)
        return
    root, _, rest = problem.path.partition(".")
    place: TreePath = (root, rest) if root in ("overrides", "system") and rest else ("system", "node")
    mistakes.report(
        place,
        problem.message,
        read=problem.read,
        legal=problem.legal,
        nearest=problem.nearest,
        key=root == "overrides",
    )


def _check_sweep(origin: Origin, tree: dict[str, Any], mistakes: Mistakes) -> None:
    """Every axis must exist and every value of it be legal, before the first of many runs."""
    over = paths.get(tree, ("sweep", "over"))
    if not isinstance(over, dict):
        return
    sound = not mistakes.problems and not mistakes.unsupported
    points = 0
    for path, values in over.items():
        place: TreePath = ("sweep", "over", path)
        if path.partition(".")[0] in ("sweep", "expect", "version", "name"):
            mistakes.report(
                place, "this cannot be swept", legal="a value that the simulation depends on", key=True
            )
            continue
        if path == "seed" and (repeats := paths.get(tree, ("sweep", "replications"))) not in (None, 1):
            message = "replications give each run a seed of its own: sweep the seed, or replicate"
            mistakes.report(
                place, message, read=f"replications: {shown(repeats)}", legal="one of the two", key=True
            )
            continue
        try:
            paths.find(tree, path)
        except InputError as error:
            problem = error.problems[0]
            mistakes.report(place, problem.message, legal=problem.legal, nearest=problem.nearest, key=True)
            continue
        if not isinstance(values, list) or not sound:
            continue  # the reader has reported it, or would report the same again for each value
        for index, value in enumerate(values):
            points += 1
            if points <= _MOST_POINTS:
                _check_point(replace(origin, edits=(*origin.edits, (path, value))), (*place, index), mistakes)


def _check_point(origin: Origin, place: TreePath, mistakes: Mistakes) -> None:
    try:
        _build(origin, check_sweep=False)
    except NotSupportedYet as error:
        mistakes.not_supported(place, error.problems[0].message.split(" is not supported")[0])
    except InputError as error:
        for problem in error.problems:
            where = f"{problem.path}: " if problem.path else ""
            mistakes.report(
                place,
                f"{where}{problem.message}",
                read=problem.read,
                legal=problem.legal,
                nearest=problem.nearest,
            )
