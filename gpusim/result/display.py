"""A result in a notebook: question, answer, one bar of where the time went, the steps. HTML with inline SVG
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from gpusim.result import text
from gpusim.result.colours import colour, text_on
from gpusim.result.groups import grouped
from gpusim.result.shares import label, largest, percentages

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
        f"{bound}{formula}{_bar(summary['attribution'])}{_steps(summary)}{_missing(summary)}</div>"
    )


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
    listed = escape("; ".join(summary["not_modelled"]))
    return f'<div style="opacity:0.7;font-size:90%">Not modelled: {listed}</div>'
