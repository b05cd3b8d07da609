"""The program over time, drawn above what it did to the machine: a band for each step.

Steps that overlap get lanes of their own. A band too narrow for its name has it in a line above, with a stroke down to
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusim.report.plots.theme import QUIET, text_width
from gpusim.result.groups import StepGroup, grouped, working

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: verbs whose time is that of other steps
WAITING = ("synchronize", "wait", "record")
#: verbs that carry bytes: these are shown however short they are, as long as there are few
_CARRIES = ("launch", "memcpy", "memcpy_batch", "memset", "prefetch", "host_touch", "file_read", "file_write")
_LANE = 0.36  # inches
_CALLOUTS = 0.34
_SIZES = (13, 11)  # points of the names in bands
_CALLOUT_SIZE = 11
_SHORT = 0.004  # of the run
_FEW = 8
_NARROWEST = 0.03  # inches
_SHADES = ("#C9D6E2", "#E3DCCB", "#D5E3D2", "#E6D3DC")
_START = "#EFEFEF"


@dataclass(frozen=True, slots=True)
class _Band:
    name: str
    start_ns: float
    end_ns: float
    lane: int
    shade: str
    size: int  # of the name in it; 0: there is no room


@dataclass(frozen=True, slots=True)
class Bands:
    """Where the bands go, and the height that they take, in inches."""

    bands: tuple[_Band, ...]
    callouts: tuple[tuple[_Band, float], ...]  # and where the middle of the name is, in inches
    inches: float
    whole_ns: float

    @property
    def lanes(self) -> int:
        return max((band.lane + 1 for band in self.bands), default=1)

    @property
    def height(self) -> float:
        return _LANE * self.lanes + (_CALLOUTS if self.callouts else 0.0)

    def draw(self, axes: Axes, scale: float) -> None:
        """Into axes of this height and `inches` wide; `scale` is nanoseconds in a unit of the time axis."""
        per_inch = self.whole_ns / self.inches
        for band in self.bands:
            width = max(band.end_ns - band.start_ns, _NARROWEST * per_inch)
            start = min(band.start_ns, self.whole_ns - width)
            axes.barh(
                -band.lane, width / scale, left=start / scale, height=0.86, color=band.shade, linewidth=0
            )
            if band.size:
                axes.text(
                    (start + width / 2) / scale, -band.lane, band.name, ha="center", va="center_baseline",
                    size=band.size, color=QUIET if band.shade == _START else "black",
                )  # fmt: skip
        above = 0.5 + (_CALLOUTS / _LANE if self.callouts else 0.0)
        for band, at in self.callouts:
            middle = min((band.start_ns + band.end_ns) / 2, self.whole_ns - _NARROWEST * per_inch / 2) / scale
            axes.plot(
                [at * per_inch / scale, middle], [above - 0.62, -band.lane + 0.1], color=QUIET, linewidth=0.8
            )
            axes.text(
                at * per_inch / scale, above - 0.32, band.name, ha="center", va="center", size=_CALLOUT_SIZE
            )
        axes.set_xlim(0, self.whole_ns / scale)
        axes.set_ylim(-self.lanes + 0.5, above)
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
        axes.tick_params(bottom=False, labelbottom=False)


def bands(summary: Mapping[str, Any], inches: float) -> Bands:
    """The bands of a run, for axes `inches` wide."""
    whole_ns = summary["makespan_ns"]
    groups = _visible(summary["steps"], whole_ns)
    ends: list[float] = []
    placed: list[_Band] = []
    begun = min((row["start_ns"] for row in summary["steps"]), default=0.0)
    if groups and begun > 0.03 * whole_ns:  # buffers that no step names are allocated when the process starts
        ends.append(begun)
        placed.append(_band("allocation", 0.0, begun, 0, _START, inches / whole_ns))
    for number, group in enumerate(groups):
        lane = next((at for at, end in enumerate(ends) if end <= group.start_ns + 1e-6 * whole_ns), len(ends))
        if lane == len(ends):
            ends.append(0.0)
        ends[lane] = group.end_ns
        shade = _SHADES[number % len(_SHADES)]
        made = _band(group.label, group.start_ns, group.end_ns, lane, shade, inches / whole_ns)
        placed.append(
            made
            if made.size
            else _band(group.name, group.start_ns, group.end_ns, lane, shade, inches / whole_ns)
        )
    nameless = [band for band in placed if not band.size and band.shade != _START]
    return Bands(tuple(placed), _called_out(nameless, inches, whole_ns), inches, whole_ns)


def _band(name: str, start: float, end: float, lane: int, shade: str, inches_per_ns: float) -> _Band:
    room = (end - start) * inches_per_ns - 0.1
    size = next((size for size in _SIZES if text_width(name, size) <= room), 0)
    return _Band(name, start, end, lane, shade, size)


def _called_out(nameless: Sequence[_Band], inches: float, whole_ns: float) -> tuple[tuple[_Band, float], ...]:
    """Names in a row, each as near to its band as its neighbours let it; of too many, those of the longest."""
    gap = 0.18
    kept = sorted(nameless, key=lambda band: band.start_ns - band.end_ns)
    while sum(text_width(band.name, _CALLOUT_SIZE) + gap for band in kept) > inches:
        kept.pop()
    kept.sort(key=lambda band: band.start_ns + band.end_ns)
    widths = [text_width(band.name, _CALLOUT_SIZE) for band in kept]
    lefts: list[float] = []
    for band, width in zip(kept, widths, strict=True):
        middle = (band.start_ns + band.end_ns) / 2 * inches / whole_ns
        lefts.append(max(middle - width / 2, lefts[-1] + widths[len(lefts) - 1] + gap if lefts else 0.0))
    limit = inches
    for at in reversed(range(len(lefts))):  # what was pushed over the right edge goes back
        lefts[at] = min(lefts[at], limit - widths[at])
        limit = lefts[at] - gap
    return tuple((band, left + width / 2) for band, left, width in zip(kept, lefts, widths, strict=True))


def _visible(steps: Sequence[Mapping[str, Any]], whole_ns: float) -> list[StepGroup]:
    """Groups in order of their start, without those that took too little time to be seen."""
    found = [group for group in grouped(working(steps)) if group.kind not in WAITING]
    groups = sorted(found, key=lambda group: (group.start_ns, -group.end_ns))
    few = len(groups) <= _FEW
    return [
        group
        for group in groups
        if group.total_ns / group.processes > _SHORT * whole_ns or (few and group.kind in _CARRIES)
    ]
