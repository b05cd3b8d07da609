"""Pictures: right, readable, and the same bytes each time."""

import itertools
from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.text import Text

from gpusim.errors import InputError
from gpusim.report import plots
from gpusim.report.plots.bands import bands
from gpusim.report.plots.series import gathered
from gpusim.report.plots.theme import png, styled, text_width, time_unit, wrapped
from gpusim.result import Result
from tests import synthetic

RUNS = {
    "first touch": synthetic.first_touch,
    "ranks": synthetic.blur,
    "one rank": lambda: synthetic.blur(ranks=1),
    "one fault": lambda: synthetic.first_touch(count=1),
    "few faults": lambda: synthetic.first_touch(count=3),
    "resident": synthetic.resident,
}


@pytest.fixture(params=RUNS, scope="module")
def result(request, scenario):
    return Result.from_run(scenario, RUNS[request.param]())


@pytest.mark.parametrize("name", plots.PLOTS)
def test_no_words_are_cut_off_or_on_top_of_the_title(result, name):
    try:
        figure = plots.figure(result, name)
    except InputError:
        pytest.skip("nothing to draw")
    with styled():
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        whole = figure.bbox
        ticks = {
            label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in _labels(axis)
        }
        texts = [
            text
            for text in figure.findobj(Text)
            if text.get_text().strip() and text.get_visible() and text not in ticks
        ]
        boxes = {text: text.get_window_extent(renderer) for text in texts}
    for text, box in boxes.items():
        where = f"{text.get_text()!r} at {box}"
        assert box.x0 >= -1, where
        assert box.y0 >= -1, where
        assert box.x1 <= whole.x1 + 1, where
        assert box.y1 <= whole.y1 + 1, where
    own = list(figure.texts)  # title, subtitle, foot and captions
    for one, other in itertools.combinations(own, 2):
        assert not boxes[one].overlaps(boxes[other]), (one.get_text(), other.get_text())


def _labels(axis):
    """Those of ticks outside the view among them, which are not drawn."""
    return [label for minor in (False, True) for label in axis.get_ticklabels(minor=minor)]


@pytest.mark.parametrize("name", plots.PLOTS)
def test_the_same_result_gives_the_same_bytes(scenario, name):
    pictures = []
    for _ in range(2):
        result = Result.from_run(scenario, synthetic.first_touch())
        figure = plots.figure(result, name)
        with styled():
            pictures.append(png(figure))
    assert pictures[0] == pictures[1]
    assert b"Software" not in pictures[0]


def test_drawing_leaves_no_trace_in_matplotlib(first_touch):
    before = dict(mpl.rcParams)
    plots.figure(first_touch, "latency")
    assert dict(mpl.rcParams) == before
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []


def test_titles_state_findings(first_touch):
    def title(name):
        return plots.figure(first_touch, name).texts[0].get_text().replace("\n", " ").replace("\u00a0", " ")

    assert title("latency").startswith("Half of the faults take 2.20 ms or less")
    assert title("breakdown").startswith("Host memory access takes 33 % of the 2.37 s")
    assert title("throughput") == "gpu[0].pcie.h2d carries 3.36 GB/s, 13 % of what it can"
    assert title("use") == "gpu[0].hbm is in use 54 % of the time, gpu[0].fault_worker 29 %"


def test_all_are_saved_beside_the_result(first_touch, tmp_path):
    written, skipped = plots.save(first_touch, tmp_path)
    assert sorted(path.name for path in written) == [
        "breakdown.png",
        "latency.png",
        "throughput.png",
        "use.png",
    ]
    assert skipped == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in written)


def test_what_has_no_content_is_named_not_drawn(scenario, tmp_path):
    result = Result.from_run(scenario, synthetic.resident(record="off"))
    written, skipped = plots.save(result, tmp_path)
    assert {path.stem for path in written} == {"throughput", "use"}
    assert any("no fault was served" in reason for reason in skipped)
    with pytest.raises(InputError, match="no fault was served"):
        plots.save_one(result, tmp_path, "latency")


def test_a_picture_that_cannot_be_written_is_the_users_to_solve(first_touch, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        plots.save_one(first_touch, tmp_path / "nowhere", "use")


def test_gathering_bins_keeps_the_bytes(first_touch):
    links = first_touch.tables["links"]
    rows = links[links["name"] == "gpu[0].pcie.h2d"]
    edges, rates = gathered(rows, "bytes")
    widths = [end - start for start, end in itertools.pairwise(edges)]
    assert len(rates) <= 96
    assert sum(rate * width for rate, width in zip(rates, widths, strict=True)) == pytest.approx(4 * 2**30)
    assert min(widths) >= 0.5 * max(widths) * 0.5


def test_a_comb_is_gathered_until_it_is_none():
    """Something used 40 times for a moment each time shows as stretches of use, with the same bytes."""
    bins = 400
    rows = pd.DataFrame({"start_ns": range(bins), "end_ns": range(1, bins + 1)}, dtype=float)
    rows["bytes"] = [10.0 if number % 10 == 5 else 0.0 for number in range(bins)]
    edges, rates = gathered(rows, "bytes")
    assert sum(rate == 0 for rate in rates) <= 3
    assert len(rates) >= 24
    assert sum(rate * (end - start) for rate, (start, end) in zip(rates, pairwise(edges), strict=True)) == 400


def test_a_short_step_is_named_above_its_band():
    """Ten steps of which the last is a thousandth of the run: its name stands near the right end."""
    steps = [row("long", 0, 999), row("short", 999, 1000), row("all", 999, 1000, kind="synchronize")]
    made = bands({"steps": steps, "makespan_ns": 1000.0}, 10.0)
    assert [(band.name, bool(band.size)) for band in made.bands] == [("long", True), ("short", False)]
    ((called, at),) = made.callouts
    assert called.name == "short"
    assert 9 < at < 10
    assert made.height > bands({"steps": steps[:1], "makespan_ns": 1000.0}, 10.0).height


def test_names_above_narrow_bands_do_not_overlap():
    steps = [row(f"a_longer_name_{n}", 500 + 5 * n, 505 + 5 * n) for n in range(7)] + [row("rest", 0, 1000)]
    made = bands({"steps": steps, "makespan_ns": 1000.0}, 10.0)
    spans = [
        (at - text_width(band.name, 11) / 2, at + text_width(band.name, 11) / 2) for band, at in made.callouts
    ]
    assert spans
    assert spans[0][0] >= 0
    assert spans[-1][1] <= 10.0
    assert all(left[1] < right[0] for left, right in pairwise(spans))


def test_time_before_the_first_step_is_allocation():
    made = bands({"steps": [row("work", 400, 1000)], "makespan_ns": 1000.0}, 10.0)
    assert next((band.name, band.start_ns, band.end_ns) for band in made.bands) == ("allocation", 0.0, 400)


def row(name, start, end, kind="launch"):
    return {"name": name, "path": name, "process": "app", "kind": kind, "start_ns": start, "end_ns": end,
            "duration_ns": end - start, "bytes": 8}  # fmt: skip


def test_a_peak_that_dwarfs_the_rest_is_drawn_on_a_logarithmic_scale(scenario):
    data = synthetic.first_touch()
    flat = plots.figure(Result.from_run(scenario, data), "throughput")
    assert {axes.get_yscale() for axes in flat.axes} == {"linear"}
    at, link = next((at, use) for at, use in enumerate(data.uses) if use.name == "gpu[0].pcie.h2d")
    moved = list(link.bytes_per_bin)
    moved[max(place for place, size in enumerate(moved) if size)] *= 1000
    data.uses[at] = replace(link, bytes=sum(moved), bytes_per_bin=moved)
    steep = plots.figure(Result.from_run(scenario, data), "throughput")
    assert "log" in {axes.get_yscale() for axes in steep.axes}
    assert "GB/s, log" in {axes.get_ylabel() for axes in steep.axes}


def test_titles_break_into_even_lines_that_fit():
    lines = wrapped("Half of the faults take 2.20 ms or less, 1 % take more than 5.42 ms", 21, 8, bold=True)
    assert len(lines) == 2
    assert all(text_width(line, 21, bold=True) <= 8 for line in lines)
    assert "5.42\u00a0ms" in lines[-1]


def test_axes_have_units_that_suit_them():
    assert time_unit(5e9) == (1e9, "s")
    assert time_unit(1.5e9) == (1e6, "ms")
    assert time_unit(3e4) == (1e3, "µs")
    assert time_unit(10) == (1.0, "ns")
