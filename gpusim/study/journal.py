"""The rows of a sweep as they come, so that one that was interrupted goes on where it was.

Beside the directory that the sweep will write, `NAME.rows.jsonl` has a line that says which scenario, machine, seed and
version it is about, and a line for each run that has ended. The same sweep reads it and leaves those runs out; a sweep
of anything else begins anew. It goes when the directory is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from gpusim.errors import InputError, Problem

_ABOUT = "sweep of"


class Journal:
    """`rows[key]` is there for those of the keys `wanted` that have been run. Raises InputError if it cannot write."""

    def __init__(self, target: Path, about: str, wanted: Iterable[str]) -> None:
        self.file = target.with_name(f"{target.name}.rows.jsonl")
        self.rows: dict[str, Mapping[str, Any]] = {}
        self._about = about
        self._out: TextIO | None = None
        self._keep(set(wanted))

    def _keep(self, wanted: set[str]) -> None:
        """Read what an interrupted sweep has left; the last line may have been cut off."""
        try:
            lines = self.file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return
        read = [_parsed(line) for line in lines]
        if not read or read[0] != {_ABOUT: self._about}:
            return
        for entry in read[1:]:
            if entry is not None and entry.get("key") in wanted:
                self.rows[entry["key"]] = entry["row"]

    def __enter__(self) -> Journal:
        return self

    def add(self, key: str, row: Mapping[str, Any]) -> None:
        """Write a row down, at once."""
        try:
            if self._out is None:
                self._out = self._begun()
            self.rows[key] = row
            self._write(self._out, key, row)
        except OSError as error:
            raise self._refused(error) from None

    def _begun(self) -> TextIO:
        """The file with what is known already, whole lines only, open for more."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_name(f".{self.file.name}.partial")
        with partial.open("w", encoding="utf-8") as out:
            out.write(json.dumps({_ABOUT: self._about}) + "\n")
            for key, row in self.rows.items():
                self._write(out, key, row)
        partial.replace(self.file)
        return self.file.open("a", encoding="utf-8")

    @staticmethod
    def _write(out: TextIO, key: str, row: Mapping[str, Any]) -> None:
        out.write(json.dumps({"key": key, "row": dict(row)}) + "\n")
        out.flush()

    def done(self) -> None:
        """All rows are elsewhere now."""
        self._close()
        self.file.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._out is not None:
            self._out.close()
            self._out = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if isinstance(error, KeyboardInterrupt) and self.rows and self.file.exists():
            error.add_note(
                f"{len(self.rows)} runs are kept in {self.file}: the same command goes on from there"
            )

    def _refused(self, error: OSError) -> InputError:
        return InputError(
            [
                Problem(
                    f"cannot be written: {error.strerror}",
                    legal="--out with another directory",
                    file=str(self.file),
                )
            ]
        )


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        read = json.loads(line)
    except json.JSONDecodeError:
        return None
    return read if isinstance(read, dict) else None
