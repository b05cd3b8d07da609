"""The command line: parse, call the public API, print. What a command prints is made in `gpusim.report`.

Only click is imported before a command runs, so that `gpusim --help` starts at once. Exit codes are in
`gpusim.report.failures`; each command returns one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from gpusim.report import failures

_SETS = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="PATH=VALUE",
    help="Change a value, e.g. parameters.prefetch=true.",
)
_SEED = click.option("--seed", type=int, metavar="N", help="Seed of all random numbers.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
_QUIET = click.option("--quiet", is_flag=True, help="Print the answer only, and no progress.")
_OUT = click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where the files go.")
_FILE = click.argument("file", type=click.Path(path_type=Path))
_FILES = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))


class _Commands(click.Group):
    """Names the nearest command when one is unknown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.commands, 1)
            if not near or "Did you mean" in error.format_message():  # click's newer versions say it
                raise
            raise click.UsageError(f"{error.format_message()} Did you mean {near[0]!r}?", ctx) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of this file, which is the order of use


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from gpusim.version import version

        click.echo(f"gpusim {version()}")
        ctx.exit()


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def cli() -> None:
    """Simulate the memory side of AMD GPU programs: XNACK faults, migration, copies, prefetch.

    A YAML scenario goes in, an answer with its reasons comes out. Begin with `gpusim init`, then `gpusim run
    scenario.yaml`.

    Exit codes: 0 fine; 1 a bug of ours; 2 the input is wrong; 3 the simulated program died or made no
    progress; 4 validate found a row out of tolerance; 130 interrupted.
    """


@cli.command()
@_FILE
@_SETS
@_SEED
@_OUT
@click.option(
    "--record",
    type=click.Choice(["off", "summary", "spans"]),
    default="summary",
    show_default=True,
    help="off: no breakdown; spans: every span of time.",
)
@click.option(
    "--trace", is_flag=True, help="Write a Perfetto trace, kfd_events.txt and the unified-memory profile."
)
@click.option(
    "--uncertainty",
    type=click.IntRange(2, 100_000),
    metavar="N",
    help="Draw what is fitted or assumed from its range N times: the band of the answer, and what it hangs on.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="With --uncertainty: processes; default: one per core.",
)
@_JSON
@_QUIET
def run(
    file: Path,
    sets: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    record: Any,
    trace: bool,
    uncertainty: int | None,
    workers: int | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Run a scenario, print the answer, write the result directory."""
    failures.only_with("--uncertainty", uncertainty is not None, {"workers": workers})
    from gpusim import public
    from gpusim.report import output, progress
    from gpusim.study.workers import cores

    scenario = public.load(file, set=failures.parsed_sets(sets), seed=seed)
    _heed(public.warning(scenario))
    target = public.default_out(scenario) if out is None else out
    limit_ps = scenario.limits.simulated_time
    wanted = not (as_json or quiet)
    with (
        progress.live(limit_ns=limit_ps and limit_ps / 1000, wanted=wanted) as show,
        progress.counting("draws", wanted=wanted) as counting,
    ):
        result = public.run(
            scenario,
            record=record,
            trace=trace,
            uncertainty=uncertainty,
            workers=workers or cores(),
            out=target,
            progress=show,
            counting=counting,
        )
    output.answer(result, as_json=as_json, quiet=quiet)
    return failures.code_of(result.outcome)


def _heed(warning: str | None) -> None:
    if warning is not None:
        click.echo(f"gpusim: warning: {warning}", err=True)


@cli.command()
@_FILES
@_SETS
@_SEED
@_JSON
def check(files: tuple[Path, ...], sets: tuple[str, ...], seed: int | None, as_json: bool) -> int:
    """Validate scenarios without running them."""
    from gpusim import public
    from gpusim.report import output

    changes = failures.parsed_sets(sets)
    found = failures.each(files, lambda file: public.load(file, set=changes, seed=seed))
    for one in found:
        _heed(None if one.made is None else public.warning(one.made))
    output.checks(found, as_json=as_json)
    return failures.highest(one.code for one in found)


@cli.command()
@click.argument("target", metavar="FILE|DIR", type=click.Path(path_type=Path))
@click.option(
    "--verify",
    is_flag=True,
    help="Recompute what must hold, and simulate again with each kind of work at double speed.",
)
@click.option(
    "--recommend", is_flag=True, help="Search the settings that machine and program allow for the best."
)
@click.option("--metric", metavar="PATH", help="With --recommend: what is best.  [default: makespan_ns]")
@click.option(
    "--goal",
    type=click.Choice(["min", "max"]),
    help="With --recommend: least or most of it.  [default: max of rates, else min]",
)
@click.option(
    "--budget", type=click.IntRange(4), metavar="N", help="With --recommend: runs at most.  [default: 200]"
)
@click.option(
    "--replications",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="With --recommend: seeds for those near the best, where it matters.  [default: 5]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="GROUP",
    help="With --recommend: change these settings only; may be given again.",
)
@click.option(
    "--over",
    multiple=True,
    metavar="PATH=A,B",
    help="With --recommend: a setting of your own; may be given again.",
)
@click.option(
    "--crossover",
    multiple=True,
    metavar="PATH=LOW,HIGH",
    help="With --recommend: where between the two the best changes; may be given again.",
)
@click.option(
    "--write",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --recommend: write the scenario with the best settings.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="With --recommend: processes; default: one per core.",
)
@_SETS
@_SEED
@_JSON
def explain(
    target: Path,
    verify: bool,
    recommend: bool,
    sets: tuple[str, ...],
    seed: int | None,
    as_json: bool,
    **search: Any,
) -> int:
    """Say where the time went, what limits it and what would help, of a scenario or a result directory.

    With --recommend: which of the legal settings are best (XNACK, allocators, prefetch, advice, migration granule, the
    path of file I/O, threads, block size), how sure and how flat that is, and what it hangs on.
    """
    from gpusim import public
    from gpusim.report import output, progress, why

    failures.only_with("--recommend", recommend, search)
    changes = failures.parsed_sets(sets)
    if recommend:
        failures.not_with("--recommend", {"--verify": verify})
        chosen = public.open_result(target).scenario if target.is_dir() else public.load(target)
        return _recommended(public.prepared(chosen, set=changes, seed=seed), as_json=as_json, **search)
    if target.is_dir():
        failures.not_with("a result directory", {"--set": bool(sets), "--seed": seed is not None})
        result = public.open_result(target)
    else:
        with progress.live(wanted=not as_json) as show:
            result = public.run(target, set=changes, seed=seed, record="spans", progress=show)
    checks = result.verify() if verify else None
    reasons = why.why(result)
    if verify and reasons is not None:
        reasons = why.verified(result, reasons)
    output.explanation(result, checks, reasons, as_json=as_json)
    broken = any(not one.ok for one in checks or ())
    return failures.BUG if broken else failures.code_of(result.outcome)


def _recommended(
    scenario: Any,
    *,
    as_json: bool,
    metric: str | None,
    only: tuple[str, ...],
    over: tuple[str, ...],
    crossover: tuple[str, ...],
    write: Path | None,
    workers: int | None,
    **limits: Any,
) -> int:
    """`explain --recommend`: 3 where no settings complete."""
    from gpusim import public
    from gpusim.report import output, progress
    from gpusim.study.workers import cores

    with progress.counting("runs", wanted=not as_json) as show:
        found = public.recommend(
            scenario,
            metric=metric or "makespan_ns",
            only=only or None,
            over=failures.parsed_axes(over),
            crossovers=failures.parsed_axes(crossover, "--crossover"),
            workers=workers or cores(),
            progress=show,
            **limits,
        )
    written = write if write is not None and found.best is not None else None
    if written is not None:
        public.write_scenario(found.recommended(), written)
    output.recommendation(found, as_json=as_json, written=written)
    return failures.FINE if found.best is not None else failures.DIED


@cli.command()
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--replications",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Runs of each, by seed.",
)
@_JSON
def compare(a: Path, b: Path, replications: int, as_json: bool) -> int:
    """Compare two scenarios or result directories: what changed, and why."""
    from gpusim import public
    from gpusim.report import output, progress
    from gpusim.study import compare as study

    with progress.live(wanted=not as_json) as show:
        one, other = (
            public.open_result(target) if target.is_dir() else public.run(target, progress=show)
            for target in (a, b)
        )
        found = study.compare(one, other, replications=replications, progress=show)
    output.comparison(found, as_json=as_json)
    return failures.FINE


@cli.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("picture", required=False, type=click.Choice(["latency", "throughput", "use", "breakdown"]))
def plot(directory: Path, picture: str | None) -> int:
    """Draw pictures of a result into its directory; all of them unless one is named."""
    from gpusim import public
    from gpusim.report import output, plots

    result = public.open_result(directory)
    if picture is not None:
        output.lines([str(plots.save_one(result, directory, picture))])
    else:
        written, skipped = plots.save(result, directory)
        output.lines([*map(str, written), *skipped])
    return failures.FINE


@cli.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def report(directory: Path) -> int:
    """Write a result as one self-contained HTML page, DIR/report.html."""
    from gpusim import public
    from gpusim.report import html, output

    output.lines([str(html.save(public.open_result(directory), directory))])
    return failures.FINE


@cli.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@_JSON
def validate(files: tuple[Path, ...], as_json: bool) -> int:
    """Compare simulated with measured values, row by row; without files, those that come with gpusim."""
    from gpusim.report import output, progress
    from gpusim.study import validate as study

    with progress.live(wanted=not as_json) as show:
        found = failures.each(
            files or study.shipped_files(), lambda file: study.validate(file, progress=show)
        )
    validated = [one.made for one in found if one.made is not None]
    output.validation(validated, as_json=as_json)
    codes = [one.code for one in found]
    codes += [failures.DIED for one in validated if one.died]
    codes += [failures.OUT_OF_TOLERANCE for one in validated if not one.in_tolerance]
    return failures.highest(codes)


@cli.command()
@_FILE
@click.option("--over", multiple=True, metavar="PATH=A,B,C", help="An axis of the grid; may be given again.")
@click.option(
    "--replications", type=click.IntRange(1, 10_000), metavar="N", help="Runs of each point, by seed."
)
@click.option(
    "--workers", type=click.IntRange(1, 1024), metavar="N", help="Processes; default: one per core."
)
@click.option(
    "--scheduler", metavar="ADDR", help="Instead: the workers of a Dask scheduler, e.g. tcp://host:8786."
)
@_SETS
@_SEED
@_OUT
@_JSON
@_QUIET
def sweep(
    file: Path,
    over: tuple[str, ...],
    replications: int | None,
    workers: int | None,
    scheduler: str | None,
    sets: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Run a grid of what-ifs; write one row per point and replication to DIR/points.parquet.

    One that was interrupted goes on where it was: what has been run is kept beside DIR until all of it is there.
    """
    if scheduler is not None:
        failures.not_with("--scheduler", {"--workers": workers is not None})
    from gpusim import public
    from gpusim.report import output, progress
    from gpusim.study import sweep as study
    from gpusim.study.workers import cores

    scenario = public.load(file, set=failures.parsed_sets(sets), seed=seed)
    scenario = study.with_grid(scenario, failures.parsed_axes(over), replications)
    target = public.default_out(scenario, prefix="sweep-") if out is None else out
    with progress.counting("runs", wanted=not (as_json or quiet)) as show:
        found = public.sweep(
            scenario, workers=workers or cores(), scheduler=scheduler, out=target, progress=show
        )
    output.sweep(scenario, found, target, as_json=as_json, quiet=quiet)
    return failures.FINE


@cli.command()
@click.argument("name", required=False)
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the profile's file, to start one's own from.")
def profiles(name: str | None, as_yaml: bool) -> int:
    """List the machines that come with gpusim, or every number of one with its source and grade."""
    from gpusim.report import output

    output.profiles(name, as_yaml=as_yaml)
    return failures.FINE


@cli.command()
@click.argument("what", required=False, type=click.Choice(["scenario", "results"]), default="scenario")
def schema(what: str) -> int:
    """Print the JSON Schema of scenarios; with `results`, that of summary.json and all tables' columns."""
    from gpusim.report import output

    output.schema(what)
    return failures.FINE


@cli.command()
@click.argument("file", required=False, type=click.Path(path_type=Path), default="scenario.yaml")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(file: Path, force: bool) -> int:
    """Write a starter scenario (default: scenario.yaml; - prints it)."""
    from gpusim.report import output

    output.starter(file, force=force)
    return failures.FINE


def _later(name: str, text: str) -> None:
    """A command of the contract that this version answers with `not supported yet`."""

    def command(args: tuple[str, ...]) -> int:
        failures.refuse({f"gpusim {name}": True})
        return failures.WRONG_INPUT

    command.__doc__ = f"{text} (not supported yet)."
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    argument: Callable[[Any], Any] = click.argument("args", nargs=-1, type=click.UNPROCESSED)
    cli.command(name, context_settings=settings)(argument(command))


_later("calibrate", "Fit named parameters to measured data")
_later("import", "Turn a trace, log or job file into a scenario")


def main(args: list[str] | None = None) -> NoReturn:
    """The entry point: runs a command and ends the process with its exit code."""
    failures.leave(lambda: _invoke(args))


def _invoke(args: list[str] | None) -> int:
    import sys

    with cli.make_context("gpusim", list(sys.argv[1:] if args is None else args)) as context:
        code: Any = cli.invoke(context)
        return int(code or 0)
