"""A scenario in pieces: what the reader found, right or wrong, for the checks that need to see all of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from gpusim.scenario.mistakes import Mistakes
from gpusim.scenario.paths import TreePath
from gpusim.scenario.schema import Buffer, File, Scenario
from gpusim.spec import Spec
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.steps import Step

SpecT = TypeVar("SpecT", bound=Spec)


def is_amount(value: Any) -> bool:
    """Text or a finite number: what an expected value can be."""
    if isinstance(value, bool):
        return False
    return isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))


def checked(model: type[SpecT], raw: Any, path: TreePath, mistakes: Mistakes) -> SpecT | None:
    """The part, or None with its problems reported."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        mistakes.report_validation(error, model, path)
        return None


def blank(model: type[SpecT]) -> SpecT:
    """Stands in for a part with a mistake, so that what encloses it can still be checked."""
    construct: Any = model.model_construct
    part: SpecT = construct()
    return part


@dataclass(slots=True)
class StepPart:
    """One step as read. `step` is None when it has a mistake."""

    path: TreePath
    thread: str
    verb: str
    name: str | None  # as written
    raw_args: Mapping[str, Any]
    step: Step | None
    stream: str | None = None


@dataclass(slots=True)
class ProcessPart:
    """One instance of a process as read. A buffer or file with a mistake is None."""

    path: TreePath
    rank: int
    raw: Mapping[str, Any]
    buffers: dict[str, Buffer | None] = field(default_factory=dict)
    files: dict[str, File | None] = field(default_factory=dict)
    steps: list[StepPart] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.raw.get("name", ""))


@dataclass(slots=True)
class Parts:
    """What a scenario consists of, whether or not all of it is right."""

    tree: dict[str, Any]  # placeholders replaced, but for `processes`
    kernels: dict[str, KernelSpec | None] = field(default_factory=dict)
    processes: list[ProcessPart] = field(default_factory=list)
    scenario: Scenario | None = None
