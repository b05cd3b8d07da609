"""A grid of runs on local worker processes, as one tidy table.

The table depends on the scenario, the grid and the version alone: not on the number of workers, nor on the
order in which they finish. Replications of a point differ in the seed only, and replication r has the same
seed at every point (common random numbers).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, Problem
from gpusim.result.directory import whole
from gpusim.scenario import loader
from gpusim.study.journal import Journal
from gpusim.study.points import row, table
from gpusim.study.runs import simulated
from gpusim.study.scheduler import Scheduler
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

    @property
    def key(self) -> str:
        """The same in any grid that has this run."""
        return json.dumps([dict(self.values), self.replication, self.seed], sort_keys=True)

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
            [
                Problem(
                    "an axis needs at least one value", path=f"sweep.over.{path}", legal="a list of values"
                )
                for path in empty
            ]
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
    scheduler: str | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """One row per point and replication; see `gpusim.study.points` for the columns.

    `workers` above 1 starts processes with the `spawn` method, so a script must guard its entry with
    `if __name__ == "__main__"`; `scheduler` is the address of a Dask scheduler whose workers do it instead. `out` is
    the directory to write: what an interrupted sweep to it has run is not run again. Raises InputError for a wrong
    grid before anything runs.
    """
    scenario = with_grid(scenario, over, replications)
    grid = points(scenario)
    base = scenario.with_(sweep=None, expect=[])
    axes = list(scenario.sweep.over) if scenario.sweep is not None else []
    if out is None:
        return table([found for _, found in sorted(_rows(base, grid, workers, scheduler, progress))], axes)
    with Journal(out, loader.run_id(base), (point.key for point in grid)) as journal:
        left = [point for point in grid if point.key not in journal.rows]
        kept = len(grid) - len(left)
        shown = None if progress is None else _further(progress, kept, len(grid))
        by_index = {point.index: point for point in grid}
        with closing(_rows(base, left, workers, scheduler, shown)) as ending:
            for index, found in ending:
                point = by_index[index]
                axis = dict(point.values)
                journal.add(point.key, {name: value for name, value in found.items() if name not in axis})
        made = table([{**dict(point.values), **journal.rows[point.key]} for point in grid], axes)
        save(scenario, made, out)
        journal.done()
    return made


def _further(progress: Progress, kept: int, whole: int) -> Progress:
    """Counts from what was there."""

    def show(done: int, _: int) -> None:
        progress(kept + done, whole)

    return show


def _rows(
    base: Scenario, grid: Sequence[Point], workers: int, scheduler: str | None, progress: Progress | None
) -> Generator[tuple[int, dict[str, Any]]]:
    """(index of the point, its row), as they finish."""
    if not grid:
        return
    of = "the sweep"
    chosen: Workers[Point, dict[str, Any]] | Scheduler[Point, dict[str, Any]]
    if scheduler is None:
        chosen = Workers(_run, base, min(workers, len(grid)), of=of)
    else:
        chosen = Scheduler(_run, base, scheduler, of=of)
    with chosen as pool:
        for done, (point, found) in enumerate(pool.each(grid), start=1):
            if progress is not None:
                progress(done, len(grid))
            yield point.index, found


def save(scenario: Scenario, found: pd.DataFrame, target: Path) -> Path:
    """Write the directory of a sweep, whole or not at all. Raises InputError when it cannot be written."""
    import pyarrow as pa
    from pyarrow import parquet

    with whole(target) as partial:
        parquet.write_table(pa.Table.from_pandas(found, preserve_index=False), partial / POINTS)
        (partial / "scenario.yaml").write_text(loader.resolved_yaml(scenario), encoding="utf-8")
    return target


def _run(base: Scenario, point: Point) -> dict[str, Any]:
    scenario = base.with_(**(dict(point.values) | {"seed": point.seed}))
    return row(point.values, point.replication, point.seed, simulated(scenario).summary)
