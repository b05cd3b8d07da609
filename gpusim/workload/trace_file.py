"""Access traces: a CSV file says which wavefront touches which page, in which order.

Columns, by the names in its first line: `kernel` (a kernel of the scenario), `wavefront` (0, 1, ...), `order` or `time`
(a number; accesses of a wavefront are done by it, gaps in time are not replayed), `page` or `address` (counted from the
start of the launch's first buffer, through its buffers in the order in which the launch names them; hexadecimal with
0x), and `kind` (read, write, atomic or execute). Other columns are refused. Lines may come in any order.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from pathlib import Path

from gpusim.errors import InputError, Problem
from gpusim.hardware.access import AccessKind

_COLUMNS = ("kernel", "wavefront", "order or time", "page or address", "kind")
_MOST_PROBLEMS = 20
_MOST_PAGE = 1 << 36


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a wavefront; `page` counts through the launch's buffers, `line` is where the file says it."""

    page: int
    kind: AccessKind
    line: int


#: kernel -> wavefront -> its accesses in order
Trace = dict[str, dict[int, list[Access]]]


@lru_cache(maxsize=8)
def _read(path: Path, changed_ns: int) -> Trace:
    with path.open(newline="", encoding="utf-8-sig") as stream:  # spreadsheets begin with a byte order mark
        return _parse(stream.read().splitlines(), str(path))


def read_trace(name: str, folder: Path) -> Trace:
    """Read a trace file; `folder` is where a relative name begins.

    Raises InputError that names the file and each bad line.
    """
    path = folder / name
    if "\0" in name:
        raise InputError(
            [Problem("not a file name", read=repr(name), legal="a CSV file with an access a line")]
        )
    try:
        return _read(path, path.stat().st_mtime_ns)
    except csv.Error as error:
        raise InputError(
            [Problem(f"not a CSV file: {error}", file=str(path), legal="short cells, an access a line")]
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            [Problem("not a text in UTF-8", legal="a CSV file with an access a line", file=str(path))]
        ) from error
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(
            [Problem(reason, file=str(path), legal="a CSV file with an access a line")]
        ) from error


def _parse(lines: list[str], file: str) -> Trace:
    rows = csv.reader(lines)
    header = [cell.strip().lower() for cell in next(rows, [])]
    where = _columns(header, file)
    found: dict[str, dict[int, list[tuple[float, Access]]]] = {}
    problems: list[Problem] = []
    for cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        line = rows.line_num
        try:
            if len(cells) != len(header):
                raise _Bad(
                    "the number of cells is not that of the columns", ",".join(cells), ",".join(header)
                )
            kernel = cells[where["kernel"]].strip()
            wavefront = _number(cells[where["wavefront"]], "wavefront")
            order = _order(cells[where["order"]])
            page = _page(cells[where["place"]], in_bytes=header[where["place"]] == "address")
            kind = _kind(cells[where["kind"]])
        except _Bad as bad:
            problems.append(Problem(bad.message, read=repr(bad.read), legal=bad.legal, file=file, line=line))
            if len(problems) == _MOST_PROBLEMS:
                break
            continue
        found.setdefault(kernel, {}).setdefault(wavefront, []).append((order, Access(page, kind, line)))
    if problems:
        raise InputError(problems)
    if not found:
        raise InputError([Problem("no accesses", file=file, legal="a line for each access after the header")])
    return {
        kernel: {
            wavefront: [access for _, access in sorted(accesses, key=lambda entry: entry[0])]
            for wavefront, accesses in sorted(waves.items())
        }
        for kernel, waves in found.items()
    }


class _Bad(Exception):
    def __init__(self, message: str, read: str, legal: str) -> None:
        super().__init__(message)
        self.message, self.read, self.legal = message, read, legal


def _columns(header: list[str], file: str) -> dict[str, int]:
    """Where each column is. Raises InputError for the first line."""
    names = {"kernel": ("kernel",), "wavefront": ("wavefront",), "order": ("order", "time")}
    names |= {"place": ("page", "address"), "kind": ("kind",)}
    where: dict[str, int] = {}
    for column, words in names.items():
        present = [index for index, word in enumerate(header) if word in words]
        if len(present) != 1:
            message = f"needs one column {' or '.join(words)}"
            legal = ", ".join(_COLUMNS)
            raise InputError(
                [Problem(message, read=",".join(header) or "nothing", legal=legal, file=file, line=1)]
            )
        where[column] = present[0]
    if len(header) != len(where):
        other = next(word for index, word in enumerate(header) if index not in where.values())
        raise InputError(
            [Problem("unknown column", read=repr(other), legal=", ".join(_COLUMNS), file=file, line=1)]
        )
    return where


def _number(text: str, what: str) -> int:
    try:
        number = int(text.strip(), 0)
    except ValueError:
        number = -1
    if number < 0:
        raise _Bad(f"not a {what}", text, "0, 1, 2, ...")
    return number


def _order(text: str) -> float:
    try:
        order = float(text)
    except ValueError:
        order = float("nan")
    if not isfinite(order):
        raise _Bad("not a number to order accesses by", text, "e.g. 17 or 0.25")
    return order


def _page(text: str, *, in_bytes: bool) -> int:
    what = "address" if in_bytes else "page"
    try:
        number = int(text.strip(), 16 if text.strip().lower().startswith("0x") else 10)
    except ValueError:
        number = -1
    page = number >> 12 if in_bytes else number
    if not 0 <= page < _MOST_PAGE:
        raise _Bad(f"not a {what} within the launch's buffers", text, "e.g. 17, or 0x11 in hexadecimal")
    return page


def _kind(text: str) -> AccessKind:
    try:
        return AccessKind(text.strip().lower())
    except ValueError:
        raise _Bad("not a kind of access", text, ", ".join(AccessKind)) from None
