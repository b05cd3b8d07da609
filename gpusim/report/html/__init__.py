"""The result on one page: question, answer, reasons, pictures, provenance, limits.

The page is one file that asks the network for nothing (its content security policy forbids it). It reads in light and
in dark, on a phone and on paper; tables sort and charts over time zoom where scripts run.

| file | what |
|---|---|
| `page.py` | the order of the page |
| `sections.py`, `machine.py` | what each section says: of the run, and of the machine and the model |
| `reasons.py` | what would help, and what limits the run: from its spans |
| `sure.py` | the band of the answer, and what moves it |
| `charts.py` | pictures that scale with the window: SVG for lines, text beside it |
| `tables.py` | tables that sort by the numbers behind the words |
| `page.css`, `page.js` | the looks, and the two things that move |
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.report.html.page import page
from gpusim.result.directory import whole_file

if TYPE_CHECKING:
    from gpusim.report.why import Why
    from gpusim.result import Result

NAME = "report.html"

__all__ = ["NAME", "page", "save"]


def save(result: Result, directory: Path, found: Why | None = None) -> Path:
    """Write the page into `directory`; `found` is what its spans say, if that is known.

    Raises InputError when it cannot be written.
    """
    target = directory / NAME
    made = page(result, found)
    with whole_file(target) as partial:
        partial.write_text(made, encoding="utf-8")
    return target
