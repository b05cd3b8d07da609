"""What it costs to record: nothing (`off`), the critical path (`summary`), or every span (`spans`)."""

from statistics import median

import pytest

from gpusim.simulation import simulate
from tests.benchmarks.first_touch import cost, counts, program
from tests.benchmarks.peak_memory import measured, needs_proc

ROUNDS = 5
GIB = 4
SPAN_BYTES = 48


def test_recording_takes_no_events():
    assert counts(1, "malloc", "off") == counts(1, "malloc", "summary") == counts(1, "malloc", "spans")


def test_a_span_takes_at_most_48_bytes():
    spans = simulate(program(1, "malloc", 1024), record="spans").tables["spans"]
    assert len(spans["who"]) > 1_000
    assert sum(column.itemsize for column in spans.values()) <= SPAN_BYTES


@pytest.mark.timing
def test_summary_against_off_and_spans_against_summary(figure):
    """In turns, each against the bare loop beside it."""
    modes = ("off", "summary", "spans")
    rounds = [{mode: cost(GIB, "malloc", mode).ratio for mode in modes} for _ in range(ROUNDS)]
    for mode, against, most in (("summary", "off", 1.15), ("spans", "summary", 1.5)):
        ratios = sorted(each[mode] / each[against] for each in rounds)
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, {ROUNDS} pairs of {GIB} GiB"
        figure(f"recording {mode} against {against}: time", median(ratios), most=most, note=spread)


@needs_proc
@pytest.mark.timing
def test_memory_of_the_spans(figure):
    """While the run lasts and while it is read out."""
    summary, spans = (measured(16, "malloc", step_kib=64, record=mode) for mode in ("summary", "spans"))
    more = (spans["peak"] - summary["peak"]) * 2**20 / spans["spans"]
    note = f"{spans['spans'] / (16 * 16384):.2f} spans a wave step"
    figure("peak memory of a span", more, most=SPAN_BYTES, unit=" B", digits=0, note=note)
