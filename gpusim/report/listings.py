"""Tables on a terminal that are not about one run: sweeps, validation, profiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from gpusim import quantity
from gpusim.report import parts
from gpusim.report.fitting import Fitting
from gpusim.result import text
from gpusim.result.paths import unit_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from gpusim.rundata import Parameter
    from gpusim.scenario.profiles import Profile
    from gpusim.study.validate import Validated

#: the values of a point's axes, and its rows
_Groups = list[tuple[tuple[Any, ...], Any]]

_MOST_ROWS = 60
_MOST_METRICS = 4
_DIM = "bright_black"
_GRADES = {"measured": "green", "datasheet": "green", "fitted": "yellow", "assumed": "red"}


def sweep(found: pd.DataFrame, axes: Sequence[str]) -> list[RenderableType]:
    """One line per point: outcome, makespan (mean and spread over replications), the steps that vary most; and which
    point is best.
    """
    groups = [
        (tuple(values), rows)
        for values, rows in found.groupby(list(axes), sort=False, dropna=False, observed=True)
    ]
    chosen = _varying(found)
    names = short(axes)
    forms = [
        partial(_points, groups, [names[axis] for axis in axes], chosen[:count])
        for count in range(len(chosen), -1, -1)
    ]
    lines: list[RenderableType] = [Fitting(*forms)]
    verdict = best_and_worst(groups, [names[axis] for axis in axes])
    return [*lines, "", Text(verdict, style="bold")] if verdict else lines


def _points(groups: _Groups, axes: Sequence[str], chosen: Sequence[str]) -> RenderableType:
    repeated = max(len(rows) for _, rows in groups) > 1
    right = range(len(axes) + 1, len(axes) + 2 + len(chosen))
    heads = [name.removeprefix("steps.").replace(".duration_ns", "") for name in chosen]
    made = parts.table(*axes, "outcome", "makespan", *heads, right=list(right))
    for number, (values, rows) in enumerate(groups):
        if number == _MOST_ROWS:
            made.add_row(Text(f"and {len(groups) - number} more points in points.parquet", style=_DIM))
            break
        outcomes = sorted(set(rows["outcome"]))
        style = "green" if outcomes == ["completed"] else "bold red"
        cells = [_mean(rows[name], name, repeated) for name in ("makespan_ns", *chosen)]
        made.add_row(*map(str, values), Text(", ".join(outcomes), style=style), *cells)
    return made


def short(axes: Sequence[str]) -> dict[str, str]:
    """Each path with as few of its last parts as tell it from the others: `parameters.prefetch` -> `prefetch`."""
    made: dict[str, str] = {}
    for axis in axes:
        pieces = axis.split(".")
        made[axis] = axis
        for count in range(1, len(pieces)):
            ending = ".".join(pieces[-count:])
            if not any(other != axis and f".{other}".endswith(f".{ending}") for other in axes):
                made[axis] = ending
                break
    return made


def best_and_worst(groups: _Groups, axes: Sequence[str]) -> str | None:
    """Which point is best, which is worst, and by how much: by the answer's metric where all points have the same
    time or rate as answer, else by the makespan. None where fewer than two points complete.
    """
    done = [(values, rows) for values, rows in groups if set(rows["outcome"]) == {"completed"}]
    if len(done) < 2:
        return None
    metric, means = _ranked_by(done)
    most = unit_of(metric) == "GB/s"
    order = sorted(range(len(done)), key=lambda at: -means[at] if most else means[at])
    first, last = order[0], order[-1]
    if means[first] == means[last]:
        return f"All points are alike: {_said(metric, means[first])}."

    def point(at: int) -> str:
        return ", ".join(f"{axis}={value}" for axis, value in zip(axes, done[at][0], strict=True))

    low, high = sorted((means[first], means[last]))
    factor = f", {high / low:.3g} times {'less' if most else 'as long'}" if low > 0 else ""
    by = "" if metric == "makespan_ns" else f" by {metric}"
    words = f"Best{by}: {point(first)} with {_said(metric, means[first])}. "
    words += f"Worst: {point(last)} with {_said(metric, means[last])}{factor}."
    left = len(groups) - len(done)
    return words + (f" {left} of {len(groups)} points did not complete." if left else "")


def _ranked_by(done: _Groups) -> tuple[str, list[float]]:
    metrics = {metric for _, rows in done for metric in rows.get("answer.metric", ["-"])}
    metric = str(next(iter(metrics)))
    if len(metrics) == 1 and metric != "-" and unit_of(metric) in ("ns", "GB/s"):
        means = [float(rows["answer.value"].mean()) for _, rows in done]
        if all(math.isfinite(mean) for mean in means):
            return metric, means
    return "makespan_ns", [float(rows["makespan_ns"].mean()) for _, rows in done]


def _said(metric: str, value: float) -> str:
    words = text.value(value, unit_of(metric))
    return f"a makespan of {words}" if metric == "makespan_ns" else words


def _varying(found: pd.DataFrame) -> list[str]:
    """The durations and rates of steps that the grid changes most; those say what a what-if does."""
    spread: dict[str, float] = {}
    for name in found.columns:
        if name.startswith("steps.") and ("duration_ns" in name) and not name.endswith((".min", ".max")):
            values = found[name].dropna()
            if len(values) and values.min() > 0:
                spread[str(name)] = float(values.max() - values.min())
    ordered = sorted(spread, key=lambda name: -spread[name])
    return [name for name in ordered if spread[name] > 0][:_MOST_METRICS]


def _mean(values: pd.Series[Any], name: str, repeated: bool) -> str:
    known = values.dropna()
    if known.empty:
        return "–"
    mean = float(known.mean())
    words = text.value(mean, unit_of(name))
    if not repeated or not mean or known.max() == known.min():
        return words
    return f"{words} ± {100 * float(known.max() - known.min()) / 2 / abs(mean):.1f} %"


def validation(validated: Sequence[Validated]) -> list[RenderableType]:
    """Measured against simulated, file by file, and the count at the end."""
    lines: list[RenderableType] = []
    rows = [row for one in validated for row in one.rows]
    for one in validated:
        head = Text(one.rows[0].scenario if one.rows else one.file.stem, style="bold")
        head.append(f"  {one.file}", style=_DIM)
        if one.outcome != "completed":
            head.append(f"  {one.outcome}", style="bold red" if one.died else _DIM)
        lines += [head, parts.checked(one.rows), ""]
    good = sum(row.ok for row in rows)
    predicted = [row for row in rows if row.kind == "predicted"]
    words = f"{good} of {len(rows)} rows within tolerance; {len(predicted)} of them are predictions"
    errors = sorted(abs(row.error) for row in predicted if row.error is not None)
    if errors:
        words += f", median error {100 * errors[len(errors) // 2]:.1f} %"
    lines.append(Text(words, style="bold green" if good == len(rows) else "bold red"))
    return lines


def profile_names(found: Mapping[str, Sequence[str]]) -> list[RenderableType]:
    """Every shipped profile by kind."""
    made = parts.table("", "")
    made.show_header = False
    for kind, names in found.items():
        made.add_row(Text(kind, style="bold"), ", ".join(names) or "–")
    hint = "gpusim profiles NAME shows every number of one; --yaml prints its file, to start one's own from"
    return [made, Text(hint, style=_DIM)]


def profile(found: Profile) -> list[RenderableType]:
    """Every number with its source and grade, then what is structure rather than number."""
    head = Text(found.name, style="bold")
    head.append(f"  one of the {found.kind}, version {found.version}", style=_DIM)
    lines: list[RenderableType] = [head]
    if found.tree.get("description"):
        lines.append(" ".join(str(found.tree["description"]).split()))
    lines += ["", *map(_number, found.parameters.values())]
    sockets = _sockets(found)
    if sockets:
        lines += ["", *sockets]
    links = _links(found)
    if links:
        lines += ["", Text("links: " + ", ".join(links))]
    return lines


def _number(parameter: Parameter) -> RenderableType:
    """Two lines: the number, and where it comes from."""
    line = Text(f"{parameter.path:34} ")
    line.append(f"{parameter.text:>14}  ", style="bold")
    line.append(f"{parameter.grade:9}", style=_GRADES.get(parameter.grade, ""))
    if parameter.range is not None:
        line.append("  " + " – ".join(_amount(bound, parameter.text) for bound in parameter.range))
    return Group(line, Padding(Text(parameter.source, style=_DIM), (0, 0, 0, 4)))


def _amount(number: float, like: str) -> str:
    """A number in base units as text in the manner of another of its kind: sizes as sizes, times as times."""
    from gpusim.scenario.profiles import amount

    found = amount(like)
    kind = "number" if found is None else found[1]
    write: dict[str, Callable[[float], str]] = {
        "size": quantity.format_size,
        "time": quantity.format_duration_ps,
        "rate": quantity.format_rate,
        "frequency": quantity.format_frequency,
    }
    return write[kind](number) if kind in write else f"{number:g}"


def _sockets(found: Profile) -> list[RenderableType]:
    """What each socket of a node owns, and whether it is a NUMA node."""
    sockets = (found.tree.get("fabric") or {}).get("sockets") or {}
    members = sockets.get("members") or ()
    lines: list[RenderableType] = []
    for number, socket in enumerate(members):
        if sockets.get("numa"):
            owns = [f"NUMA node {number}, 1/{len(members)} of the memory"]
        else:
            owns = ["all of the memory"] if number == 0 else []
        owns += [*(socket.get("gpus") or ()), *(socket.get("drives") or ())]
        lines.append(Text(f"socket {socket['name']}: {', '.join(owns)}"))
    return lines


def _links(found: Profile) -> list[str]:
    """The names of a node's links, as metrics use them."""
    if found.kind != "nodes":
        return []
    from gpusim.hardware.xgmi import pairs as xgmi_pairs

    tree = found.tree
    count = sum(int(entry.get("count", 1)) for entry in tree.get("gpus", []))
    names = [f"gpu[{index}].pcie.{direction}" for index in range(count) for direction in ("h2d", "d2h")]
    joined = str((tree.get("xgmi") or {}).get("joined") or "")
    for one, other, _ in xgmi_pairs(joined):
        names += [f"gpu[{one}].xgmi[{other}]", f"gpu[{other}].xgmi[{one}]"]
    fabric = tree.get("fabric") or {}
    for switch in fabric.get("switches") or ():
        names += [f"switch.{switch['name']}.{direction}" for direction in ("up", "down")]
    sockets = [socket["name"] for socket in (fabric.get("sockets") or {}).get("members") or ()]
    names += [f"socket.{one}.to.{other}" for one in sockets for other in sockets if one != other]
    for drive in tree.get("drives") or ():
        many = [str(number) for number in range(drive["count"])] if "count" in drive else [""]
        names += [
            f"{drive['name']}{number}.{direction}" for number in many for direction in ("read", "write")
        ]
    return names
