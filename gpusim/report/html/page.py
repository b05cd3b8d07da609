"""The order of the page."""

from __future__ import annotations

from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from gpusim.report import why
from gpusim.report.html import machine, reasons, sections
from gpusim.report.html.sure import sure

if TYPE_CHECKING:
    from gpusim.report.why import Why
    from gpusim.result import Result

#: no network, no forms, no frames: only what is in the page
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def page(result: Result, found: Why | None = None) -> str:
    """The whole page as text; the same result gives the same page. `found` is what its spans say, if that is known."""
    summary = result.summary
    if found is None:
        found = why.why(result)
    content = "".join(
        (
            sections.head(result),
            sure(result),
            sections.breakdown(result),
            reasons.helps(result, found),
            reasons.limited(result, found),
            sections.steps(result),
            sections.timeline(result),
            sections.faults(result),
            sections.files(result),
            sections.moved(result),
            machine.expected(result),
            machine.limits(result),
            machine.provenance(result),
            machine.scenario(result),
        )
    )
    foot = f"{summary['scenario']} · seed {summary['seed']} · simulated by gpusim {summary['version']}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(summary['scenario'])} – gpusim</title><style>{_text('page.css')}</style></head>"
        f"<body><main>{content}<footer>{escape(foot)}</footer></main>"
        f"<script>{_text('page.js')}</script></body></html>\n"
    )


def _text(name: str) -> str:
    return resources.files("gpusim.report.html").joinpath(name).read_text(encoding="utf-8")
