"""Which way file requests went, why, and what limited them: a table for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from gpusim.report import parts
from gpusim.result import text
from gpusim.result.io_summary import FULL, IO_PATHS, OTHER_PATHS
from gpusim.result.shares import label

if TYPE_CHECKING:
    from rich.console import RenderableType

_DIM = "bright_black"
_REASONS = 6


def io_paths(summary: parts.Summary) -> RenderableType | None:
    """One row for each path and direction that requests took; None when there were none."""
    used = list(_used(summary["io"]))
    if not used:
        return None
    made = parts.table(
        "file I/O",
        "requests",
        "bytes",
        "rate",
        "p50",
        "p99",
        "first",
        "CPU",
        "limited by",
        right=(1, 2, 3, 4, 5, 6, 7),
    )
    lines: list[Text] = []
    for name, block in used:
        latency = block["latency_ns"]
        made.add_row(
            name,
            text.count(block["requests"]),
            text.size(block["bytes"]),
            text.rate(block["bandwidth_gb_per_s"]),
            text.time(latency["p50"]),
            text.time(latency["p99"]),
            text.time(block["first_call_ns"]),
            "–" if block["cpu_ns"] is None else text.time(block["cpu_ns"]),
            limit_of(block),
        )
        lines += [Text(f"{name}: {line}", style=_DIM) for line in _details(block)]
    return Group(made, *lines)


def _used(io: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in IO_PATHS + OTHER_PATHS:
        for way, block in io.get(path, {}).items():
            if block["requests"] or block["errors"]:
                yield f"{path} {way}", block


def limit_of(block: dict[str, Any]) -> str:
    """What held the requests of a path back, and how full it was; or how few were in flight."""
    limit = block["limited_by"]
    if limit is None:
        return "–"
    used = block["limits"].get(limit, 0.0)
    if limit == "submitter" and used < FULL and block["in_flight"] is not None:
        return f"submitter, {block['in_flight']:.3g} in flight"
    return f"{limit}, {text.percent(used)}"


def _details(block: dict[str, Any]) -> Iterator[str]:
    told = [(reason, count) for reason, count in block["reasons"].items() if reason != "accepted"]
    told.sort(key=lambda item: -item[1])
    for reason, count in told[:_REASONS]:
        yield f"{text.count(count)} because: {reason}"
    if block["errors"]:
        yield "errors: " + ", ".join(f"{text.count(count)} {code}" for code, count in block["errors"].items())
    if block["time"]:
        largest = sorted(block["time"].items(), key=lambda item: -item[1])[:4]
        yield "spent on " + ", ".join(f"{label(kind)} {text.percent(part)}" for kind, part in largest)
