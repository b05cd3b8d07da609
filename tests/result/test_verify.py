"""Checks find what they are for."""

import copy
import dataclasses

import pytest

from gpusim.result import Result
from gpusim.result.verify import verify
from tests import synthetic


def broken(result):
    return [check.law for check in result.verify() if not check.ok]


@pytest.mark.parametrize(
    "make",
    [
        synthetic.first_touch,
        synthetic.blur,
        synthetic.resident,
        lambda: synthetic.resident(record="off"),
        synthetic.died,
    ],
)
def test_sound_runs_pass_every_check(scenario, make):
    assert broken(Result.from_run(scenario, make())) == []


def test_a_big_table_that_was_binned_passes_too(scenario, monkeypatch):
    monkeypatch.setattr("gpusim.result.tables.TABLE_LIMIT_BYTES", 2**16)
    from gpusim.result.tables import build

    data = synthetic.first_touch()
    result = Result.from_run(scenario, data)
    result.tables = build(data, limit_bytes=2**16)
    assert (result.tables["faults"]["count"] > 1).any()
    assert broken(result) == []


def test_a_fault_whose_pieces_do_not_tile_is_found(scenario):
    data = synthetic.first_touch()
    data.tables["faults"]["fault_queue_ps"][17] += 5000
    assert broken(Result.from_run(scenario, data)) == ["the pieces of every fault tile its latency"]


def test_a_latency_that_is_not_from_raised_to_replayed_is_found(scenario):
    data = synthetic.first_touch()
    for name in ("latency_ps", "fault_queue_ps"):
        data.tables["faults"][name][3] += 5000
    assert broken(Result.from_run(scenario, data)) == ["latency is from raised to replayed"]


def test_steps_of_a_fault_out_of_order_are_found(scenario):
    data = synthetic.first_touch()
    data.tables["faults"]["mapped_ps"][3] = 0
    assert broken(Result.from_run(scenario, data)) == ["raised, started, mapped, replayed follow each other"]


def test_faults_that_nobody_counted_are_found(scenario):
    data = synthetic.first_touch()
    data.faults[0].counts["serviced"] -= 1
    assert broken(Result.from_run(scenario, data)) == ["every serviced fault is on record"]


def test_bytes_that_vanish_are_found(scenario):
    data = synthetic.first_touch()
    data.tables["migrations"]["bytes"][0] += 4096
    assert broken(Result.from_run(scenario, data)) == ["migrated bytes are the sum of the migrations"]


def test_a_link_beyond_its_capacity_is_found(scenario):
    data = synthetic.first_touch()
    use = data.uses[0]
    moved = [part * 20 for part in use.bytes_per_bin]
    busy = [part * 20 for part in use.busy_ps_per_bin]
    data.uses[0] = dataclasses.replace(use, bytes=sum(moved), bytes_per_bin=moved, busy_ps_per_bin=busy)
    found = broken(Result.from_run(scenario, data))
    assert "nothing carries more than its capacity" in found
    assert "nothing is in use for longer than time passes" in found


def test_a_summary_that_was_tampered_with_is_found(first_touch):
    summary = copy.deepcopy(first_touch.summary)
    summary["attribution"]["hbm"] += 0.1
    summary["faults"]["raised"] += 1
    summary["steps"][0]["end_ns"] *= 10
    laws = [check.law for check in verify(summary, first_touch.tables) if not check.ok]
    assert "the breakdown of the run sums to 100 %" in laws
    assert "raised faults are the sum of their fates" in laws
    assert "every step lies within the run" in laws


def test_spans_are_checked_when_they_are_there(scenario):
    data = synthetic.with_spans(synthetic.first_touch())
    data.tables["spans"]["end_ps"][5] = 0
    data.tables["spans"]["released_by"][5] = 10**6
    found = broken(Result.from_run(scenario, data))
    assert found == ["every span ends after it starts", "every link of a span leads to a span"]
