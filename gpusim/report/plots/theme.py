"""One look for all pictures: large type, few lines, colours that colour-blind readers tell apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpusim.result import Result

INK = "#1A1A1A"
QUIET = "#6B6B6B"
FAINT = "#DADADA"
BLUE = "#0072B2"
VERMILION = "#D55E00"
GROUP_COLOURS = {
    "link": "#009E73",
    "worker": "#D55E00",
    "engine": "#66C2A5",
    "memory": "#0072B2",
    "lock": "#8E3B6B",
}
WIDTH, HEIGHT = 12.0, 6.75  # inches; 16:9
DPI = 160  # 1920 pixels wide
LEFT = 0.045  # of the figure: where titles begin
_TITLE = 21  # points
_TITLE_LINE = 0.42  # inches

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine draws the same letters
    "font.size": 15,
    "axes.titlesize": 16,
    "axes.labelsize": 15,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 14,
    "ytick.labelsize": 14,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": DPI,
    "path.simplify": False,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw inside this: the look is set for the block and taken back after it."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        parameters: Any = mpl.rcParams  # its own type knows every key, which older versions of it do not
        parameters.update(_STYLE)
        yield


def new_figure(
    result: Result, title: str, subtitle: str = "", *, height: float = HEIGHT
) -> tuple[Figure, float]:
    """A figure with the finding on top and at the foot what was run; and where its content may begin.

    `height` is in inches and grows by a line when the title needs two; the second value is a fraction of it.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = wrapped(title, _TITLE, WIDTH * (1 - 2 * LEFT), bold=True)[:2]
    height += _TITLE_LINE * (len(lines) - 1)
    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    at = 0.34  # inches from the top
    figure.text(
        LEFT, 1 - at / height, "\n".join(lines), size=_TITLE, weight="bold", va="top", linespacing=1.15
    )
    at += _TITLE_LINE * len(lines)
    if subtitle:
        words = wrapped(subtitle, 15, WIDTH * (1 - 2 * LEFT))[0]
        figure.text(LEFT, 1 - (at + 0.04) / height, words, size=15, color=QUIET, va="top")
        at += 0.36
    summary = result.summary
    foot = f"{summary['scenario']} · seed {summary['seed']} · simulated by gpusim {summary['version']}"
    figure.text(LEFT, 0.16 / height, foot, size=11, color=QUIET, va="bottom")
    return figure, 1 - (at + 0.26) / height


@cache
def text_width(words: str, size: float, *, bold: bool = False) -> float:
    """Inches that a line of text takes."""
    font = _font(bold)
    font.set_size(size, 72)
    font.set_text(words, 0.0)
    return float(font.get_width_height()[0]) / 64 / 72  # 26.6 fixed-point pixels at 72 to the inch


@cache
def _font(bold: bool) -> Any:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return get_font(findfont(FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")))


def wrapped(words: str, size: float, inches: float, *, bold: bool = False) -> list[str]:
    """Lines no wider than `inches` and about equally long; a number keeps its unit beside it."""
    bound = re.sub(r"(?<=\d) (?=[%A-Za-zµ])", "\u00a0", words).split(" ")
    lines = _filled(bound, size, inches, bold=bold)
    for narrower in (0.9, 0.8, 0.7, 0.6, 0.55):
        tried = _filled(bound, size, inches * narrower, bold=bold)
        if len(tried) > len(lines):
            break
        lines = tried
    return lines


def _filled(words: list[str], size: float, inches: float, *, bold: bool) -> list[str]:
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size, bold=bold) > inches:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def png(figure: Figure) -> bytes:
    """The picture as bytes that depend on nothing but the picture."""
    buffer = BytesIO()
    figure.savefig(
        buffer, format="png", dpi=DPI, metadata={"Software": None}, pil_kwargs={"compress_level": 1}
    )
    return buffer.getvalue()


def time_unit(longest_ns: float) -> tuple[float, str]:
    """Nanoseconds in the unit that suits an axis up to `longest_ns`, and its name."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if longest_ns >= 2 * factor:
            return factor, unit
    return 1.0, "ns"


def rate_unit(largest_gb_per_s: float) -> tuple[float, str]:
    """GB/s in the unit that suits an axis up to `largest_gb_per_s`, and its name."""
    for factor, unit in ((1e3, "TB/s"), (1.0, "GB/s"), (1e-3, "MB/s")):
        if largest_gb_per_s >= factor:
            return factor, unit
    return 1e-6, "kB/s"
