"""Pictures of a run, drawn to be shown in a talk: titles that state the finding, labels beside what they
name.

| name | shows |
|---|---|
| `latency` | the distribution of fault latencies, and what a mean fault's life consists of |
| `throughput` | what links and memories carry over time, under the steps of the program |
| `use` | how busy links, workers and engines are over time |
| `breakdown` | where the time went, for the whole run and for each step |

The same result gives the same bytes of PNG with the same matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.errors import InputError, Problem
from gpusim.report.plots import breakdown, latency, throughput, use
from gpusim.report.plots.theme import png, styled
from gpusim.result.directory import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpusim.result import Result

#: name -> (what draws it, what a result must have recorded to be drawn)
PLOTS: dict[str, tuple[Callable[[Result], Figure | None], str]] = {
    "latency": (latency.draw, "no fault was served"),
    "throughput": (throughput.draw, "nothing was carried over any link or memory"),
    "use": (use.draw, "no link, worker or engine was in use"),
    "breakdown": (breakdown.draw, "no breakdown was recorded"),
}


def _nothing(name: str) -> Problem:
    others = ", ".join(other for other in PLOTS if other != name)
    return Problem(f"there is no {name} to draw: {PLOTS[name][1]}", legal=f"one of {others}, or another run")


def figure(result: Result, name: str) -> Figure:
    """One picture as a matplotlib Figure. Raises InputError when the run has nothing of the kind."""
    draw, _ = PLOTS[name]
    with styled():
        made = draw(result)
    if made is None:
        raise InputError([_nothing(name)])
    return made


def save(result: Result, directory: Path) -> tuple[list[Path], list[str]]:
    """Draw all into `directory`: the files written, and why there is none of a picture without content."""
    written, skipped = [], []
    for name, (_, missing) in PLOTS.items():
        target = _save(result, directory, name)
        if target is None:
            skipped.append(f"no {name}: {missing}")
        else:
            written.append(target)
    return written, skipped


def save_one(result: Result, directory: Path, name: str) -> Path:
    """Draw one into `directory`. Raises InputError when there is nothing to draw or it cannot be written."""
    target = _save(result, directory, name)
    if target is None:
        raise InputError([_nothing(name)])
    return target


def _save(result: Result, directory: Path, name: str) -> Path | None:
    with styled():
        made = PLOTS[name][0](result)
        if made is None:
            return None
        picture = png(made)
    target = directory / f"{name}.png"
    with whole_file(target) as partial:
        partial.write_bytes(picture)
    return target
