"""Writes docs/reference/what-would-help.md: predicted against simulated gains of all shipped scenarios.

It simulates every scenario several times, which takes a while: `python docs/gains.py [FILE...]`, by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import gpusim as gs
from gpusim.kinds import LABELS
from gpusim.study import gains, spans
from gpusim.study.gains import Gain

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "what-would-help.md"
MOST = 4  # suggestions that are simulated, of each scenario

HEAD = """# What would help: predicted and simulated

`gpusim explain` predicts how long a run would take if one kind of work were twice as fast, by timing its recorded spans
anew; `--verify` simulates that. This page holds both against each other for the scenarios that come with gpusim, at
their base point. Per scenario the {most} kinds that promise most were simulated. **First** says whether the best
suggestion is the best of them in the simulation too; **off** is the predicted makespan over the simulated one.

{verdict}

A prediction knows the run as it was recorded. It does not know that faults are served in another order, that a worker
which is free earlier throws other vectors away, or that requests which share a drive are fewer at a time if it is
faster. `python docs/gains.py` writes this page anew.

| scenario | suggestion | of the path | predicted | simulated | off | first |
| --- | --- | ---: | ---: | ---: | ---: | :---: |
"""


def measured(path: Path) -> tuple[float, list[Gain]] | None:
    """The makespan of a scenario and its best suggestions, simulated; None where the program does not complete."""
    result = gs.run(path, record="spans")
    found = spans.of(result) if result.outcome == "completed" else None
    if found is None:
        return None
    best = gains.predicted(result, found)[:MOST]
    return result.summary["makespan_ns"], gains.verified(result.scenario, best)


def rows(name: str, whole_ns: float, found: list[Gain]) -> tuple[list[str], bool, list[float]]:
    """Lines of the table, whether the first suggestion is right, and all errors."""
    simulated = [gain.resimulated_ns or 0.0 for gain in found]
    right = simulated[0] <= min(simulated) * (1 + 1e-6)
    errors = [gain.twice_ns / ns - 1 if ns else 0.0 for gain, ns in zip(found, simulated, strict=True)]
    lines = []
    for number, (gain, ns, error) in enumerate(zip(found, simulated, errors, strict=True)):
        cells = (
            f"`{name}`" if number == 0 else "",
            LABELS[gain.kind],
            f"{100 * gain.share:.1f} %",
            f"{100 * (gain.twice_ns / whole_ns - 1):+.1f} %",
            f"{100 * (ns / whole_ns - 1):+.1f} %",
            f"{100 * error:+.2f} %",
            ("yes" if right else "no") if number == 0 else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines, right, errors


def main() -> None:
    """All scenarios, or those named."""
    files = [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "scenarios").rglob("*.yaml"))
    table: list[str] = []
    rights: list[bool] = []
    errors: list[float] = []
    left: list[str] = []
    for file in files:
        name = file.resolve().relative_to(ROOT / "scenarios").with_suffix("").as_posix()
        found = measured(file)
        if found is None or not found[1]:
            left.append(f"`{name}`")
            continue
        lines, right, off = rows(name, *found)
        table += lines
        rights.append(right)
        errors += off
        print(
            f"{name}: first {'right' if right else 'wrong'}, off {100 * max(map(abs, off)):.2f} % at most",
            flush=True,
        )
    middle, worst = 100 * median(map(abs, errors)), 100 * max(map(abs, errors))
    verdict = (
        f"The first suggestion was right in {sum(rights)} of {len(rights)} scenarios. The predicted makespan was off "
        f"by {middle:.2f} % in the median and by {worst:.1f} % at most, over {len(errors)} predictions; "
        f"{sum(abs(error) <= 0.1 for error in errors)} of them are within 10 %."
    )
    if left:
        verdict += f" Left out, because their program does not complete: {', '.join(left)}."
    PAGE.write_text(HEAD.format(most=MOST, verdict=verdict) + "\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
