"""From plain data to the parts of a scenario, part by part, so that one mistake hides no other.

pydantic checks each part; what fails is reported, and a blank takes its place so that the whole can still be
checked around it. The blanks never leave the loader: a scenario with a problem is not returned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gpusim.scenario.mistakes import Mistakes, shown
from gpusim.scenario.parts import Parts, ProcessPart, SpecT, blank, checked, is_amount
from gpusim.scenario.paths import TreePath
from gpusim.scenario.placeholders import RANK, Substitution, mentions, resolve_parameters
from gpusim.scenario.schema import MAX_COUNT, Buffer, Expect, File, Process, Scenario
from gpusim.scenario.step_reader import StepReader
from gpusim.workload.kernel import KernelSpec


class Reader:
    """Reads one tree. `read` is the whole of it."""

    def __init__(self, tree: dict[str, Any], mistakes: Mistakes) -> None:
        self.tree = tree
        self.mistakes = mistakes

    def read(self) -> Parts:
        """Every part of the tree, problems reported on the way."""
        raw_parameters = self.tree.get("parameters")
        parameters = resolve_parameters(
            raw_parameters if isinstance(raw_parameters, dict) else {}, self.mistakes.report
        )
        substitution = Substitution(parameters, self.mistakes.report)
        apart = ("parameters", "sweep", "processes")
        values: dict[str, Any] = {
            key: value if key in apart else substitution.apply(value, (key,))
            for key, value in self.tree.items()
        }
        parts = Parts(dict(values))
        self._scalars(values, "parameters")
        self._scalars(values, "overrides")
        parts.kernels = self._named(KernelSpec, values, ("kernels",))
        values["processes"] = self._processes(values.get("processes"), parameters, substitution.used, parts)
        values["expect"] = self._expect(values.get("expect"))
        for key in ("processes", "expect", "answer"):
            if values.get(key, 0) is None:
                del values[key]
        if isinstance(raw_parameters, dict):
            self._unused(raw_parameters, substitution.used)
            values["parameters"] = {k: v for k, v in parameters.items() if k in values["parameters"]}
        version = values.get("version", 1)
        if not (type(version) is int and version == 1):
            message = "this gpusim reads version 1 of the language"
            self.mistakes.report(("version",), message, read=shown(version), legal="1")
            values["version"] = 1
        parts.scenario = self._checked(Scenario, values, ())
        return parts

    def _checked(self, model: type[SpecT], raw: Any, path: TreePath) -> SpecT | None:
        return checked(model, raw, path, self.mistakes)

    def _named(self, model: type[SpecT], values: dict[str, Any], path: TreePath) -> dict[str, SpecT | None]:
        """The members of a mapping name -> part; in `values` they are replaced by what was read."""
        key = str(path[-1])
        raw = values.get(key)
        if raw is None:
            values.pop(key, None)
            return {}
        if not isinstance(raw, dict):
            return {}  # the enclosing part reports it
        found = {name: self._checked(model, member, (*path, name)) for name, member in raw.items()}
        values[key] = {name: member or blank(model) for name, member in found.items()}
        return found

    def _scalars(self, values: dict[str, Any], key: str) -> None:
        raw = values.get(key)
        if raw is None:
            values.pop(key, None)
        if not isinstance(raw, dict):
            return
        for name, value in list(raw.items()):
            finite = not isinstance(value, float) or math.isfinite(value)
            if not isinstance(value, bool | int | float | str) or not finite:
                message = (
                    "needs a finite number"
                    if not finite
                    else "needs one value: a number, text, true or false"
                )
                self.mistakes.report((key, name), message, read=shown(value))
                values[key] = {k: v for k, v in values[key].items() if k != name}
            elif key == "parameters" and name == RANK:
                self.mistakes.report((key, name), "${rank} already means the rank of a process", key=True)

    def _unused(self, parameters: Mapping[str, Any], used: set[str]) -> None:
        texts = [value for value in parameters.values() if isinstance(value, str)]
        for name in parameters:
            if name not in used and not mentions(texts, name):
                message = f"no value uses ${{{name}}}: this parameter would change nothing"
                self.mistakes.report(("parameters", name), message, key=True)

    def _expect(self, raw: Any) -> Any:
        if not isinstance(raw, list):
            return raw
        rows: list[Expect] = []
        for index, row in enumerate(raw):
            checked = dict(row) if isinstance(row, dict) else row
            for key in ("value", "tolerance"):
                value = row.get(key, 0) if isinstance(row, dict) else 0
                if not is_amount(value) and not (value is None and key == "tolerance"):
                    message = "needs a finite number, or text with a unit"
                    self.mistakes.report(("expect", index, key), message, read=shown(value))
                    checked[key] = 0
            rows.append(self._checked(Expect, checked, ("expect", index)) or blank(Expect))
        return rows

    def _processes(self, raw: Any, parameters: Mapping[str, Any], used: set[str], parts: Parts) -> Any:
        if not isinstance(raw, list):
            return raw
        models: list[Process] = []
        for index, item in enumerate(raw):
            path: TreePath = ("processes", index)
            if not isinstance(item, dict):
                self.mistakes.report(
                    path, "a process is a mapping", read=shown(item), legal="{name: app, ...}"
                )
                models.append(blank(Process))
                continue
            for part, model in self._instances(item, path, parameters, used):
                parts.processes.append(part)
                models.append(model)
        return models

    def _instances(
        self, raw: dict[str, Any], path: TreePath, parameters: Mapping[str, Any], used: set[str]
    ) -> Iterator[tuple[ProcessPart, Process]]:
        """One process, or its `count` ranks. Ranks that do not say ${rank} share what was read."""
        several = Substitution(parameters, self.mistakes.report)
        count = several.apply(raw.get("count", 1), (*path, "count"))
        used |= several.used
        right = isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MAX_COUNT
        ranks = count if right else 1
        first: tuple[ProcessPart, Process] | None = None
        for rank in range(ranks):
            if first is None or mentions(raw, RANK):
                substitution = Substitution({**parameters, RANK: rank}, self.mistakes.report)
                instance = substitution.apply(raw, path)
                used |= substitution.used
                first = self._process(instance, path, rank)
                yield first
            else:
                part, model = first
                shared = ProcessPart(path, rank, part.raw, part.buffers, part.files, part.steps)
                copy = model.model_copy()
                copy._rank = rank
                yield shared, copy

    def _process(self, raw: dict[str, Any], path: TreePath, rank: int) -> tuple[ProcessPart, Process]:
        part = ProcessPart(path, rank, raw)
        values = dict(raw)
        part.buffers = self._named(Buffer, values, (*path, "buffers"))
        part.files = self._named(File, values, (*path, "files"))
        threads = values.get("threads")
        if isinstance(threads, dict):
            steps = StepReader(self.mistakes)
            values["threads"] = {
                name: steps.steps(items, (*path, "threads", name), name) for name, items in threads.items()
            }
            part.steps = steps.found
        for key in ("env", "threads"):
            if values.get(key, 0) is None:
                del values[key]
        model = self._checked(Process, values, path) or blank(Process)
        model._rank = rank
        return part, model
