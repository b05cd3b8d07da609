"""Results in a notebook: question, answer, one bar of where the time went, the steps; and the lists and tables that a
result gives. HTML with inline SVG only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gpusim.result import text
from gpusim.result.colours import colour, text_on
from gpusim.result.expect import Checked
from gpusim.result.groups import grouped
from gpusim.result.schema import ROWS
from gpusim.result.shares import label, largest, percentages
from gpusim.result.uncertainty import band_words
from gpusim.result.verify import Check

_WIDTH, _HEIGHT = 760, 34
_ROWS = 12
_CHARACTER = 7.2  # width of a character of the bar's labels, in the SVG's units


def html(summary: Mapping[str, Any]) -> str:
    """The card. Colours of text are inherited, so that it reads in light and in dark notebooks."""
    outcome = summary["outcome"]
    state = "" if outcome == "completed" else f' <b style="color:#D55E00">{escape(outcome)}</b>'
    question = f"<div><i>{escape(summary['question'])}</i></div>" if summary["question"] else ""
    bound = f"<div>Bound by {escape(summary['bound_by'])}.</div>" if summary["bound_by"] else ""
    formula = f"<div><code>{escape(summary['formula'])}</code></div>" if summary["formula"] else ""
    said = escape(summary["answer"]["text"].replace("`", ""))
    head = f"<b>{escape(summary['scenario'])}</b>{state} · {text.time(summary['makespan_ns'])} simulated"
    return (
        f'<div style="max-width:780px;line-height:1.5"><div>{head}</div>{question}'
        f'<div style="font-size:115%;font-weight:600">{said}</div>'
        f"{bound}{formula}{_sure(summary)}{_bar(summary['attribution'])}{_steps(summary)}{_missing(summary)}</div>"
    )


def _sure(summary: Mapping[str, Any]) -> str:
    """The band of the answer, where it was asked for, and the numbers that it hangs on most."""
    found = summary.get("uncertainty")
    if found is None:
        return ""
    hangs = ", ".join(one["path"] for one in found["parameters"][:3])
    words = f"{band_words(found)}{f'; it hangs on {hangs}' if hangs else ''}."
    return f"<div>{escape(words)}</div>"


class CheckedRows(list[Checked]):
    """Expected against simulated; a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (
                "ok" if row.ok else "<b>OUT</b>",
                escape(row.metric),
                escape(text.value(row.measured, row.unit)),
                escape(text.value(row.simulated, row.unit)),
                "–" if row.error is None else f"{100 * row.error:+.1f} %",
                escape(row.tolerance or "–"),
                escape(row.source),
            )
            for row in self
        ]
        return listed(("", "metric", "expected", "simulated", "error", "within", "source"), rows)


class Checks(list[Check]):
    """Laws that a result must keep; a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [("ok" if one.ok else "<b>BROKEN</b>", escape(one.law), escape(one.detail)) for one in self]
        return listed(("", "law", "numbers"), rows)


def tables_html(made: Mapping[str, int | None]) -> str:
    """The tables of a result: `made` says how many rows each has, None if nobody has asked for it yet."""
    rows = [
        (
            f"<code>{escape(name)}</code>",
            "not made yet" if count is None else text.count(count),
            escape(ROWS.get(name, "")),
        )
        for name, count in made.items()
    ]
    return listed(("table", "rows", "one row is"), rows)


def listed(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    left = ' style="text-align:left"'
    head = "".join(f"<th{left}>{name}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td{left}>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _bar(attribution: Mapping[str, float] | None) -> str:
    if not attribution:
        return ""
    parts = largest(attribution, 8, 0.005)
    shown = percentages(parts)
    blocks, legend, at = [], [], 0.0
    for kind, fraction in parts.items():
        width, fill = fraction * _WIDTH, colour(kind)
        words = f"{label(kind)} {shown[kind]:.1f} %"
        inside = len(words) * _CHARACTER + 8 < width
        blocks.append(
            f'<rect x="{at:.2f}" y="0" width="{width:.2f}" height="{_HEIGHT}" fill="{fill}" stroke="#fff">'
            f"<title>{escape(words)}</title></rect>"
        )
        if inside:
            blocks.append(
                f'<text x="{at + 6:.2f}" y="22" font-size="13" fill="{text_on(fill)}">{escape(words)}</text>'
            )
        else:
            legend.append(
                f'<span style="white-space:nowrap"><b style="color:{fill}">■</b> {escape(words)}</span>'
            )
        at += width
    picture = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" style="max-width:{_WIDTH}px" role="img" '
        f'aria-label="where the time went" font-family="sans-serif">{"".join(blocks)}</svg>'
    )
    words = " &nbsp; ".join(legend)
    return f'<div style="margin-top:6px">{picture}<div style="font-size:90%">{words}</div></div>'


def _steps(summary: Mapping[str, Any]) -> str:
    groups = grouped(summary["steps"], split_first=True)
    if not groups:
        return ""
    rows = []
    for group in groups[:_ROWS]:
        cells = (
            escape(group.label),
            escape(group.kind),
            text.time(group.mean_ns),
            text.size(group.bytes_each) if group.bytes_each else "–",
            text.rate(group.bandwidth_gb_per_s),
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    more = f"<div>and {len(groups) - _ROWS} more</div>" if len(groups) > _ROWS else ""
    head = "".join(f"<th>{name}</th>" for name in ("step", "verb", "time", "bytes", "rate"))
    return f'<table style="margin-top:6px"><tr>{head}</tr>{"".join(rows)}</table>{more}'


def _missing(summary: Mapping[str, Any]) -> str:
    if not summary["not_modelled"]:
        return ""
    missing = escape("; ".join(summary["not_modelled"]))
    return f'<div style="opacity:0.7;font-size:90%">Not modelled: {missing}</div>'
