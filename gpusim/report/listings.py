"""Tables on a terminal that are not about one run: sweeps, validation, profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from gpusim import quantity
from gpusim.report import parts
from gpusim.result import text
from gpusim.result.paths import unit_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from gpusim.rundata import Parameter
    from gpusim.scenario.profiles import Profile
    from gpusim.study.validate import Validated

_MOST_ROWS = 60
_MOST_METRICS = 4
_DIM = "bright_black"
_GRADES = {"measured": "green", "datasheet": "green", "fitted": "yellow", "assumed": "red"}


def sweep(found: pd.DataFrame, axes: Sequence[str]) -> list[RenderableType]:
    """One line per point: outcome, makespan (mean and spread over replications), the steps that vary most."""
    groups = found.groupby(list(axes), sort=False, dropna=False, observed=True)
    chosen = _varying(found)
    repeated = bool(groups.size().max() > 1)
    right = range(len(axes) + 1, len(axes) + 2 + len(chosen))
    made = parts.table(*axes, "outcome", "makespan_ns", *chosen, right=list(right))
    for number, (values, rows) in enumerate(groups):
        if number == _MOST_ROWS:
            made.add_row(Text(f"and {len(groups) - number} more points in points.parquet", style=_DIM))
            break
        point: tuple[Any, ...] = tuple(values)
        outcomes = sorted(set(rows["outcome"]))
        style = "green" if outcomes == ["completed"] else "bold red"
        cells = [_mean(rows[name], name, repeated) for name in ("makespan_ns", *chosen)]
        made.add_row(*map(str, point), Text(", ".join(outcomes), style=style), *cells)
    return [made]


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
