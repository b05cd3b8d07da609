"""Tables in a narrow window: no word is broken, many ranks are gathered, and a sweep says what is best."""

import io
import re

import pandas as pd
import pytest
from rich.console import Console

from gpusim.report import listings, parts
from gpusim.result.expect import Checked
from tests import synthetic


def shown(things, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for thing in things:
        console.print(thing)
    return console.file.getvalue()


def words(text):
    return set(re.findall(r"[A-Za-z_.\[\]:*]{4,}", text))


def rows():
    metric = "steps.blur[1:100][0].duration_ns.mean / steps.blur[0][0].duration_ns"
    first = Checked(
        "one", "MAN041 without its first", metric, None, 0.1, 0.09, -0.1, "5%", "predicted", False
    )
    return [
        first,
        Checked(
            "one", "FAU008", "steps.init[0].duration_ns", "ns", 139.7e6, 128.4e6, -0.08, "10%", "fitted", True
        ),
    ]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_measured_against_simulated_breaks_no_word(width):
    text = shown([parts.checked(rows())], width)
    for word in ("predicted", "fitted", "FAU008", "steps.init[0].duration_ns", "128.4 ms", "OUT"):
        assert word in text
    assert words(text) <= words(shown([parts.checked(rows())], 400)) | {"predicted:", "fitted:"}


def grid(values, answers=None, outcomes=None):
    made = {
        "processes.app.buffers.x.size": [f"{value}MiB" for value in values],
        "parameters.prefetch": [value > 2 for value in values],
        "outcome": outcomes or ["completed"] * len(values),
        "makespan_ns": [1e6 * value for value in values],
        "steps.a_step_with_a_long_name.duration_ns": [2e6 * value for value in values],
        "steps.another_step_with_a_name.duration_ns": [3e6 * value for value in values],
    }
    if answers:
        made |= {"answer.metric": ["steps.x.bandwidth_gb_per_s"] * len(values), "answer.value": answers}
    return pd.DataFrame(made), ["processes.app.buffers.x.size", "parameters.prefetch"]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_sweep_breaks_no_word(width):
    text = shown(listings.sweep(*grid([1, 2, 3])), width)
    assert "completed" in text
    assert "makespan" in text
    assert not {"comple", "prefet", "makes"} & words(text)
    assert max(map(len, text.splitlines())) <= width


def test_a_sweep_says_which_point_is_best_and_by_how_much():
    text = " ".join(shown(listings.sweep(*grid([4, 1, 2])), 200).split())
    assert "Best: size=1MiB, prefetch=False with a makespan of 1.000 ms." in text
    assert "Worst: size=4MiB, prefetch=True with a makespan of 4.000 ms, 4 times as long." in text


def test_of_rates_the_most_is_best():
    text = " ".join(shown(listings.sweep(*grid([4, 1, 2], answers=[5.0, 1.0, 2.0])), 200).split())
    assert "Best by steps.x.bandwidth_gb_per_s: size=4MiB, prefetch=True with 5.000 GB/s." in text
    assert "5 times less" in text


def test_points_that_died_win_nothing():
    found, axes = grid([1, 2, 3], outcomes=["vm_fault", "completed", "completed"])
    text = " ".join(shown(listings.sweep(found, axes), 200).split())
    assert "Best: size=2MiB" in text
    assert "1 of 3 points did not complete." in text
    alone, axes = grid([1, 2], outcomes=["vm_fault", "completed"])
    assert "Best" not in shown(listings.sweep(alone, axes), 200)


def test_axes_are_named_by_what_tells_them_apart():
    axes = ["processes.a.buffers.x.size", "processes.b.buffers.x.size", "seed"]
    assert list(listings.short(axes).values()) == ["a.buffers.x.size", "b.buffers.x.size", "seed"]


def test_a_thousand_ranks_fit_on_a_page(scenario):
    from gpusim.result.summary import build

    summary = build(scenario, synthetic.blur())
    ranks = [
        {"name": f"rank[{n}]", "outcome": "io_error", "error": f"EIO {n % 2}", "end_ns": 1.0}
        for n in range(1024)
    ]
    summary["processes"] = ranks
    block = dict(summary["faults"])
    summary["faults"]["per_process"] = {f"rank[{n}]": block for n in range(1024)}
    summary["notes"] = [f"note {n}" for n in range(1024)]
    text = shown([*parts.header(summary), parts.faults(summary), *parts.remarks(summary)], 100)
    assert len(text.splitlines()) < 40
    assert "rank[0] and 511 more: EIO 0" in text
    assert "more notes in summary.json" in text
