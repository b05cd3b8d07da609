"""The search itself: all combinations or Optuna, budgets, seeds, crossovers, and what it says of the optimum."""

import dataclasses
import sys

import pytest

import gpusim as gs
from gpusim.errors import InputError
from gpusim.report import recommend as report
from gpusim.scenario.resolve import resolve

US = 1e3  # ns


@pytest.fixture(scope="module")
def waits(make):
    """A program that sleeps: its makespan is the sum of its sleeps, and three parameters choose them."""
    steps = "\n".join(
        f'    - {{name: {name}{size}, sleep: {{duration: {size}us}}, when: "${{{name}}} == {size}"}}'
        for name in ("a", "b", "c")
        for size in (5, 1, 3)
    )
    return make(f"threads:\n  main:\n{steps}", more="parameters: {a: 5, b: 5, c: 5}\n")


OVER = {f"parameters.{name}": [1, 3, 5] for name in "abc"}


def values(found):
    return report.as_data(found)


def test_all_combinations_are_tried_where_they_are_few(waits):
    found = gs.recommend(waits, over=OVER)
    assert found.exhaustive
    assert found.combinations == 27
    assert len(found.ranking) == 27
    assert found.best.value == pytest.approx(3 * US)
    assert found.best.changed == {f"parameters.{name}": "1" for name in "abc"}
    assert found.own.value == pytest.approx(15 * US)
    assert found.gain == pytest.approx(12 / 15)
    assert [one.value for one in found.ranking] == sorted(one.value for one in found.ranking)


def test_flatness_counts_who_comes_near(waits):
    """3, 5, 5, 5, 7, ... microseconds: nobody is within 5 % of the best."""
    assert gs.recommend(waits, over=OVER).within == {"1 %": 1, "5 %": 1}
    same = gs.recommend(waits, over={"parameters.a": [5, 3], "limits.simulated_time": ["1s", "2s"]})
    assert same.within == {"1 %": 3, "5 %": 3}


def test_each_knob_is_turned_at_the_best(waits):
    found = gs.recommend(waits, over={"parameters.a": [1, 3], "parameters.b": [1]})
    effects = {(one.knob, one.label): one.behind for one in found.effects}
    assert effects == {
        ("parameters.a", "3"): pytest.approx(2 / 7),
        ("parameters.a", "5"): pytest.approx(4 / 7),
        ("parameters.b", "5"): pytest.approx(4 / 7),
    }


def test_among_equals_the_one_that_changes_least_is_best(waits):
    found = gs.recommend(waits, over={"parameters.a": [3], "limits.simulated_time": ["1s"]})
    assert found.best.changed == {"parameters.a": "3"}


def test_a_search_finds_the_best_of_many_within_its_budget(waits):
    found = gs.recommend(waits, over=OVER | {"limits.simulated_time": ["1s", "2s", "3s"]}, budget=40)
    assert not found.exhaustive
    assert found.runs <= 40
    assert found.best.value == pytest.approx(3 * US)


def test_the_same_seed_gives_the_same_answer_whatever_the_workers(waits):
    more = {"over": OVER | {"limits.simulated_time": ["1s", "2s", "3s"]}, "budget": 30}
    once = values(gs.recommend(waits, **more))
    assert values(gs.recommend(waits, **more)) == once
    assert values(gs.recommend(waits, workers=2, **more)) == once


def test_a_search_without_optuna_says_what_is_missing(waits, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"not installed.*gpusim\[recommend\]"):
        gs.recommend(waits, over=OVER, budget=20)
    assert gs.recommend(waits, over=OVER).best is not None  # all of them need no search


def test_a_difference_within_chance_is_no_reason_to_change(managed):
    """A kernel that draws its addresses, and a setting that does nothing: both answers have the same draws."""
    scenario = managed.with_(
        **{"kernels.scale": {"pattern": "random"}, "processes.app.buffers.x.size": "2MiB"}
    )
    found = gs.recommend(scenario, over={"limits.simulated_time": ["9s"]}, only=["over"])
    assert found.seeds_matter
    assert found.best.runs == 5
    assert found.best.changed == {}
    other = next(one for one in found.ranking if one.changed)
    assert other.difference.mean == 0
    assert other.difference.significant is False


def test_replications_pair_runs_of_one_seed(managed):
    found = gs.recommend(managed, only=["xnack", "prefetch"], replications=3)
    assert found.seeds_matter
    assert found.own.runs == 3
    assert found.best.difference.pairs == 3
    assert found.best.difference.significant
    assert found.certain
    alone = gs.recommend(managed, only=["xnack", "prefetch"], replications=1)
    assert alone.best.difference.half_width is None


# -- crossover ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copy_or_wait(make):
    """Copy x from pinned memory, or do something else that takes 1 ms."""
    return make(
        """
buffers: {h: {size: "${size}", allocator: hipHostMalloc}, d: {size: 64MiB, allocator: hipMalloc}}
threads:
  main:
    - {name: copy, memcpy: {dst: d, src: h}, when: "${how} == copy"}
    - {name: other, sleep: {duration: 1ms}, when: "${how} == other"}
""",
        more="parameters: {how: copy, size: 1MiB}\n",
    )


def test_a_crossover_lies_where_the_closed_form_has_it(copy_or_wait):
    machine = resolve(copy_or_wait).parameters
    setup, rate = (machine[path].value for path in ("gpu.sdma.copy_h2d", "link.h2d"))
    size = (1e-3 - setup * 1e-12) * rate
    found = gs.recommend(
        copy_or_wait,
        over={"parameters.how": ["copy", "other"]},
        only=["over"],
        crossovers={"parameters.size": ["64KiB", "64MiB"]},
    )
    (crossing,) = found.crossovers[0].crossings
    assert crossing.at == pytest.approx(size, rel=0.02)
    assert (crossing.below, crossing.above) == ("parameters.how: copy", "parameters.how: other")
    low, high = (gs.quantity.parse_size(text) for text in (crossing.low, crossing.high))
    assert low <= size * 1.01
    assert high >= size * 0.99


def test_how_often_a_buffer_is_read_decides_between_zero_copy_and_migration(managed):
    """p reads across the link against one migration and p reads of HBM."""
    times = {}
    for mode in ("0", "1"):
        for passes in (1, 40):
            run = gs.run(managed, set={"processes.app.env.HSA_XNACK": mode, "kernels.scale.passes": passes})
            times[mode, passes] = run.metric("makespan_ns")
    slope = {mode: (times[mode, 40] - times[mode, 1]) / 39 for mode in ("0", "1")}
    passes = 1 + (times["1", 1] - times["0", 1]) / (slope["0"] - slope["1"])
    found = gs.recommend(
        managed, only=["xnack"], crossovers={"kernels.scale.passes": [1, 200]}, replications=1
    )
    (crossing,) = found.crossovers[0].crossings
    assert crossing.at == pytest.approx(passes, abs=1.5)
    assert crossing.below == "XNACK of app: off"
    assert int(crossing.high) - int(crossing.low) == 1


def test_a_range_without_a_crossover_says_who_is_best_all_along(waits):
    found = gs.recommend(waits, over={"parameters.a": [1]}, crossovers={"parameters.b": [1, 5]})
    assert found.crossovers[0].crossings == ()
    assert {words for _, words, _ in found.crossovers[0].points} == {"parameters.a: 1"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"metric": "steps.nothing.duration_ns"}, "there is no step 'nothing'"),
        ({"metric": "steps.a5.duration"}, "a step has no 'duration'"),
        ({"metric": "makespan"}, "not a metric"),
        ({"metric": "outcome"}, "is no number"),
        ({"over": {"seed": [1]}}, "is no setting"),
        ({"crossovers": {"seed": [1, 9]}}, "is no setting"),
        ({"only": ["xnak"]}, "did you mean 'xnack'"),
        ({"over": {"parameters.d": [1]}}, "no such path"),
        ({"over": {"processes.app.threads": [1]}}, "no single value"),
        ({"over": {"processes.app.threads.main.a5.sleep.duration": ["5 bananas"]}}, "bananas"),
        ({"budget": 1}, "budget is too small"),
        ({"crossovers": {"parameters.a": [5, 1]}}, "from a lower to a higher"),
        ({"crossovers": {"parameters.a": [1, "2ms"]}}, "two amounts of one kind"),
        ({"crossovers": {"parameters.a": [1]}}, "two amounts of one kind"),
    ],
)
def test_what_does_not_exist_is_refused_with_its_name(waits, more, words):
    with pytest.raises(InputError, match=words):
        gs.recommend(waits, **({"over": {"parameters.a": [1]}} | more))


def test_a_metric_that_no_run_can_have_is_refused_before_any_run(waits, monkeypatch):
    ran = []
    monkeypatch.setattr("gpusim.study.recommend.trials.simulated", lambda *args, **keys: ran.append(args))
    with pytest.raises(InputError, match="metric: there is no step 'nothing'"):
        gs.recommend(waits, over={"parameters.a": [1, 2]}, metric="steps.nothing.duration_ns")
    assert not ran


def test_where_nothing_can_be_set_that_is_said(waits):
    with pytest.raises(InputError, match="nothing can be set"):
        gs.recommend(waits)


def test_the_object_shows_its_table_and_leads_back_to_a_scenario(waits):
    found = gs.recommend(waits, over=OVER)
    assert len(found.table) == 27
    assert found.table["makespan_ns"].is_monotonic_increasing
    again = gs.run(found.recommended())
    assert again.metric("makespan_ns") == found.best.value
    words = found._repr_html_()
    assert "parameters.a: 1" in words
    assert "80.0 % better" in words
    assert dataclasses.is_dataclass(found)
