"""How sure an answer is: draws from the ranges of a profile, repeatable, and against closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

import gpusim as gs
from gpusim.errors import InputError
from gpusim.scenario import loader
from gpusim.scenario.resolve import resolve
from gpusim.study.uncertainty import draws as drawing
from gpusim.study.uncertainty import ranks, uncertainty
from gpusim.study.uncertainty.study import Task, run

COPY = """
version: 1
name: copy
system: {node: mi210-pcie4, gpus: 1}
processes:
  - name: app
    buffers:
      h: {size: 16MiB, allocator: hipHostMalloc}
      d: {size: 16MiB, allocator: hipMalloc}
    threads:
      main: [{name: copy, memcpy: {dst: d, src: h}}]
expect:
  - {metric: steps.copy.duration_ns, value: 1ms, tolerance: 1%, source: a guess, kind: predicted}
"""


@pytest.fixture(scope="module")
def copy():
    return loader.loads(COPY)


@pytest.fixture(scope="module")
def found(copy):
    return uncertainty(gs.run(copy), draws=24)


def test_each_draw_gives_what_the_closed_form_says(copy, found):
    """A pinned copy takes its setup and its bytes over the link; the setup is what is uncertain of it."""
    rate = resolve(copy).parameters["link.h2d"].value
    for _, row in found.draws.iterrows():
        expected = row["gpu.sdma.copy_h2d"] / 1e3 + (16 << 20) / rate * 1e9
        assert row["steps.copy.duration_ns"] == pytest.approx(expected, rel=1e-3)
    low, high = resolve(copy).parameters["gpu.sdma.copy_h2d"].range
    assert found.band["max"] - found.band["min"] == pytest.approx((high - low) / 1e3, rel=0.2)


def test_the_answer_hangs_on_the_setup_alone(copy, found):
    (hangs,) = found.parameters
    assert hangs.path == "gpu.sdma.copy_h2d"
    assert hangs.rank_correlation == pytest.approx(1, abs=0.01)
    assert hangs.regression == pytest.approx(1, abs=0.01)
    assert found.explained == pytest.approx(1, abs=0.02)
    low, high = resolve(copy).parameters["gpu.sdma.copy_h2d"].range
    assert hangs.at_high - hangs.at_low == pytest.approx((high - low) / 1e3)
    assert found.metric == "steps.copy.duration_ns"
    assert found.value == gs.run(copy).metric(found.metric)


def test_the_same_seed_gives_the_same_band_whatever_the_workers(copy):
    result = gs.run(copy)
    once = uncertainty(result, draws=4).as_summary()
    assert uncertainty(result, draws=4, workers=2).as_summary() == once
    assert once["parameters"] == []  # four draws say nothing of what the answer hangs on
    found = drawing.Uncertainties.of(resolve(copy).parameters)
    assert (found.sample(0, 4) != found.sample(8, 4)).any()


def test_what_has_no_range_is_held_and_said(found):
    assert found.held["gpu.utcl1.entries"] == "fitted, without a range"
    assert found.held["gpu.l2.indexing"] == "fitted, a choice that has no range"
    assert found.held["gpu.compute.xnack_vgprs"] == "assumed, and its range is a single value"
    assert "link.h2d" not in found.held  # measured
    assert "link.h2d" not in found.draws


def test_what_the_scenario_overrides_is_not_drawn(copy):
    fixed = copy.with_(overrides={"gpu.sdma.copy_h2d": "9us"})
    sure = uncertainty(gs.run(fixed), draws=4)
    assert "gpu.sdma.copy_h2d" not in sure.draws
    assert sure.band["min"] == sure.band["max"] == sure.value
    assert sure.parameters == ()


def test_draws_that_do_not_complete_are_counted_and_left_out(copy):
    """The limit lies where a setup of about 15 us reaches it."""
    base = gs.run(copy)
    middle = base.metric("makespan_ns") + 3e3
    limited = copy.with_(**{"limits.simulated_time": f"{round(middle)}ns"})
    found = uncertainty(gs.run(limited), draws=7)
    assert set(found.outcomes) == {"completed", "limit"}
    assert sum(found.outcomes.values()) == 7
    assert found.draws["outcome"].value_counts().to_dict() == dict(found.outcomes)
    assert found.band["max"] <= middle


def test_numbers_that_make_no_machine_keep_their_value(copy):
    drawn = run(copy, Task(0, {"link.coupling": 1.5, "gpu.sdma.copy_h2d": "10us"}, "makespan_ns"))
    assert drawn.held == ("link.coupling",)
    assert drawn.outcome == "completed"


# -- distributions -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers(copy):
    found = drawing.Uncertainties.of(resolve(copy).parameters)
    return {one.path: one for one in found.drawn}


def test_half_of_the_draws_lie_on_each_side_of_the_value(numbers):
    for one in numbers.values():
        drawn = [one.at(part) for part in (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0)]
        assert all(one.low <= number <= one.high for number in drawn)
        assert drawn == sorted(drawn)
        if one.low < one.value < one.high:
            assert drawn[4] == pytest.approx(one.value)


def test_a_side_of_several_magnitudes_is_drawn_by_magnitude(numbers):
    migrate = numbers["driver.costs.migrate"]  # 6 us, 0 to 21 ms
    assert migrate.at(0.75) == pytest.approx(math.sqrt(migrate.value * migrate.high), rel=1e-6)
    assert migrate.at(0.25) == pytest.approx(migrate.value / 2)


def test_table_sizes_stay_powers_of_two_and_counts_whole(numbers):
    entries = numbers["gpu.utcl2.entries"]
    assert {entries.at(part / 50) for part in range(51)} == {1024.0, 2048.0, 4096.0, 8192.0, 16384.0}
    walkers = numbers["gpu.walker.walkers"]
    assert all(walkers.at(part / 9).is_integer() for part in range(10))
    assert walkers.write(26.0) == 26
    assert isinstance(walkers.write(26.0), int)


def test_a_number_has_its_own_draws_whatever_else_is_drawn(copy):
    every = drawing.Uncertainties.of(resolve(copy).parameters)
    fewer = drawing.Uncertainties.of(resolve(copy.with_(overrides={"gpu.sdma.copy_h2d": "9us"})).parameters)
    one, other = every.sample(5, 10), fewer.sample(5, 10)
    assert one.shape[1] == other.shape[1] + 1
    left = [index for index, number in enumerate(every.drawn) if number.path != "gpu.sdma.copy_h2d"]
    np.testing.assert_array_equal(one[:, left], other)


def test_draws_are_spread_over_the_whole_range(copy):
    found = drawing.Uncertainties.of(resolve(copy).parameters)
    sample = found.sample(0, 20)
    assert ((np.sort(sample, axis=0) * 20).astype(int) == np.arange(20)[:, None]).all()


# -- ranks -------------------------------------------------------------------------------------------------------------


def test_rank_correlation_is_spearmans():
    random = np.random.default_rng(1)
    inputs = random.integers(0, 9, (40, 3)).astype(float)  # with ties
    answer = inputs[:, 0] ** 3 - inputs[:, 1] + random.random(40)
    expected = [stats.spearmanr(column, answer).statistic for column in inputs.T]
    np.testing.assert_allclose(ranks.correlations(inputs, answer), expected, atol=1e-12)


def test_regression_explains_what_is_monotonic_and_selection_finds_it():
    random = np.random.default_rng(2)
    inputs = random.random((60, 30))
    answer = np.exp(9 * inputs[:, 7])
    coefficients, explained = ranks.regression(inputs[:, [7]], answer)
    assert coefficients == pytest.approx([1.0])
    assert explained == pytest.approx(1.0)
    both = 10 * inputs[:, 7] + inputs[:, 21]
    assert ranks.selected(inputs, both, 2) == [7, 21]
    assert ranks.selected(inputs, np.ones(60), 5) == []


# -- the public face ---------------------------------------------------------------------------------------------------


def test_a_result_carries_it_and_shows_it(copy, tmp_path):
    result = gs.run(copy, uncertainty=8, out=tmp_path / "out")
    block = gs.open_result(tmp_path / "out").summary["uncertainty"]
    assert block == result.summary["uncertainty"]
    assert block["parameters"][0]["path"] == "gpu.sdma.copy_h2d"
    assert "90 % of the draws within" in result._repr_html_()
    assert "it hangs on gpu.sdma.copy_h2d" in result._repr_html_()
    with pytest.raises(InputError, match="needs more draws"):
        gs.run(copy, uncertainty=1)
