"""A step as the scenario writes it: one verb with its arguments, and what any step may have."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SerializeAsAny, model_validator

from gpusim.spec import Spec
from gpusim.workload.steps.base import StepSpec

_COMMON = ("name", "when", "stream")


class Step(Spec):
    """`{name, when, stream, <verb>: {arguments}}` with exactly one verb."""

    name: str = Field(description="the step's name in paths; default: the verb")
    when: bool = Field(default=True, description="false: the step is left out")
    stream: str | None = Field(default=None, description="the stream; default: the process's null stream")
    verb: str = Field(description="the step's verb")
    args: SerializeAsAny[StepSpec] = Field(description="the verb's arguments")

    @model_validator(mode="before")
    @classmethod
    def _one_verb(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or "args" in raw:
            return raw
        from gpusim.workload.steps import STEPS  # the list names this file's users: not at import time

        verbs = [key for key in raw if key not in _COMMON]
        if len(verbs) != 1 or verbs[0] not in STEPS:
            raise ValueError(f"a step has exactly one verb, read {sorted(map(str, verbs))}")
        verb = verbs[0]
        args = STEPS[verb].model_validate(raw[verb] if raw[verb] is not None else {})
        common = {key: raw[key] for key in _COMMON if key in raw}
        return {"name": verb, **common, "verb": verb, "args": args}
