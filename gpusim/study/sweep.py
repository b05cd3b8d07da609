"""A grid of runs on local worker processes, as one tidy table.

The table depends on the scenario, the grid and the version alone: not on the number of workers, nor on the
order in which they finish. Replications of a point differ in the seed only, and replication r has the same
seed at every point (common random numbers).
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.errors import GpusimError, InputError, Problem
from gpusim.result.directory import whole
from gpusim.study.points import row, table
from gpusim.study.runs import simulated

if TYPE_CHECKING:
    import pandas as pd

    from gpusim.scenario.schema import Scenario

POINTS = "points.parquet"
_AHEAD = 4  # tasks handed to the pool per worker: enough to keep it busy, few enough to stop soon

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


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


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
    results = _alone(base, grid) if min(workers, len(grid)) <= 1 else _together(base, grid, workers)
    for point, found in results:
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


def _alone(base: Scenario, grid: Sequence[Point]) -> Iterator[tuple[Point, dict[str, Any]]]:
    for point in grid:
        with _named(point):
            found = _run(base, point)
        yield point, found


_base: Scenario | None = None  # of a worker process, set once at its start


def _start_worker(base: Scenario) -> None:
    global _base  # noqa: PLW0603 - the state of a worker process, not of the package
    _base = base
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers


def _in_worker(point: Point) -> dict[str, Any]:
    assert _base is not None
    return _run(_base, point)


def _together(base: Scenario, grid: Sequence[Point], workers: int) -> Iterator[tuple[Point, dict[str, Any]]]:
    context = multiprocessing.get_context("spawn")
    count = min(workers, len(grid))
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_start_worker, initargs=(base,))
    before = set(multiprocessing.active_children())
    waiting = iter(grid)
    running: dict[Future[dict[str, Any]], Point] = {}
    finished = False
    try:
        while True:
            for point in itertools.islice(waiting, count * _AHEAD - len(running)):
                running[pool.submit(_in_worker, point)] = point
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                point = running.pop(future)
                with _named(point):
                    found = future.result()
                yield point, found
        finished = True
    finally:
        pool.shutdown(wait=finished, cancel_futures=True)
        if not finished:  # an error or Ctrl-C: what still runs is of no use
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
                child.join()


class _named:  # noqa: N801 - reads as a function
    """Says at which point of the grid an error came up."""

    def __init__(self, point: Point) -> None:
        self.point = point

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BrokenProcessPool):
            raise GpusimError(
                "a worker process was ended from outside, most likely for want of memory: use fewer --workers"
            ) from None
        if isinstance(error, InputError):
            raise InputError(
                [Problem(f"{problem} (at {self.point})") for problem in error.problems]
            ) from None
        if error is not None and isinstance(error, Exception):
            error.add_note(f"at the point {self.point} of the sweep")
