"""What each command prints, as text for people or as JSON for scripts: one write to stdout each."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, Problem, not_written

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from gpusim.report.failures import Tried
    from gpusim.report.why import Why
    from gpusim.result import Result
    from gpusim.result.verify import Check
    from gpusim.scenario.schema import Scenario
    from gpusim.study.compare import Comparison
    from gpusim.study.recommend import Recommendation
    from gpusim.study.validate import Validated


def answer(result: Result, *, as_json: bool, quiet: bool) -> None:
    """After `run`."""
    if as_json:
        _write(result.to_json() + "\n")
    elif quiet:
        lines([result.summary["answer"]["text"]])
    else:
        from gpusim.report import terminal

        _show(terminal.answer(result, result.check()))


def checks(found: Sequence[Tried[Scenario]], *, as_json: bool) -> None:
    """After `check`; what is wrong has been said on stderr, and is in the JSON too."""
    if as_json:
        _json(
            [
                {"file": str(one.file), "ok": one.made is not None, "problems": [*map(asdict, one.problems)]}
                for one in found
            ]
        )
        return
    lines(f"{one.file}: ok ({one.made.name})" for one in found if one.made is not None)


def explanation(
    result: Result, found: Sequence[Check] | None, reasons: Why | None = None, *, as_json: bool
) -> None:
    """After `explain`."""
    from gpusim.report import explain

    if as_json:
        _json(explain.as_json(result, found, reasons))
    else:
        _show(explain.explanation(result, found, reasons))


def comparison(found: Comparison, *, as_json: bool) -> None:
    """After `compare`."""
    from gpusim.report import compare

    if as_json:
        _json(compare.as_data(found))
    else:
        _show(compare.comparison(found))


def recommendation(found: Recommendation, *, as_json: bool, written: Path | None = None) -> None:
    """After `explain --recommend`; `written` is the file that the best settings were written to."""
    from gpusim.report import recommend

    if as_json:
        _json(recommend.as_data(found))
        return
    _show(recommend.recommendation(found))
    if written is not None:
        lines(["", f"wrote {written}; now: gpusim run {written}"])


def validation(validated: Sequence[Validated], *, as_json: bool) -> None:
    """After `validate`."""
    if as_json:
        _json([row.as_dict() for one in validated for row in one.rows])
    elif validated:
        from gpusim.report import listings

        _show(listings.validation(validated))


def sweep(scenario: Scenario, found: pd.DataFrame, target: Path, *, as_json: bool, quiet: bool) -> None:
    """After `sweep`."""
    if as_json:
        rows = json.loads(found.to_json(orient="records", double_precision=15))
        _json({"points": rows, "directory": str(target)})
        return
    from gpusim.report import listings

    where = f"{len(found)} runs in {target}/points.parquet"
    axes = list(scenario.sweep.over) if scenario.sweep is not None else []
    _show([where] if quiet else [*listings.sweep(found, axes), "", where])


def profiles(name: str | None, *, as_yaml: bool) -> None:
    """`profiles`: the list, one with all its numbers, or the file of one."""
    from gpusim.report import listings
    from gpusim.scenario import profiles as scenario_profiles

    if name is None:
        _show(
            listings.profile_names({kind: scenario_profiles.names(kind) for kind in scenario_profiles.KINDS})
        )
        return
    for profile in scenario_profiles.find(name):
        if as_yaml:
            _write(profile.text)
        else:
            _show(listings.profile(profile))


def schema(what: str) -> None:
    """`schema` and `schema results`."""
    if what == "results":
        from gpusim.result.schema import results_schema

        _json(results_schema())
    else:
        from gpusim.scenario import loader

        _json(loader.json_schema())


def starter(file: Path, *, force: bool) -> None:
    """`init`."""
    from importlib import resources

    text = resources.files("gpusim.scenario").joinpath("starter.yaml").read_text(encoding="utf-8")
    if str(file) == "-":
        _write(text)
        return
    if file.exists() and not force:
        legal = "another name, or --force"
        raise InputError([Problem("there is a file of this name already", file=str(file), legal=legal)])
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise not_written(str(file), error) from None
    lines([f"wrote {file}; now: gpusim run {file}"])


def lines(words: Iterable[str]) -> None:
    """Plain lines."""
    _write("".join(f"{line}\n" for line in words))


def _show(parts: Iterable[RenderableType]) -> None:
    from gpusim.report.console import rendered

    _write(rendered(parts, sys.stdout))


def _json(data: Any) -> None:
    _write(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
