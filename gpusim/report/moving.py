"""Who moves data, and how much of it over time, as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from gpusim.report import parts
from gpusim.result import text
from gpusim.result.io_summary import IO_PATHS, OTHER_PATHS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpusim.result import Result

_LEVELS = " ▁▂▃▄▅▆▇█"
_ROWS = 12


def movers(result: Result) -> RenderableType | None:
    """Bytes, rate while moving, and the share of each mover over time; None unless files and others move data."""
    files = result.summary["io"]
    asked = sum(
        files.get(path, {}).get(way, {}).get("requests", 0)
        for path in IO_PATHS + OTHER_PATHS
        for way in ("read", "write")
    )
    if not asked:
        return None
    found = result.movers()
    if found["mover"].nunique() < 2:
        return None
    made = parts.table("", "bytes", "rate", "share of what moves, from start to end", right=(1, 2))
    totals = found.groupby("mover", sort=False)["bytes"].sum().sort_values(ascending=False, kind="stable")
    for mover in totals.index[:_ROWS]:
        own = found[found["mover"] == mover]
        active = own[own["bytes"] > 0]
        length = float(active["end_ns"].max() - active["start_ns"].min())
        bars = "".join(
            _LEVELS[min(8, int(share * 8 + 0.5)) or (1 if share > 0 else 0)] for share in own["share"]
        )
        made.add_row(
            str(mover),
            text.size(round(float(totals[mover]))),
            text.rate(float(totals[mover]) / length),
            Text(bars, style="#0072B2"),
        )
    if len(totals) > _ROWS:
        made.add_row(Text(f"and {len(totals) - _ROWS} more: Result.movers() has all", style="bright_black"))
    return made
