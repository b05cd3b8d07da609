"""A grid of runs on local worker processes, as one tidy table.

The table depends on the scenario, the grid and the version alone: not on the number of workers, nor on the
order in which they finish. Replications of a point differ in the seed only, and replication r has the same
seed at every point (common random numbers).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, Problem
from gpusim.result.directory import whole
from gpusim.study.points import row, table
from gpusim.study.runs import simulated
from gpusim.study.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

    from gpusim.scenario.schema import Scenario

POINTS = "points.parquet"

#: called after each run with (runs done, runs in all)
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Point:
    """One run of the grid."""

    index: int
    values: tuple[tuple[str, Any], ...]
    replication: int
    seed: int

    def __str__(self) -> str:
        chosen = ", ".join(f"{path}={value}" for path, value in self.values)
        return f"{chosen}, seed {self.seed}"


def with_grid(
    scenario: Scenario, over: Mapping[str, Sequence[Any]] | None, replications: int | None
) -> Scenario:
    """The scenario with axes added to (or put in the place of) those of its `sweep`; all of them checked.

    Raises InputError when there is nothing to sweep, or an axis or a value of it is wrong.
    """
    axes: dict[str, list[Any]] = {}
    if scenario.sweep is not None:
        axes = {path: list(values) for path, values in scenario.sweep.over.items()}
    axes |= {path: list(values) for path, values in (over or {}).items()}
    if not axes:
        legal = "--over parameters.prefetch=false,true, or sweep.over in the file"
        raise InputError([Problem("there is nothing to sweep", path="sweep.over", legal=legal)])
    empty = [path for path, values in axes.items() if not values]
    if empty:
        raise InputError(
            [Problem("an axis needs at least one value", path=f"sweep.over.{path}") for path in empty]
        )
    repeats = scenario.sweep.replications if scenario.sweep is not None else 1
    grid = {"over": axes, "replications": repeats if replications is None else replications}
    return scenario.with_(sweep=grid)


def points(scenario: Scenario) -> list[Point]:
    """The runs of a scenario's `sweep`: the last axis varies fastest, replications within a point."""
    if scenario.sweep is None:
        return []
    axes = scenario.sweep.over
    made: list[Point] = []
    for combination in itertools.product(*axes.values()):
        values = tuple(zip(axes, combination, strict=True))
        for replication in range(scenario.sweep.replications):
            seed = dict(values).get("seed", scenario.seed) + replication
            made.append(Point(len(made), values, replication, seed))
    return made


def sweep(
    scenario: Scenario,
    *,
    over: Mapping[str, Sequence[Any]] | None = None,
    replications: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """One row per point and replication; see `gpusim.study.points` for the columns.

    `workers` above 1 starts processes with the `spawn` method, so a script must guard its entry with
    `if __name__ == "__main__"`. Raises InputError for a wrong grid before anything runs.
    """
    scenario = with_grid(scenario, over, replications)
    grid = points(scenario)
    base = scenario.with_(sweep=None, expect=[])
    rows: dict[int, dict[str, Any]] = {}
    with Workers(_run, base, min(workers, len(grid)), of="the sweep") as pool:
        for point, found in pool.each(grid):
            rows[point.index] = found
            if progress is not None:
                progress(len(rows), len(grid))
    assert scenario.sweep is not None  # for the type checker; `with_grid` made it
    return table([rows[point.index] for point in grid], list(scenario.sweep.over))


def save(scenario: Scenario, found: pd.DataFrame, target: Path) -> Path:
    """Write the directory of a sweep, whole or not at all. Raises InputError when it cannot be written."""
    import pyarrow as pa
    from pyarrow import parquet

    from gpusim.scenario import loader

    with whole(target) as partial:
        parquet.write_table(pa.Table.from_pandas(found, preserve_index=False), partial / POINTS)
        (partial / "scenario.yaml").write_text(loader.resolved_yaml(scenario), encoding="utf-8")
    return target


def _run(base: Scenario, point: Point) -> dict[str, Any]:
    scenario = base.with_(**(dict(point.values) | {"seed": point.seed}))
    return row(point.values, point.replication, point.seed, simulated(scenario).summary)
