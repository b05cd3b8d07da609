"""Measured against simulated: the `expect` rows of scenarios, each after a run of its scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpusim import shipped
from gpusim.errors import InputError, Problem
from gpusim.result.expect import Checked
from gpusim.scenario import loader
from gpusim.study.runs import Progress, simulated


@dataclass(frozen=True, slots=True)
class Validated:
    """One scenario file after its run."""

    file: Path
    outcome: str
    rows: tuple[Checked, ...]

    @property
    def died(self) -> bool:
        """The program did not complete, and no row says that it should not."""
        expected = any(row.ok and row.metric.endswith("outcome") for row in self.rows)
        return self.outcome != "completed" and not expected

    @property
    def in_tolerance(self) -> bool:
        return all(row.ok for row in self.rows)


def shipped_files() -> list[Path]:
    """The validation scenarios that come with the package, in order of their names.

    Those without `expect` rows make a prediction that nobody has measured: there is nothing to compare.
    """
    return [file for file in sorted(shipped.validation_dir().glob("*.yaml")) if _has_rows(file)]


def _has_rows(file: Path) -> bool:
    try:
        return bool(loader.load(file).expect)
    except InputError:
        return True  # so that `validate` reports what is wrong with it


def validate(file: str | Path, *, progress: Progress | None = None) -> Validated:
    """Run one file at its base point and compare. Raises InputError, also when it has no `expect`."""
    scenario = loader.load(file)
    if not scenario.expect:
        problem = Problem(
            "has no rows to validate", path="expect", legal="`expect:` with what was measured", file=str(file)
        )
        raise InputError([problem])
    result = simulated(scenario, progress=progress)
    return Validated(Path(file), result.outcome, tuple(result.check(scenario.expect)))


def as_rows(validated: Sequence[Validated]) -> list[dict[str, object]]:
    """What `validate --json` prints."""
    return [row.as_dict() for one in validated for row in one.rows]
