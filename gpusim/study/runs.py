"""One run, as every study and the command line do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, Problem
from gpusim.result import Result

if TYPE_CHECKING:
    from gpusim.scenario.schema import Scenario

#: called about five times a second with an object that has `now_ps`, `faults`, `events` and `wall_s`
Progress = Callable[[Any], None]


def simulated(
    scenario: Scenario, *, record: str = "summary", events: bool = False, progress: Progress | None = None
) -> Result:
    """The result of a scenario. `record` is `off`, `summary` or `spans`; `events` adds the table of KFD events."""
    from gpusim.simulation import simulate

    try:
        return Result.from_run(scenario, simulate(scenario, record=record, events=events, progress=progress))
    except OverflowError as error:
        message = f"the run needs numbers beyond 64 bits, such as a time of more than 104 days: {error}"
        legal = "shorter sleeps, faster parts, or a limits.simulated_time"
        raise InputError([Problem(message, legal=legal)]) from error
