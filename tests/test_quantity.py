"""Quantities: units in, exact numbers out, and a clear refusal of everything that could mean two things."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim import quantity as q
from gpusim.quantity import QuantityError


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("8B", 8),
        ("64KiB", 65536),
        ("4GiB", 4 * 2**30),
        ("4 GiB", 4 * 2**30),
        ("800.6MB", 800_600_000),
        ("1e3kB", 1_000_000),
        ("1kB", 1000),
        ("1KB", 1000),
        (".5KiB", 512),
        ("0B", 0),
        ("1.2GiB", 1_288_490_189),  # the nearest byte
        ("9223372036854775807B", 2**63 - 1),
    ],
)
def test_a_size_is_bytes(text: str, size_bytes: int) -> None:
    assert q.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "duration_ps"),
    [
        ("1ps", 1),
        ("0.66us", 660_000),
        ("0.66µs", 660_000),
        ("0.66\u03bcs", 660_000),
        ("2ms", 2 * q.MS),
        ("60s", 60 * q.S),
        ("2min", 120 * q.S),
        ("0s", 0),
        ("1.2345678ns", 1235),
    ],
)
def test_a_time_is_picoseconds(text: str, duration_ps: int) -> None:
    assert q.parse_duration(text) == duration_ps


def test_a_rate_is_the_float_nearest_to_what_was_written() -> None:
    assert q.parse_rate("55.36GB/s") == 55.36e9
    assert q.parse_rate("1GiB/s") == float(2**30)


def test_a_frequency_is_hertz() -> None:
    assert q.parse_frequency("1.7GHz") == 1.7e9
    assert q.parse_frequency("100 MHz") == 1e8


@pytest.mark.parametrize(
    ("given_value", "fraction"), [("20%", 0.2), ("0.2", 0.2), (0.2, 0.2), (1, 1.0), ("0%", 0.0)]
)
def test_a_fraction_may_be_a_percentage_or_a_bare_number(given_value: str | float, fraction: float) -> None:
    assert q.parse_fraction(given_value) == fraction


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4096", "needs a unit"),
        ("0", "needs a unit"),
        ("", "begins with a plain number"),
        ("GiB", "begins with a plain number"),
        ("4G", "ambiguous: write GB (powers of 1000) or GiB (powers of 1024)"),
        ("4k", "ambiguous"),
        ("4Gb", "means bits"),
        ("4Gib", "means bits"),
        ("4gib", "did you mean 'GiB'?"),
        ("4 m", "ambiguous: write MB"),
        ("4parsec", "unknown"),
        ("-4GiB", "negative"),
        ("nan", "begins with a plain number"),
        ("infGiB", "begins with a plain number"),
        ("1e30 GiB", "too large"),
        ("1e999999999999 GiB", "too large"),
        ("9223372036854775808B", "too large"),
        ("0.5B", "not a whole number of bytes"),
        ("0.0001kB", "less than one byte"),
        ("1e-999999kB", "too small"),
        ("4GiB/s", "unknown"),
        ("1_000B", "unknown"),
        ("४GiB", "begins with a plain number"),  # digits of another script
        ("1" * 5000 + "B", "begins with a plain number"),
    ],
)
def test_a_size_that_is_not_one_says_what_was_read_and_what_is_legal(text: str, said: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        q.parse_size(text)
    message = str(refusal.value)
    assert said in message
    assert repr(text)[:60] in message
    assert len(message) < 400


def test_other_quantities_refuse_what_has_two_meanings() -> None:
    for parse, text, said in [
        (q.parse_duration, "4 m", "write ms (milliseconds) or min (minutes)"),
        (q.parse_duration, "4", "a time needs a unit"),
        (q.parse_duration, "0.4ps", "not a whole number of picoseconds"),
        (q.parse_duration, "5 weeks", "unknown"),
        (q.parse_rate, "100Gb/s", "does not count bytes"),
        (q.parse_rate, "16GT/s", "does not count bytes"),
        (q.parse_rate, "100Gbps", "does not count bytes"),
        (q.parse_rate, "25GB", "unknown"),
        (q.parse_rate, "1e30GB/s", "too large"),
        (q.parse_rate, "1e-60GB/s", "too small"),
        (q.parse_frequency, "1700", "a frequency needs a unit"),
        (q.parse_frequency, "1.7ghz", "did you mean 'GHz'?"),
    ]:
        with pytest.raises(QuantityError, match=re.escape(said)):
            parse(text)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -0.1, 1.5, "150%", "-20%", "nan", "", "a fifth", True, None, 10**400]
)
def test_a_fraction_lies_between_0_and_1(value: object) -> None:
    with pytest.raises(QuantityError, match="legal: a fraction from 0 to 1"):
        q.parse_fraction(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [4096, 4096.0, True, None, [], b"4GiB"])
def test_python_callers_need_units_too(value: object) -> None:
    with pytest.raises(QuantityError, match="needs a unit"):
        q.parse_size(value)  # type: ignore[arg-type]


@given(st.integers(0, 2**63 - 1))
def test_every_size_can_be_written_and_read_back(size_bytes: int) -> None:
    assert q.parse_size(q.write_size(size_bytes)) == size_bytes


@given(st.integers(0, 2**63 - 1))
def test_every_time_can_be_written_and_read_back(duration_ps: int) -> None:
    assert q.parse_duration(q.write_duration(duration_ps)) == duration_ps


@given(st.one_of(st.floats(1e-9, 9e18), st.integers(1, 10**6).map(lambda n: n * 1e7), st.just(0.0)))
def test_every_rate_and_frequency_can_be_written_and_read_back(value: float) -> None:
    assert q.parse_rate(q.write_rate(value)) == value
    assert q.parse_frequency(q.write_frequency(value)) == value


@given(st.floats(0, 1))
def test_every_fraction_can_be_written_and_read_back(value: float) -> None:
    assert q.parse_fraction(q.write_fraction(value)) == value


@given(st.text(max_size=100))
def test_any_text_is_a_quantity_or_a_clear_refusal(text: str) -> None:
    for parse in (q.parse_size, q.parse_duration, q.parse_rate, q.parse_frequency, q.parse_fraction):
        try:
            value = parse(text)
        except QuantityError as error:
            value = 0
            said = str(error)
            assert "read " in said and "legal: " in said  # noqa: PT018
        assert 0 <= value <= q.LIMIT


def test_written_text_is_the_short_one() -> None:
    assert q.write_size(4 * q.GIB) == "4GiB"
    assert q.write_size(800_600_000) == "800.6MB"
    assert q.write_size(0) == "0B"
    assert q.write_duration(2 * q.MS) == "2ms"
    assert q.write_duration(588_100) == "588.1ns"
    assert q.write_rate(55.36e9) == "55.36GB/s"
    assert q.write_frequency(1.7e9) == "1.7GHz"
    assert q.write_fraction(0.2) == "20%"


def test_people_get_rounded_numbers() -> None:
    assert q.format_size(4 * q.GIB) == "4GiB"
    assert q.format_size(800_600_000) == "800.6MB"
    assert q.format_size(102_400_000) == "102.4MB"
    assert q.format_size(1536) == "1.5KiB"
    assert q.format_size(12) == "12B"
    assert q.format_duration_ps(12_740_000_000) == "12.74ms"
    assert q.format_duration_ps(4_123_456_789_000) == "4.123s"
    assert q.format_duration_ps(20_000 * q.S) == "20000s"
    assert q.format_duration_ps(0) == "0ps"
    assert q.format_rate(0.9e9) == "900MB/s"
    assert q.format_rate(55.36e9) == "55.36GB/s"
    assert q.format_frequency(1.7e9) == "1.7GHz"


def test_the_module_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys, gpusim.quantity\n"
        "print([name for name in ('pydantic', 'numpy', 'yaml', 'simpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
