"""The functions behind `import gpusim as gs`: load, run, open_result, compare, explain, sweep, recommend."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from gpusim.errors import InputError, Problem, not_written
from gpusim.result import Result
from gpusim.result.directory import check_target
from gpusim.scenario import companions, effort, loader
from gpusim.scenario.schema import Scenario
from gpusim.study.runs import Progress, simulated

if TYPE_CHECKING:
    import pandas as pd

    from gpusim.report.why import Why
    from gpusim.study.compare import Comparison
    from gpusim.study.recommend import Recommendation
    from gpusim.study.sweep import Progress as SweepProgress

Record = Literal["off", "summary", "spans"]
RESULTS = Path("results")
FEWEST_DRAWS = 2


def load(
    source: str | Path,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as the option of the command line
    seed: int | None = None,
) -> Scenario:
    """The scenario of a YAML file (or of YAML text). `set` maps dotted paths to values that replace the
    file's.

    Raises InputError with every mistake in it.
    """
    return loader.load(source, sets=set, seed=seed)


def run(
    scenario: Scenario | str | Path,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    record: Record = "summary",
    trace: bool = False,
    uncertainty: int | None = None,
    workers: int = 1,
    out: str | Path | None = None,
    progress: Progress | None = None,
    counting: SweepProgress | None = None,
) -> Result:
    """Simulate a scenario (or the file of one).

    `record`: `off` (no breakdown, no tables of events), `summary`, or `spans` (every span). `trace` adds the table
    `kfd_events`, and to `out` a Perfetto trace, `kfd_events.txt` and the unified-memory profile. `out` is a
    directory to write the result to, pictures included; without it nothing is written. `progress` is called
    about five times a second with an object that has `now_ps`, `faults`, `events` and `wall_s`.

    `uncertainty` is a number of further runs with what is fitted or assumed drawn from its range: the block
    `uncertainty` of the summary has the band of the answer and the numbers that it hangs on. They run on `workers`
    processes (above 1, guard a script's entry with `if __name__ == "__main__"`); `counting` is called after each.

    A simulated program that dies is a result like any other: see `Result.outcome`. Raises InputError when the
    scenario is wrong or `out` cannot be written.
    """
    if record not in get_args(Record):
        raise InputError([Problem("unknown record", read=repr(record), legal=", ".join(get_args(Record)))])
    if trace and record == "off":
        raise InputError([Problem("a trace needs what a run records", legal="record: summary or spans")])
    if uncertainty is not None and uncertainty < FEWEST_DRAWS:
        legal = f"at least {FEWEST_DRAWS}"
        raise InputError([Problem("uncertainty needs more draws", read=str(uncertainty), legal=legal)])
    chosen = prepared(scenario, set=set, seed=seed)
    if out is not None:
        check_target(Path(out))
    result = simulated(chosen, record=record, events=trace, progress=progress)
    if uncertainty is not None:
        from gpusim.study import uncertainty as study

        found = study.uncertainty(result, draws=uncertainty, workers=workers, progress=counting)
        result.summary["uncertainty"] = found.as_summary()
    if out is not None:
        save(result, Path(out), pictures=record != "off", trace=trace)
    return result


def save(result: Result, out: Path, *, pictures: bool, trace: bool) -> Path:
    """Write a result, with its pictures and its trace if wanted: a run without recording has neither."""
    from gpusim.report import plots
    from gpusim.report import trace as traces

    def more(partial: Path) -> None:
        if pictures:
            plots.save(result, partial)
        if trace:
            result.summary["trace"] = traces.save(result, partial)

    return result.save(out, extras=more)


def explain(
    target: Result | Scenario | str | Path, *, verify: bool = False, progress: Progress | None = None
) -> Why:
    """What limits a run and what would help it: `limits`, `phases` and `gains`.

    `target` is a result, a directory of one, a scenario, or the file of one. What was not run with `record="spans"` is
    simulated again. With `verify` each gain is simulated as well.

    Raises InputError where the programs do not reach the end of the run, so that nothing leads there.
    """
    from gpusim.report import why

    if isinstance(target, str | Path) and Path(target).is_dir():
        target = open_result(target)
    result = target if isinstance(target, Result) else run(target, record="spans", progress=progress)
    if "spans" not in result.tables:
        result = run(result.scenario, record="spans", progress=progress)
    found = why.why(result)
    if found is None:
        message = f"no critical path leads to the end of the run, which ended with {result.outcome!r}"
        raise InputError([Problem(message, legal="a run whose programs complete")])
    return why.verified(result, found) if verify else found


def compare(
    a: Result | Scenario | str | Path,
    b: Result | Scenario | str | Path,
    *,
    replications: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """What changed from A to B, and why: `kinds`, `changes` of the scenario, and where the two `parting`.

    Each is a result, a directory of one, a scenario, or the file of one. `replications` runs of each, by seed, say
    whether a difference is more than chance. Raises InputError where a run was not recorded.
    """
    from gpusim.study import compare as study

    one, other = (_result(target, progress) for target in (a, b))
    return study.compare(one, other, replications=replications, progress=progress)


def _result(target: Result | Scenario | str | Path, progress: Progress | None) -> Result:
    """A result as it is, read, or simulated now."""
    if isinstance(target, Result):
        return target
    if isinstance(target, str | Path) and Path(target).is_dir():
        return open_result(target)
    return run(target, progress=progress)


def open_result(path: str | Path) -> Result:
    """Read a result directory. Raises InputError when there is none."""
    return Result.load(path)


def sweep(
    scenario: Scenario | str | Path,
    *,
    over: Mapping[str, Sequence[Any]] | None = None,
    replications: int | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    out: str | Path | None = None,
    progress: SweepProgress | None = None,
) -> pd.DataFrame:
    """Run every combination of the values in `over` (and in the scenario's own `sweep`).

    One row per combination and replication, columns named as `Result.metric` takes them. `workers` above 1
    starts processes: guard a script's entry with `if __name__ == "__main__"`. `scheduler` is the address of a Dask
    scheduler instead (the extra `gpusim[distributed]`). `out` is a directory for `points.parquet`; a sweep to it that
    was interrupted goes on where it was.
    """
    from gpusim.study import sweep as study

    chosen = study.with_grid(prepared(scenario, set=set, seed=seed), over, replications)
    target = None if out is None else check_target(Path(out))
    return study.sweep(chosen, workers=workers, scheduler=scheduler, out=target, progress=progress)


def recommend(
    scenario: Scenario | str | Path,
    *,
    metric: str = "makespan_ns",
    goal: Literal["min", "max"] | None = None,
    budget: int | None = None,
    replications: int | None = None,
    over: Mapping[str, Sequence[Any]] | None = None,
    only: Collection[str] | None = None,
    crossovers: Mapping[str, Sequence[Any]] | None = None,
    workers: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    progress: SweepProgress | None = None,
) -> Recommendation:
    """The best of the settings that the scenario's machine and programs allow, by `metric`.

    At most `budget` runs (200): all combinations if they are that few, else a search, which needs the extra
    `gpusim[recommend]`. By default rates are maximised and all else is minimised. Where the seed matters, those near
    the best are compared over `replications` seeds (5). `over` adds settings (path -> values), `only` names the groups
    of settings that may change, `crossovers` are paths with two values each, between which the best may change.

    Raises InputError for what does not exist, and where the extra is needed and missing.
    """
    from gpusim.study import recommend as study

    return study.recommend(
        prepared(scenario, set=set, seed=seed),
        metric=metric,
        goal=goal,
        budget=study.BUDGET if budget is None else budget,
        replications=study.REPLICATIONS if replications is None else replications,
        over=over,
        only=only,
        crossovers=crossovers,
        workers=workers,
        progress=progress,
    )


def warning(scenario: Scenario) -> str | None:
    """A line about a run that will take very long, with its remedy; None for others."""
    return effort.warning(scenario)


def write_scenario(scenario: Scenario, file: Path) -> Path:
    """Write a scenario as YAML, everything resolved, and the files that it names. Raises InputError if it cannot."""
    text, files = companions.copy_of(scenario)
    try:
        companions.write_beside(file.parent, files)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise not_written(str(file), error) from None
    return file


def prepared(
    scenario: Scenario | str | Path,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
) -> Scenario:
    """A scenario with changes, loaded first when it is a file."""
    if not isinstance(scenario, Scenario):
        return load(scenario, set=set, seed=seed)
    changes = dict(set or {}) | ({} if seed is None else {"seed": seed})
    return scenario.with_(**changes) if changes else scenario


def default_out(scenario: Scenario, *, prefix: str = "") -> Path:
    """`results/<name>/<id>`: the id stands for the scenario, its profiles, the seed and the version."""
    return RESULTS / scenario.name / f"{prefix}{loader.run_id(scenario)}"
