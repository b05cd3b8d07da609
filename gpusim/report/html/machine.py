"""What the page says of the machine and the model: expectations, provenance of every number, what is left out."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from gpusim.report.html.sections import section
from gpusim.report.html.tables import Cell, table
from gpusim.result import text

if TYPE_CHECKING:
    from gpusim.result import Result

GRADES = ("measured", "datasheet", "fitted", "assumed")


def expected(result: Result) -> str:
    """Measured or predicted values beside the simulated ones."""
    if not result.scenario.expect:
        return ""
    rows = [
        (
            Cell("ok" if row.ok else "OUT", float(row.ok), "" if row.ok else '<span class="bad">OUT</span>'),
            row.metric,
            text.value(row.measured, row.unit),
            text.value(row.simulated, row.unit),
            Cell("–" if row.error is None else f"{100 * row.error:+.1f} %", row.error),
            row.tolerance or "–",
            row.kind,
            row.source,
        )
        for row in result.check()
    ]
    heads = ("", "metric", "expected", "simulated", "error", "within", "kind", "source")
    return section("Held against", table(heads, rows, right=(2, 3, 4, 5), name="expected values"))


def provenance(result: Result) -> str:
    """Where each number of the machine comes from, and how many have which grade."""
    if "parameters" not in result.tables or result.tables["parameters"].empty:
        return ""
    rows = result.tables["parameters"]
    counts = rows["grade"].astype(str).value_counts()
    badges = " ".join(
        f'<span class="grade {grade}">{int(counts[grade])} {grade}</span>'
        for grade in GRADES
        if grade in counts
    )
    body = []
    for path, value, source, grade, low, high in zip(
        *(rows[name].tolist() for name in ("path", "value", "source", "grade", "low", "high")), strict=True
    ):
        span = f"{low} to {high}" if isinstance(low, str) else "–"
        badge = f'<span class="grade {escape(str(grade))}">{escape(str(grade))}</span>'
        order = float(GRADES.index(grade)) if grade in GRADES else None
        body.append((path, value, Cell(str(grade), order, badge), span, source))
    made = table(("number", "value", "grade", "range", "source"), body, name="numbers of the machine")
    return section(f"Where the {len(rows)} numbers come from", f"<p>{badges}</p>", made, folded=True)


def limits(result: Result) -> str:
    """Notes, and what is not modelled."""
    summary = result.summary
    notes = "".join(f"<li>{escape(note)}</li>" for note in summary["notes"])
    missing = "".join(f"<li>{escape(what)}</li>" for what in summary["not_modelled"])
    return section("To know", f"<ul>{notes}</ul>" if notes else "") + section(
        "Not modelled", f"<ul>{missing}</ul>" if missing else ""
    )


def scenario(result: Result) -> str:
    """The scenario with everything resolved."""
    return section("The scenario", f"<pre>{escape(result.scenario_yaml)}</pre>", folded=True)
