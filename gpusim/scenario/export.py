"""A scenario back to text: with everything resolved, and as a hash that names its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import yaml

from gpusim.scenario.schema import Process, Scenario
from gpusim.scenario.step_reader import nested_steps
from gpusim.scenario.yaml_scalars import resolve_plain
from gpusim.spec import Spec
from gpusim.version import version
from gpusim.workload.kernel import KEYS_IGNORED
from gpusim.workload.steps import Step


def resolved_yaml(scenario: Scenario) -> str:
    """YAML text with every default and every `--set` put in; it loads back to an equal scenario.

    Values that use `parameters` still say `${name}`, so that the file can be changed and swept as the first
    one could.
    """
    return as_yaml(resolved(scenario))


def as_yaml(tree: dict[str, Any]) -> str:
    """Plain data of a scenario as text."""
    return yaml.dump(
        tree,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=110,
        default_flow_style=None,
    )


def resolved(scenario: Scenario) -> dict[str, Any]:
    """The same as plain data."""
    from gpusim.scenario.loader import raw_tree

    tree = _dump(scenario)
    for name, kernel in scenario.kernels.items():
        for key in KEYS_IGNORED.get(
            kernel.pattern, ()
        ):  # defaults that would be refused when it is read back
            tree["kernels"][name].pop(key, None)
    first = {process.name: process for process in reversed(scenario.processes)}
    tree["processes"] = [_process(process) for process in reversed(first.values())]
    if scenario._origin is None:
        return tree
    with_placeholders: dict[str, Any] = _overlay(tree, raw_tree(scenario._origin))
    return {key: value for key, value in with_placeholders.items() if value not in ({}, [])}


def run_id(scenario: Scenario) -> str:
    """12 hexadecimal digits that stand for the scenario, the profiles it uses, the seed and this version.

    The same on any machine and from any folder; a profile or a trace edited in place changes it.
    """
    from gpusim.scenario.companions import fingerprints
    from gpusim.scenario.resolve import resolve

    machine = asdict(resolve(scenario))
    del machine["parameters"]  # sources and grades do not change a result
    content = {
        "scenario": fingerprints(scenario, resolved(scenario)),
        "machine": machine,
        "version": version(),
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of scenarios; see `gpusim.scenario.json_schema`."""
    from gpusim.scenario.json_schema import build

    return build()


def _dump(spec: Spec) -> dict[str, Any]:
    """Plain data of a part: quantities as text, enums as words, nothing where nothing was said."""
    return spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"processes"})


def _process(process: Process) -> dict[str, Any]:
    tree = process.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"threads"})
    tree["threads"] = {name: [_step(step) for step in steps] for name, steps in process.threads.items()}
    return {key: value for key, value in tree.items() if value != {}}


def _step(step: Step) -> dict[str, Any]:
    nested = nested_steps(type(step.args))
    args = step.args.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(nested))
    for key, depth in nested.items():
        inner = getattr(step.args, key)
        args[key] = (
            [_step(one) for one in inner]
            if depth == 1
            else [[_step(one) for one in branch] for branch in inner]
        )
    if args.get("pieces"):
        args.pop("order", None)  # the pieces say it
    # a step without a name goes by its verb, as many may
    common: dict[str, Any] = {} if step.name == step.verb else {"name": step.name}
    if not step.when:
        common["when"] = False
    if step.stream is not None:
        common["stream"] = step.stream
    return {**common, step.verb: args}


def _overlay(value: Any, raw: Any) -> Any:
    """`value` with the placeholders of `raw` where there were any."""
    if isinstance(raw, str) and "${" in raw:
        return raw
    if isinstance(value, dict) and isinstance(raw, Mapping):
        merged = {key: _overlay(child, raw.get(key)) for key, child in value.items()}
        later = {
            key: raw[key]
            for key in raw
            if key not in merged and isinstance(raw[key], str) and "${" in raw[key]
        }
        return merged | later
    if isinstance(value, list) and isinstance(raw, list) and len(raw) == len(value):
        return [_overlay(child, other) for child, other in zip(value, raw, strict=True)]
    return value


class _Dumper(yaml.SafeDumper):
    """Writes YAML that the core schema of YAML 1.2 reads back as it was."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        """Text, quoted where it would read as something else."""
        style = None if isinstance(resolve_plain(data), str) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)
