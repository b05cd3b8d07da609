"""Steps gathered by name, so that a hundred repeats on four ranks are one line of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpusim.result.paths import rounds_of

#: verbs that only hold other steps
CONTAINERS = ("repeat", "parallel")


def working(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The steps that do something themselves: pictures would show the time of containers twice."""
    return [row for row in steps if row["kind"] not in CONTAINERS]


@dataclass(frozen=True, slots=True)
class StepGroup:
    """All steps of one name and verb; `attribution` weights each step by its duration."""

    name: str
    kind: str
    rows: tuple[Mapping[str, Any], ...]

    @property
    def total_ns(self) -> float:
        return float(sum(row["duration_ns"] for row in self.rows))

    @property
    def mean_ns(self) -> float:
        return self.total_ns / len(self.rows)

    @property
    def least_ns(self) -> float:
        return float(min(row["duration_ns"] for row in self.rows))

    @property
    def most_ns(self) -> float:
        return float(max(row["duration_ns"] for row in self.rows))

    @property
    def processes(self) -> int:
        """How many processes took part."""
        return len({row["process"] for row in self.rows})

    @property
    def bytes_each(self) -> int:
        moved: int = sum(row["bytes"] for row in self.rows)
        return round(moved / len(self.rows))

    @property
    def bandwidth_gb_per_s(self) -> float | None:
        moved = sum(row["bytes"] for row in self.rows)
        return moved / self.total_ns if moved and self.total_ns else None

    @property
    def start_ns(self) -> float:
        return float(min(row["start_ns"] for row in self.rows))

    @property
    def end_ns(self) -> float:
        return float(max(row["end_ns"] for row in self.rows))

    @property
    def label(self) -> str:
        """`blur x100`; the plain name when it ran once."""
        return self.name if len(self.rows) == 1 else f"{self.name} ×{len(self.rows)}"

    @property
    def attribution(self) -> dict[str, float] | None:
        """Fractions of the group's time by kind; None when no step of it has a breakdown."""
        known = [row for row in self.rows if row["attribution"] is not None]
        whole = sum(row["duration_ns"] for row in known)
        if not whole:
            return None
        parts: dict[str, float] = {}
        for row in known:
            for kind, fraction in row["attribution"].items():
                parts[kind] = parts.get(kind, 0.0) + fraction * row["duration_ns"] / whole
        return parts


def grouped(steps: Sequence[Mapping[str, Any]], *, split_first: bool = False) -> list[StepGroup]:
    """Groups in order of their first start. With `split_first`, a first repeat that stands out is its own
    group.
    """
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in steps:
        found.setdefault((row["name"], row["kind"]), []).append(row)
    groups: list[StepGroup] = []
    for (name, kind), rows in found.items():
        first = [row for row in rows if rounds_of(row)[:1] == (0,)]
        later = [row for row in rows if rounds_of(row)[:1] > (0,)]
        if split_first and first and later and len(first) + len(later) == len(rows):
            head, tail = (
                StepGroup(f"{name}[0]", kind, tuple(first)),
                StepGroup(f"{name}[1:]", kind, tuple(later)),
            )
            if max(head.mean_ns, tail.mean_ns) > 1.1 * min(head.mean_ns, tail.mean_ns):
                groups += [head, tail]
                continue
        groups.append(StepGroup(name, kind, tuple(rows)))
    return sorted(groups, key=lambda group: group.start_ns)
