"""Numbers with units as people read them, from the nanoseconds and bytes of a summary."""

from __future__ import annotations

from gpusim import quantity

_TIMES = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0), ("ps", 1e-3))
_SIZES = (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def scaled(value: float, units: tuple[tuple[str, float], ...], digits: int = 3) -> str:
    """`digits` significant digits, zeros kept, in the largest unit below it: 1.1e9 ns -> `1.10 s`."""
    rounded = float(f"{value:.{digits}g}")  # first, or 999.96 ms would not become 1.00 s
    unit, factor = next((pair for pair in units if abs(rounded) >= pair[1]), units[-1])
    number = float(f"{value / factor:.{digits}g}")
    decimals = max(digits - len(str(int(abs(number)))), 0) if abs(number) >= 1 else digits - 1
    return f"{number:,.{decimals}f} {unit}"


def time(duration_ns: float | None, digits: int = 3) -> str:
    """1.274e7 -> `12.7 ms`; a dash for None."""
    if duration_ns is None:
        return "–"
    return scaled(duration_ns, _TIMES, digits) if duration_ns else "0 s"


def size(size_bytes: float | None, digits: int = 3) -> str:
    """8589934592 -> `8 GiB`; 800600000 -> `801 MB`; a dash for None."""
    if size_bytes is None:
        return "–"
    if size_bytes < 1000:
        return f"{size_bytes:.0f} B"
    if size_bytes == int(size_bytes):
        words = quantity.format_size(int(size_bytes))
        if words.endswith("iB"):  # comes out round in binary units
            return f"{words[:-3]} {words[-3:]}"
    return scaled(size_bytes, _SIZES, digits)


def rate(bandwidth_gb_per_s: float | None, digits: int = 3) -> str:
    """0.95 -> `950 MB/s`; a dash for None."""
    if bandwidth_gb_per_s is None:
        return "–"
    return f"{scaled(bandwidth_gb_per_s * 1e9, _SIZES, digits)}/s" if bandwidth_gb_per_s else "0 B/s"


def count(number: float | None) -> str:
    """34211 -> `34,211`; a dash for None."""
    return "–" if number is None else f"{number:,.0f}"


def percent(fraction: float | None, digits: int = 1) -> str:
    """0.861 -> `86.1 %`; a dash for None; `<0.1 %` rather than a zero that is none."""
    if fraction is None:
        return "–"
    least = 10.0**-digits
    if 0 < 100 * fraction < least / 2:
        return f"<{least:g} %"
    shown = f"{100 * fraction:.{digits}f}"
    return f"{shown.removeprefix('-') if float(shown) == 0 else shown} %"


def value(number: object, unit: str | None) -> str:
    """A metric's value in the unit that the metric language gives it (`ns`, `bytes`, `GB/s`, `fraction` or
    none).
    """
    if number is None:
        return "–"
    if isinstance(number, bool) or not isinstance(number, int | float):
        return str(number)
    if unit == "ns":
        return time(number, 4)
    if unit == "bytes":
        return size(number, 4)
    if unit == "GB/s":
        return rate(number, 4)
    if unit == "fraction":
        return percent(number, 2)
    return f"{number:,}" if isinstance(number, int) else f"{number:,.4g}"
