"""Verbs that the language has and this version does not simulate yet: their arguments are checked in full.

Each gets a file of its own, with its behaviour, when it is simulated; it then moves to the list in
`__init__`.
"""

from typing import ClassVar

from pydantic import Field

from gpusim.workload.steps.base import StepSpec


class Kill(StepSpec):
    """SIGKILL."""

    verb: ClassVar[str] = "kill"

    process: str | None = Field(default=None, description="the process, all its ranks; default: this one")


_LATER: tuple[type[StepSpec], ...] = (Kill,)

#: verb -> its arguments
NOT_SUPPORTED_YET: dict[str, type[StepSpec]] = {step.verb: step for step in _LATER}
