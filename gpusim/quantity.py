"""Sizes, times, rates and frequencies with units: text in, numbers out, and back.

GB is 1e9 bytes and GiB is 2**30, always. A number without a unit is refused, also in Python, because nobody
can see whether `4096` meant bytes or pages. What has no single meaning (`4G`, `4Gb`, `4 m`) is refused with
what to write.

| function | accepts | gives |
|---|---|---|
| `parse_size` | `4GiB`, `800.6 MB` | int, bytes |
| `parse_duration` | `2ms`, `0.66us` | int, picoseconds |
| `parse_rate` | `55.36GB/s` | float, bytes per second |
| `parse_frequency` | `1.7GHz` | float, hertz |
| `parse_fraction` | `20%`, `0.2` | float from 0 to 1 |

All raise `QuantityError`, whose text says what was read and what is legal. `write_*` gives the shortest text
that parses back to the same number; `format_*` gives rounded text for people. Standard library only: the
command line imports this before it knows whether it will simulate anything.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from typing import Final

KB: Final = 10**3
MB: Final = 10**6
GB: Final = 10**9
TB: Final = 10**12
KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30
TIB: Final = 2**40

# picoseconds in a unit of time
PS: Final = 1
NS: Final = 10**3
US: Final = 10**6
MS: Final = 10**9
S: Final = 10**12

LIMIT: Final = 2**63 - 1  # what a 64-bit column can hold

_SIZES: Final[Mapping[str, int]] = {
    "B": 1, "kB": KB, "KB": KB, "MB": MB, "GB": GB, "TB": TB, "PB": 10**15,
    "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB, "PiB": 2**50,
}  # fmt: skip
_DURATIONS: Final[Mapping[str, int]] = {
    "ps": PS, "ns": NS, "us": US, "µs": US, "μs": US, "ms": MS, "s": S, "min": 60 * S, "h": 3600 * S,
}  # fmt: skip
_RATES: Final[Mapping[str, int]] = {f"{unit}/s": factor for unit, factor in _SIZES.items()}
_FREQUENCIES: Final[Mapping[str, int]] = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}

_SIZES_LEGAL: Final = (
    "a size such as 64KiB; B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)"
)
_DURATIONS_LEGAL: Final = "a time such as 2ms; ps, ns, us, ms, s, min, h"
_RATES_LEGAL: Final = "a rate such as 25GB/s; B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s"
_FREQUENCIES_LEGAL: Final = "a frequency such as 1.7GHz; Hz, kHz, MHz, GHz"

_DIGITS: Final = r"(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?"
_NUMBER = re.compile(_DIGITS, re.ASCII)
_LONGEST = 80  # characters of a quantity; longer text is not one, and is not worth the arithmetic


def _pattern(units: Mapping[str, int]) -> str:
    digits = _DIGITS.replace("\\d", "[0-9]")
    return rf"^\s*{digits}\s*({'|'.join(sorted(units, key=len, reverse=True))})\s*$"


#: regular expressions for editors (JSON Schema): what is written right matches, a missing unit does not
SIZE_PATTERN: Final = _pattern(_SIZES)
DURATION_PATTERN: Final = _pattern(_DURATIONS)
RATE_PATTERN: Final = _pattern(_RATES)
FREQUENCY_PATTERN: Final = _pattern(_FREQUENCIES)
FRACTION_PATTERN: Final = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)([eE]-?[0-9]+)?\s*%?\s*$"


class QuantityError(ValueError):
    """Text that is not a quantity of the kind asked for: what was read, why it is wrong, what is legal."""

    def __init__(self, read: object, why: str, legal: str) -> None:
        self.read = _quoted(read)
        self.why = why
        self.legal = legal
        super().__init__(read, why, legal)

    def __str__(self) -> str:
        return f"{self.why} (read {self.read}; legal: {self.legal})"


def parse_size(text: str) -> int:
    """Bytes of a size such as `4GiB`. A fraction of a unit is rounded to the nearest whole byte."""
    return _whole(text, "size", _SIZES, _SIZES_LEGAL, "byte")


def parse_duration(text: str) -> int:
    """Picoseconds of a time such as `2ms`, rounded to the nearest whole picosecond."""
    return _whole(text, "time", _DURATIONS, _DURATIONS_LEGAL, "picosecond")


def parse_rate(text: str) -> float:
    """Bytes per second of a rate such as `55.36GB/s`."""
    return _real(text, "rate", _RATES, _RATES_LEGAL)


def parse_frequency(text: str) -> float:
    """Hertz of a frequency such as `1.7GHz`."""
    return _real(text, "frequency", _FREQUENCIES, _FREQUENCIES_LEGAL)


def parse_fraction(value: str | float) -> float:
    """A fraction from 0 to 1, written `20%`, `"0.2"` or as the number 0.2."""
    legal = "a fraction from 0 to 1 such as 0.2, or a percentage such as 20%"
    if isinstance(value, str):
        text = value.strip()
        percent = text.endswith("%")
        digits = text[:-1].strip() if percent else text
        if len(digits) > _LONGEST or _NUMBER.fullmatch(digits) is None:
            raise QuantityError(value, "not a fraction", legal)
        number = float(digits) / 100 if percent else float(digits)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityError(value, "not a fraction", legal)
    else:
        number = float(value) if -1e9 < value < 1e9 else math.inf
    if not 0.0 <= number <= 1.0:  # also refuses NaN
        raise QuantityError(value, "not between 0 and 1", legal)
    return number


def write_size(size_bytes: int) -> str:
    """Text that `parse_size` reads back as exactly `size_bytes`: 4294967296 -> `4GiB`."""
    return _write(size_bytes, (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)), _DECIMAL_SIZES, "B")


def write_duration(duration_ps: int) -> str:
    """Text that `parse_duration` reads back as exactly `duration_ps`: 2000000000 -> `2ms`."""
    return _write(duration_ps, (), (("s", S), ("ms", MS), ("us", US), ("ns", NS)), "ps")


def write_rate(rate_bytes_per_s: float) -> str:
    """Text that `parse_rate` reads back as exactly the same float."""
    return _write_real(rate_bytes_per_s, (("GB/s", GB), ("MB/s", MB), ("kB/s", KB)), "B/s")


def write_frequency(frequency_hz: float) -> str:
    """Text that `parse_frequency` reads back as exactly the same float."""
    return _write_real(frequency_hz, (("GHz", GB), ("MHz", MB), ("kHz", KB)), "Hz")


def write_fraction(fraction: float) -> str:
    """Text that `parse_fraction` reads back as exactly the same float: 0.2 -> `20%`."""
    percent = f"{fraction * 100:.12g}%"
    return percent if "e" not in percent and parse_fraction(percent) == fraction else repr(float(fraction))


def format_size(size_bytes: float, digits: int = 4) -> str:
    """A size for people: binary units where they come out round (`4GiB`), else decimal ones (`800.6MB`)."""
    if isinstance(size_bytes, int) and size_bytes >= KIB:
        for unit, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
            if size_bytes >= factor:
                if (size_bytes * 4) % factor == 0:
                    return f"{size_bytes / factor:g}{unit}"
                break
    return _rounded(size_bytes, _DECIMAL_SIZES, "B", digits)


def format_duration_ps(duration_ps: float, digits: int = 4) -> str:
    """A time for people: 12740000000 -> `12.74ms`."""
    return _rounded(duration_ps, (("s", S), ("ms", MS), ("us", US), ("ns", NS)), "ps", digits)


def format_rate(rate_bytes_per_s: float, digits: int = 4) -> str:
    """A rate for people, in decimal units: 5.536e10 -> `55.36GB/s`."""
    return _rounded(rate_bytes_per_s, tuple((f"{u}/s", f) for u, f in _DECIMAL_SIZES), "B/s", digits)


def format_frequency(frequency_hz: float, digits: int = 4) -> str:
    """A frequency for people: 1.7e9 -> `1.7GHz`."""
    return _rounded(frequency_hz, (("GHz", GB), ("MHz", MB), ("kHz", KB)), "Hz", digits)


_DECIMAL_SIZES: Final = (("TB", TB), ("GB", GB), ("MB", MB), ("kB", KB))


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _split(text: str, what: str, units: Mapping[str, int], legal: str) -> tuple[int, int, int]:
    """The exact value as (numerator, denominator) in base units, and the unit's factor."""
    if not isinstance(text, str):
        raise QuantityError(text, f"a {what} needs a unit", legal)
    stripped = text.strip()
    if stripped.startswith("-"):
        raise QuantityError(text, f"a {what} cannot be negative", legal)
    match = _NUMBER.match(stripped) if len(stripped) <= _LONGEST else None
    if match is None:
        raise QuantityError(text, f"a {what} begins with a plain number", legal)
    unit = stripped[match.end() :].strip()
    factor = units.get(unit)
    if factor is None:
        raise QuantityError(text, _why(unit, what, units), legal)
    whole, _, part = match[1].partition(".")
    power = int(match[2] or 0) - len(part)
    mantissa = int((whole + part) or "0")
    if mantissa and power + len(str(mantissa)) > 40:  # before 10**power could become a huge number
        raise QuantityError(text, f"too large: more than {LIMIT}", legal)
    if power < -200:
        raise QuantityError(text, "too small to mean anything", legal)
    if power > 0:
        mantissa, power = (mantissa * 10**power if mantissa else 0), 0
    return mantissa * factor, 10**-power, factor


def _why(unit: str, what: str, units: Mapping[str, int]) -> str:
    if not unit:
        return f"a {what} needs a unit"
    if what == "size" and unit.lower() in ("k", "m", "g", "t", "p", "ki", "mi", "gi", "ti"):
        big = unit[0].upper()
        return f"the unit {unit!r} is ambiguous: write {big}B (powers of 1000) or {big}iB (powers of 1024)"
    if what == "size" and re.fullmatch(r"[kKMGTP]i?b", unit):
        return f"the unit {unit!r} means bits: sizes are in bytes, write {unit[:-1]}B"
    if what == "rate" and re.fullmatch(r"[kKMGTP]i?b(/s|ps)|GT/s", unit):
        return f"the unit {unit!r} does not count bytes: rates are in bytes per second, e.g. GB/s"
    if what == "time" and unit == "m":
        return "the unit 'm' is ambiguous: write ms (milliseconds) or min (minutes)"
    same = [known for known in units if known.lower() == unit.lower()]
    near = same or difflib.get_close_matches(unit, units, 1, 0.5)
    return f"the unit {unit!r} is unknown" + (f", did you mean {near[0]!r}?" if near else "")


def _whole(text: str, what: str, units: Mapping[str, int], legal: str, base: str) -> int:
    numerator, denominator, factor = _split(text, what, units, legal)
    value, rest = divmod(numerator, denominator)
    if rest:
        if factor == 1:
            raise QuantityError(text, f"not a whole number of {base}s", legal)
        value += 2 * rest >= denominator
        if value == 0:
            raise QuantityError(text, f"less than one {base}", legal)
    if value > LIMIT:
        raise QuantityError(text, f"too large: more than {LIMIT} {base}s", legal)
    return value


def _real(text: str, what: str, units: Mapping[str, int], legal: str) -> float:
    numerator, denominator, _ = _split(text, what, units, legal)
    value = numerator / denominator  # exact integers: one correct rounding
    if value > LIMIT:
        raise QuantityError(text, f"too large: more than {LIMIT}", legal)
    if numerator and value < 1e-12:
        raise QuantityError(text, "too small to mean anything", legal)
    return value


def _write(
    value: int, binary: tuple[tuple[str, int], ...], decimal: tuple[tuple[str, int], ...], base: str
) -> str:
    for unit, factor in binary:
        if value >= factor and value % factor == 0:
            return f"{value // factor}{unit}"
    for unit, factor in decimal:
        if value >= factor and (value * 1000) % factor == 0:  # at most three decimals
            whole, part = divmod(value * 1000 // factor, 1000)
            return f"{whole}.{part:03d}".rstrip("0").rstrip(".") + unit
    return f"{value}{base}"


def _write_real(value: float, units: tuple[tuple[str, int], ...], base: str) -> str:
    for unit, factor in units:
        text = f"{value / factor:.12g}"
        if value >= factor and "e" not in text and _exact(text, factor) == value:
            return text + unit
    return f"{value!r}{base}"


def _exact(text: str, factor: int) -> float:
    whole, _, part = text.partition(".")
    scale: int = 10 ** len(part)
    return int(whole + part) * factor / scale


def _rounded(value: float, units: tuple[tuple[str, int], ...], base: str, digits: int) -> str:
    unit, factor = next((pair for pair in units if abs(value) >= pair[1]), (base, 1))
    text = repr(float(f"{value / factor:.{digits}g}"))  # through float: 1e+04 becomes 10000.0
    return text.removesuffix(".0") + unit
