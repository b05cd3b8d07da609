"""Steps: `{name, when, stream, <verb>: {arguments}}`, and steps inside steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpusim.scenario.mistakes import Mistakes, keys_of, shown
from gpusim.scenario.parts import StepPart, blank, checked
from gpusim.scenario.paths import STEP_KEYS, TreePath, listed, nearest
from gpusim.scenario.placeholders import condition
from gpusim.scenario.schema import NAME_PATTERN
from gpusim.workload.steps import STEPS, Step, StepSpec

VERBS: dict[str, type[StepSpec]] = dict(sorted(STEPS.items()))

_NAME = re.compile(NAME_PATTERN)
_NAME_LEGAL = "a letter or _, then letters, digits, _ and -"


class StepReader:
    """Reads the steps of one process. `found` has them all, nested ones after those that enclose them."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes
        self.found: list[StepPart] = []

    def steps(self, raw: Any, path: TreePath, thread: str) -> tuple[Step, ...]:
        if not isinstance(raw, list):
            self.mistakes.report(path, "needs a list of steps", read=shown(raw), legal="[{sleep: {...}}]")
            return ()
        steps = [self._step(item, (*path, index), thread) for index, item in enumerate(raw)]
        return tuple(step or blank(Step) for step in steps)

    def _step(self, raw: Any, path: TreePath, thread: str) -> Step | None:
        verb = self._verb(raw, path)
        if verb is None:
            return None
        spec = VERBS[verb]
        args = raw[verb] if raw[verb] is not None else {}
        if not isinstance(args, dict):
            legal = listed(keys_of(spec))
            self.mistakes.report((*path, verb), "needs a mapping of arguments", read=shown(args), legal=legal)
            return None
        values = dict(args)
        for key, depth in nested_steps(spec).items():
            inner = values.get(key)
            if isinstance(inner, list):
                where = (*path, verb, key)
                values[key] = (
                    self.steps(inner, where, thread)
                    if depth == 1
                    else tuple(self.steps(item, (*where, i), thread) for i, item in enumerate(inner))
                )
        arguments = checked(spec, values, (*path, verb), self.mistakes)
        common = self._common(raw, path, spec)
        step = None
        if arguments is not None and common is not None:
            step = Step(**{"name": verb, **common}, verb=verb, args=arguments)
        name, stream = raw.get("name"), raw.get("stream")
        self.found.append(
            StepPart(
                path,
                thread,
                verb,
                name if isinstance(name, str) else None,
                args,
                step,
                stream if isinstance(stream, str) else None,
            )
        )
        return step

    def _verb(self, raw: Any, path: TreePath) -> str | None:
        if not isinstance(raw, dict):
            legal = "{name: ..., <verb>: {arguments}}"
            self.mistakes.report(path, "a step is a mapping with one verb", read=shown(raw), legal=legal)
            return None
        candidates = [key for key in raw if key not in STEP_KEYS]
        known = [key for key in candidates if key in VERBS]
        for key in (key for key in candidates if key not in VERBS):
            options = STEP_KEYS if known else tuple(VERBS)
            message = f"unknown key {key!r}" if known else f"unknown step {key!r}"
            if len(known) == 1 and key in keys_of(VERBS[known[0]]):
                message = f"the key {key!r} belongs inside {known[0]!r}"
            legal = listed(options, 60)
            near = nearest(key, options)
            self.mistakes.report((*path, key), message, legal=legal, nearest=near, key=True)
        if not candidates:
            self.mistakes.report(path, "a step needs a verb", legal=listed(VERBS, 60))
        elif len(known) > 1:
            message = "a step has exactly one verb"
            self.mistakes.report(path, message, read=" and ".join(known), legal="one step for each")
        return known[0] if len(known) == 1 else None

    def _common(self, raw: dict[str, Any], path: TreePath, spec: type[StepSpec]) -> dict[str, Any] | None:
        common: dict[str, Any] = {}
        right = True
        for key in ("name", "stream"):
            if key in raw:
                common[key] = raw[key]
                if not isinstance(raw[key], str) or not _NAME.fullmatch(raw[key]):
                    self.mistakes.report((*path, key), "not a name", read=shown(raw[key]), legal=_NAME_LEGAL)
                    right = False
        if "stream" in raw and not spec.takes_stream:
            message = f"{spec.verb} runs in the host thread: `stream` would be ignored"
            self.mistakes.report((*path, "stream"), message, key=True)
            right = False
        if "when" in raw:
            said = condition(raw["when"])
            if isinstance(said, bool):
                common["when"] = said
            elif isinstance(raw["when"], str) and "${" in raw["when"]:
                right = False  # a placeholder that failed is reported
            else:
                self.mistakes.report((*path, "when"), said.message, read=said.read, legal=said.legal)
                right = False
        return common if right else None


def nested_steps(spec: type[StepSpec]) -> dict[str, int]:
    """The fields of a verb that hold steps: 1 for a list of steps, 2 for a list of lists."""
    depths: Mapping[Any, int] = {tuple[Step, ...]: 1, tuple[tuple[Step, ...], ...]: 2}
    return {
        name: depths[info.annotation] for name, info in spec.model_fields.items() if info.annotation in depths
    }
