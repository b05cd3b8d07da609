"""Tables of a page: words for people, the numbers behind them for sorting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell says, and the number that it is sorted by; `html` is said as it is."""

    words: str = ""
    number: float | None = None
    html: str = ""


def table(
    heads: Sequence[str], rows: Iterable[Sequence[Cell | str]], *, right: Sequence[int] = (), name: str
) -> str:
    """A table whose columns sort when their heads are pressed; `right` are columns of numbers."""
    head = "".join(
        f'<th scope="col"{_right(index, right)}><button type="button">{escape(title)}</button></th>'
        for index, title in enumerate(heads)
    )
    body = []
    for row in rows:
        cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
        body.append("<tr>" + "".join(_cell(i, cell, right) for i, cell in enumerate(cells)) + "</tr>")
    return (
        f'<div class="scroll"><table aria-label="{escape(name)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(index: int, cell: Cell, right: Sequence[int]) -> str:
    key = "" if cell.number is None else f' data-n="{cell.number:.12g}"'
    return f"<td{_right(index, right)}{key}>{cell.html or escape(cell.words)}</td>"


def _right(index: int, right: Sequence[int]) -> str:
    return ' class="r"' if index in right else ""
