"""The language that names a metric."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpusim as gs
from gpusim.errors import InputError
from gpusim.report import explain
from gpusim.result import Result
from gpusim.result.paths import STATISTICS, statistic, step_name_of, unit_of
from tests import synthetic


def test_every_listed_metric_has_a_value(first_touch, blur):
    for result in (first_touch, blur):
        names = result.metrics()
        assert len(names) == len(set(names))
        for name in names:
            result.metric(name)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("makespan_ns", None),
        ("outcome", "completed"),
        ("faults.serviced", 2048),
        ("faults.per_gpu.gpu0.serviced", 2048),
        ("migrations.host_to_device.bytes", 4 * 2**30),
        ("links.gpu[0].pcie.h2d.bytes", 4 * 2**30),
        ("resources.gpu[0].sdma[0].bytes", 4 * 2**30),
        ("processes.app.outcome", "completed"),
        ("io.fallback.write.requests", 0),
        ("engine.events", 412_331),
        ("attribution.bounce_copy", 0.0),
        ("steps.fill.duration_ns", 1.1e9),
        ("steps.fill.attribution.sleep", 0.0),
        ("steps.scale.kind", "launch"),
        ("steps.fill[*].duration_ns.mean", 1.1e9),
    ],
)
def test_a_path_gives_its_value(first_touch, path, value):
    found = first_touch.metric(path)
    assert found == value or value is None


def test_links_are_used_as_much_as_their_bins_say(first_touch):
    links = first_touch.tables["links"]
    busy_ns = links.loc[links["name"] == "gpu[0].pcie.h2d", "busy_ns"].sum()
    fraction = first_touch.metric("links.gpu[0].pcie.h2d.busy_fraction")
    assert fraction == pytest.approx(busy_ns / first_touch.metric("makespan_ns"))


def test_slices_and_statistics_over_repeats(scenario):
    result = Result.from_run(scenario, synthetic.blur(ranks=1))
    durations = [row["duration_ns"] for row in result.summary["steps"]]
    assert result.metric("steps.blur[0].duration_ns") == durations[0]
    assert result.metric("steps.blur[-1].duration_ns") == durations[-1]
    assert result.metric("steps.blur[1:100].duration_ns.mean") == pytest.approx(sum(durations[1:]) / 99)
    assert result.metric("steps.blur[*].duration_ns.max") == durations[0]
    assert result.metric("steps.blur[::2].duration_ns.count") == 50
    assert result.metric("steps.blur[:3].duration_ns.sum") == pytest.approx(sum(durations[:3]))
    assert result.metric("steps.blur[1:].attribution.hbm.min") == pytest.approx(0.93)


def test_ranks_are_the_last_index(blur):
    one = blur.metric("steps.blur[0][2].duration_ns")
    assert one == 128.4e6
    assert blur.metric("steps.blur[0].duration_ns.count") == 4
    assert blur.metric("steps.blur[*][3].duration_ns.count") == 100
    assert blur.metric("processes.app[3].outcome") == "completed"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("makespan", "makespan_ns"),
        ("faults.servced", "faults.serviced"),
        ("links.gpu[0].pcie.h2d.busy_fractoin", "links.gpu[0].pcie.h2d.busy_fraction"),
        ("steps.scael.duration_ns", "steps.scale.duration_ns"),
        ("steps.scale.duration", "steps.scale.duration_ns"),
        ("attribution.recent_skipp", "attribution.recent_skip"),
        ("processes.ap.outcome", "processes.app.outcome"),
        ("nonsense", "begins with"),
        ("steps", ""),
        ("", ""),
        ("faults", ""),
    ],
)
def test_an_unknown_metric_names_the_nearest(first_touch, path, words):
    with pytest.raises(InputError) as caught:
        first_touch.metric(path)
    assert "no such metric" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("steps.blur.duration_ns", "names 400 steps"),
        ("steps.blur[1:3].duration_ns", "end it in a statistic"),
        ("steps.blur[0].duration_ns", "names 4 steps"),
        ("steps.blur[0][0][0].duration_ns", "3 indices"),
        ("steps.blur[900].duration_ns.mean", "selects no step"),
        ("steps.blur[a].duration_ns.mean", "not an index"),
        ("steps.blur[::0].duration_ns.mean", "not an index"),
        ("steps.blur[*].kind.mean", "is text"),
    ],
)
def test_what_cannot_be_one_number_says_why(blur, path, words):
    with pytest.raises(InputError, match=words):
        blur.metric(path)


def test_attribution_that_was_not_recorded_says_so(scenario):
    result = Result.from_run(scenario, synthetic.resident(record="off"))
    for path in ("attribution.hbm", "steps.copy.attribution.hbm"):
        with pytest.raises(InputError, match="not recorded"):
            result.metric(path)


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("makespan_ns", "ns"),
        ("steps.a.duration_ns", "ns"),
        ("steps.a[*].duration_ns.p95", "ns"),
        ("steps.a[*].duration_ns.count", None),
        ("steps.a.bandwidth_gb_per_s", "GB/s"),
        ("steps.a.bytes", "bytes"),
        ("steps.a[*].attribution.hbm.mean", "fraction"),
        ("links.gpu[0].pcie.h2d.busy_fraction", "fraction"),
        ("faults.latency_ns.p99", "ns"),
        ("faults.latency_ns.count", None),
        ("faults.serviced", None),
        ("engine.wall_s", "s"),
        ("engine.peak_rss_bytes", "bytes"),
        ("outcome", None),
    ],
)
def test_a_path_alone_tells_its_unit(path, unit):
    assert unit_of(path) == unit


def test_the_step_of_a_path():
    assert step_name_of("steps.blur[1:3].duration_ns.mean") == "blur"
    assert step_name_of("steps.a-b.attribution.hbm.mean") == "a-b"
    assert step_name_of("makespan_ns") is None


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_statistics_stay_within_the_values(values):
    for name in ("min", "max", "mean", "p50", "p95", "p99"):
        assert min(values) - 1e-3 <= statistic(values, name) <= max(values) + 1e-3
    assert statistic(values, "count") == len(values)


def test_statistics_of_nothing():
    assert statistic([], "count") == 0
    assert all(statistic([], name) is None for name in STATISTICS if name != "count")


UNNAMED = """
version: 1
name: unnamed
system: {node: mi210-pcie4, gpus: 1}
processes:
  - name: app
    count: RANKS
    threads:
      main:
        - sleep: {duration: 1ms}
        - sleep: {duration: 3ms}
        - repeat: {times: 2, steps: [sleep: {duration: 4ms}]}
        - parallel: {branches: [[sleep: {duration: 2ms}], [sleep: {duration: 2ms}]]}
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_steps_without_names_can_be_asked_for_together(ranks, tmp_path):
    scenario = gs.load(UNNAMED.replace("RANKS", str(ranks)))
    result = gs.run(scenario, out=tmp_path / "out")  # with all pictures
    assert result.metric("steps.sleep[*].duration_ns.sum") == ranks * 16e6
    assert result.metric("steps.sleep[*].duration_ns.count") == ranks * 6
    assert result.metric("steps.sleep.duration_ns.max") == 4e6
    if ranks == 1:
        assert result.metric("steps.sleep[1].duration_ns") == 4e6
    with pytest.raises(InputError, match="names of their own"):
        result.metric("steps.sleep.duration_ns")
    names = result.metrics()
    assert len(names) == len(set(names))
    for name in names:
        result.metric(name)
    assert all(check.ok for check in result.verify())
    data = explain.as_json(result)
    assert [(step["name"], step["count"]) for step in data["steps"] if step["kind"] == "sleep"] == [
        ("sleep", ranks * 6)
    ]
    assert explain.explanation(result)
    row = gs.sweep(scenario, over={"seed": [1]}).iloc[0]
    assert row["steps.sleep[*].duration_ns.max"] == 4e6
    for name in row.index:
        if name.startswith("steps."):
            assert result.metric(name) == row[name] or (
                result.metric(name) is None and row[name] != row[name]
            )
