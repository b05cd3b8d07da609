"""The outcome of one run, in memory or read back from its directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.errors import InputError, Problem
from gpusim.result import directory, expect, paths
from gpusim.result.display import CheckedRows, Checks, html
from gpusim.result.schema import ALWAYS, SCHEMA_VERSION, TABLES
from gpusim.result.tables import Tables, build
from gpusim.result.verify import verify

if TYPE_CHECKING:
    import pandas as pd

    from gpusim.rundata import RunData
    from gpusim.scenario.schema import Scenario

SUMMARY = "summary.json"
SCENARIO = "scenario.yaml"
_RESULT = "a directory that `gpusim run` wrote: results/<name>/<id>, or its --out"


class Result:
    """What one run produced.

    `summary` is the contract of summary.json (`gpusim schema results`); `tables` maps names to DataFrames,
    made when first asked for; times are in nanoseconds there. `path` is the directory it was read from or
    saved to.
    """

    def __init__(
        self,
        summary: dict[str, Any],
        tables: Tables,
        *,
        scenario: Scenario | None = None,
        scenario_yaml: str | None = None,
        path: Path | None = None,
    ) -> None:
        self.summary = summary
        self.tables = tables
        self.path = path
        self._scenario = scenario
        self._scenario_yaml = scenario_yaml

    @classmethod
    def from_run(cls, scenario: Scenario, data: RunData) -> Result:
        """Wrap what a simulation left. Raises InvariantError when its breakdown does not add up."""
        from gpusim.result.summary import build as summarize

        return cls(summarize(scenario, data), build(data), scenario=scenario)

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read a result directory. Raises InputError when there is none or it is not one that this version
        reads.
        """
        where = Path(path)
        summary = _read_summary(where)
        found = {name: where / f"{name}.parquet" for name in TABLES}
        lost = [found[name] for name in ALWAYS if not found[name].is_file()]
        if lost:
            remedy = f"run {where / SCENARIO} again"
            raise InputError(
                [Problem("is missing from the result", file=str(file), legal=remedy) for file in lost]
            )
        tables = Tables({name: _reader(file) for name, file in found.items() if file.is_file()})
        text = _read_text(where / SCENARIO)
        return cls(summary, tables, scenario_yaml=text, path=where)

    def save(self, path: str | Path, *, extras: Callable[[Path], object] | None = None) -> Path:
        """Write the directory, whole or not at all, in the place of an older result.

        `extras` is called with the unfinished directory to put more files (pictures) into it. Returns the
        path. Raises InputError when it cannot be written.
        """
        import pyarrow as pa
        from pyarrow import parquet

        with directory.whole(Path(path)) as partial:
            if extras is not None:  # first: what they wrote may stand in the summary
                extras(partial)
            (partial / SUMMARY).write_text(self.to_json() + "\n", encoding="utf-8")
            self._save_scenario(partial)
            for name, frame in self.tables.items():
                table = pa.Table.from_pandas(frame, preserve_index=False)
                parquet.write_table(table, partial / f"{name}.parquet", compression="zstd")
        self.path = Path(path)
        return self.path

    def _save_scenario(self, folder: Path) -> None:
        """With the files that it names, so that it can be run again from there."""
        from gpusim.scenario import companions

        if self._scenario is not None:
            text, files = companions.copy_of(self._scenario)
        else:  # it was read back, with its files beside it
            text, files = self.scenario_yaml, companions.beside(self.path)
        companions.write_beside(folder, files)
        (folder / SCENARIO).write_text(text, encoding="utf-8")

    @property
    def scenario(self) -> Scenario:
        """The scenario with everything resolved, as it was run."""
        if self._scenario is None:
            from gpusim.scenario import loader

            if self.path is None:
                raise InputError(
                    [
                        Problem(
                            "this result has no scenario beside it",
                            legal="one that was loaded or has been saved",
                        )
                    ]
                )
            self._scenario = loader.load(self.path / SCENARIO)
        return self._scenario

    @property
    def scenario_yaml(self) -> str:
        """The text of scenario.yaml: every default and override put in."""
        if self._scenario_yaml is None:
            from gpusim.scenario import loader

            self._scenario_yaml = loader.resolved_yaml(self.scenario)
        return self._scenario_yaml

    @property
    def outcome(self) -> str:
        """`completed`, or the worst thing that happened to a process."""
        return str(self.summary["outcome"])

    def metric(self, path: str) -> paths.Value:
        """The value of a metric such as `steps.blur[1:100].duration_ns.mean`; see `gpusim.result.paths`.

        Raises InputError, with the nearest metric that exists, for one that does not.
        """
        return paths.lookup(self.summary, path)

    def metrics(self) -> list[str]:
        """Every metric that this result has (slices and statistics of steps are legal beside them)."""
        return list(paths.names(self.summary))

    def check(self, rows: Iterable[expect.ExpectRow] | None = None) -> CheckedRows:
        """Expected against simulated: `rows`, by default those of the scenario's `expect`."""
        return CheckedRows(expect.check(self.summary, self.scenario.expect if rows is None else rows))

    def verify(self) -> Checks:
        """Recompute what must hold in any result: sums, tilings, bytes that went in and came out."""
        return Checks(verify(self.summary, self.tables))

    def movers(self, bins: int = 24) -> pd.DataFrame:
        """Who moved data over time: file requests, migrations and copies; see `gpusim.result.movers`."""
        from gpusim.result.movers import movers

        return movers(self, bins)

    def to_json(self) -> str:
        """summary.json as text."""
        return json.dumps(self.summary, indent=2, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return f"<Result {self.summary['scenario']}: {self.summary['answer']['text']}>"

    def _repr_html_(self) -> str:
        return html(self.summary)


def _read_summary(where: Path) -> dict[str, Any]:
    file = where / SUMMARY
    if not where.exists():
        raise InputError([Problem("there is no such result directory", legal=_RESULT, file=str(where))])
    if not file.is_file():
        hint = (
            "it holds the points of a sweep"
            if (where / "points.parquet").exists()
            else f"it has no {SUMMARY}"
        )
        raise InputError(
            [Problem(f"is not the result directory of a run: {hint}", legal=_RESULT, file=str(where))]
        )
    try:
        summary = json.loads(_read_text(file))
    except ValueError as error:
        raise InputError(
            [
                Problem(
                    f"is not JSON: {error}",
                    legal="the file as `gpusim run` wrote it: run it again",
                    file=str(file),
                )
            ]
        ) from None
    version = summary.get("schema_version") if isinstance(summary, Mapping) else None
    if version != SCHEMA_VERSION:
        raise InputError(
            [
                Problem(
                    "has another schema_version",
                    file=str(file),
                    read=repr(version),
                    legal=str(SCHEMA_VERSION),
                )
            ]
        )
    return dict(summary)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(
            [
                Problem(
                    f"cannot be read: {why}",
                    legal="a file as `gpusim run` wrote it: run it again",
                    file=str(file),
                )
            ]
        ) from None


def _reader(file: Path) -> Callable[[], pd.DataFrame]:
    def read() -> pd.DataFrame:
        import pandas as pd
        import pyarrow as pa

        try:
            return pd.read_parquet(file)
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                [
                    Problem(
                        f"cannot be read: {error}",
                        legal="a file as `gpusim run` wrote it: run it again",
                        file=str(file),
                    )
                ]
            ) from None

    return read
