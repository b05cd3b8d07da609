"""Where the time went, in words and as data."""

import json

from gpusim.report import explain
from gpusim.report.console import rendered
from gpusim.result import Result
from tests import synthetic
from tests.report.test_terminal import Terminal


def shown(result, **more):
    return rendered(explain.explanation(result, **more), Terminal())


def test_it_goes_from_the_run_to_the_steps_to_a_fault(first_touch):
    text = shown(first_touch)
    order = ["bound by", "Where", "What these are", "Step by step", "The life of a fault", "In use", "note:"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "The driver drops faults of a range" in text


def test_the_pieces_of_the_mean_and_the_slowest_fault_are_all_there(first_touch):
    data = explain.as_json(first_touch)
    faults = first_touch.tables["faults"]
    assert sum(data["fault"]["mean"].values()) == _close(faults["latency_ns"].mean())
    assert sum(data["fault"]["slowest"].values()) == _close(faults["latency_ns"].max())


def test_without_spans_it_says_how_to_get_them(first_touch):
    assert "--record spans" in shown(first_touch)


def test_with_spans_it_says_what_waits_for_others(scenario):
    result = Result.from_run(scenario, synthetic.with_spans(synthetic.first_touch()))
    assert "of it waiting for others" in shown(result)


def test_checks_are_listed_with_their_numbers(first_touch):
    text = shown(first_touch, checks=first_touch.verify())
    assert "the pieces of every fault tile its latency" in text
    assert "BROKEN" not in text


def test_a_broken_law_stands_out(scenario):
    data = synthetic.first_touch()
    data.tables["faults"]["fault_queue_ps"][0] += 10**6
    result = Result.from_run(scenario, data)
    assert "BROKEN" in shown(result, checks=result.verify())


def test_json_is_strict_and_holds_the_breakdown(first_touch, blur, scenario):
    results = [first_touch, blur, Result.from_run(scenario, synthetic.resident(record="off"))]
    for result in results:
        data = json.loads(json.dumps(explain.as_json(result, result.verify()), allow_nan=False))
        assert data["attribution"] == result.summary["attribution"]
        assert all(check["ok"] for check in data["checks"])


def test_a_run_without_recording_is_explained_as_far_as_it_goes(scenario):
    text = shown(Result.from_run(scenario, synthetic.resident(record="off")))
    assert "run with --record summary" in text


def _close(value):
    import pytest

    return pytest.approx(value, rel=1e-9)
