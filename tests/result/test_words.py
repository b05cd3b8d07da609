"""Numbers, shares and colours as people see them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.kinds import Kind
from gpusim.result import text
from gpusim.result.colours import COLOURS, colour, text_on
from gpusim.result.groups import grouped
from gpusim.result.shares import REST, label, largest, percentages


@pytest.mark.parametrize(
    ("nanoseconds", "words"),
    [
        (1.274e7, "12.7 ms"),
        (1.1e9, "1.10 s"),
        (660, "660 ns"),
        (9900, "9.90 µs"),
        (999.96e6, "1.00 s"),
        (86_400e9, "86,400 s"),
        (0.5, "500 ps"),
        (0, "0 s"),
        (None, "–"),
    ],
)
def test_times(nanoseconds, words):
    assert text.time(nanoseconds) == words


@pytest.mark.parametrize(
    ("size", "words"),
    [(8 * 2**30, "8 GiB"), (800_640_128, "801 MB"), (4096, "4 KiB"), (12, "12 B"), (0, "0 B"), (None, "–")],
)
def test_sizes(size, words):
    assert text.size(size) == words


def test_rates_fractions_counts_and_values():
    assert text.rate(0.95) == "950 MB/s"
    assert text.rate(1638.4) == "1.64 TB/s"
    assert text.rate(0) == "0 B/s"
    assert text.percent(0.861) == "86.1 %"
    assert text.percent(1e-6) == "<0.1 %"
    assert text.percent(0) == "0.0 %"
    assert text.count(34211) == "34,211"
    assert text.value(1.1e9, "ns") == "1.100 s"
    assert text.value("vm_fault", None) == "vm_fault"
    assert text.value(None, "ns") == "–"


parts = st.dictionaries(
    st.sampled_from([kind.name.lower() for kind in Kind]), st.integers(1, 10**12), min_size=1
)


@given(parts)
def test_printed_percentages_sum_to_one_hundred(weights):
    whole = sum(weights.values())
    shown = percentages({name: weight / whole for name, weight in weights.items()})
    assert round(sum(shown.values()), 6) == 100
    for name, weight in weights.items():
        assert abs(shown[name] - 100 * weight / whole) < 0.1 + 1e-9


@given(parts, st.integers(1, 12))
def test_gathering_the_small_loses_nothing(weights, count):
    whole = sum(weights.values())
    kept = largest({name: weight / whole for name, weight in weights.items()}, count, 0.01)
    assert sum(kept.values()) == pytest.approx(1)
    named = [part for name, part in kept.items() if name != REST]
    assert named == sorted(named, reverse=True)


def test_every_kind_has_a_colour_of_its_own_and_readable_text():
    assert set(COLOURS) == set(Kind)
    assert len(set(COLOURS.values())) == len(COLOURS)
    for fill in COLOURS.values():
        assert contrast(fill, text_on(fill)) >= 3  # WCAG, large text


def test_neighbours_in_a_family_differ_in_lightness():
    families = ["COMPUTE HBM ZERO_COPY_LINK TRANSLATION", "SDMA_COPY BO_CLEAR BOUNCE_COPY COPY_SETUP"]
    for family in families:
        shades = sorted(luminance(COLOURS[Kind[name]]) for name in family.split())
        assert all(after - before > 0.02 for before, after in itertools.pairwise(shades))


def test_words_for_what_is_no_kind():
    assert label("recent_skip") == "2 ms skip"
    assert label(REST) == "other"
    assert colour(REST).startswith("#")


def luminance(fill):
    channels = [int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_steps_are_gathered_by_name(blur):
    (whole,) = grouped(blur.summary["steps"])
    assert whole.label == "blur ×400"
    first, later = grouped(blur.summary["steps"], split_first=True)
    assert (first.name, later.name) == ("blur[0]", "blur[1:]")
    assert first.mean_ns == pytest.approx(128.4e6)
    assert sum(later.attribution.values()) == pytest.approx(1)


def test_ranks_without_repeats_are_one_group(blur):
    steps = [row for row in blur.summary["steps"] if row["path"].startswith("blur[0]")]
    renamed = [row | {"path": f"blur[{rank}]"} for rank, row in enumerate(steps)]
    assert len(grouped(renamed, split_first=True)) == 1
