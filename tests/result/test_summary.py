"""summary.json: the contract that scripts rely on."""

import json
import math

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusim.errors import InvariantError
from gpusim.kinds import Kind
from gpusim.machine.hipfiles import io_totals
from gpusim.result import Result
from gpusim.result.numbers import latency_block
from gpusim.result.schema import summary_schema
from gpusim.result.summary import build
from gpusim.runtime.io_log import IoLog
from tests import synthetic

RUNS = {
    "first touch": synthetic.first_touch,
    "ranks and repeats": synthetic.blur,
    "nothing faults": synthetic.resident,
    "recording off": lambda: synthetic.resident(record="off"),
    "died": synthetic.died,
    "spans": lambda: synthetic.with_spans(synthetic.first_touch()),
}


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_every_run_keeps_the_schema(scenario, make):
    text = Result.from_run(scenario, make()).to_json()
    jsonschema.validate(json.loads(text), summary_schema(), jsonschema.Draft202012Validator)


def test_the_contract_names_the_keys_of_the_design():
    wanted = {
        "schema_version", "scenario", "question", "answer", "bound_by", "formula", "outcome", "processes",
        "makespan_ns", "steps", "faults", "migrations", "links", "io", "attribution", "seed", "version",
        "not_modelled", "engine",
    }  # fmt: skip
    assert wanted <= set(summary_schema()["required"])


def test_times_are_nanoseconds_and_rates_are_decimal_gigabytes(first_touch):
    step = next(row for row in first_touch.summary["steps"] if row["name"] == "fill")
    assert step["duration_ns"] == 1_100_000_000
    assert step["bandwidth_gb_per_s"] == pytest.approx(4 * 2**30 / 1.1 / 1e9)


def test_raised_faults_are_the_sum_of_the_others_everywhere(blur):
    faults = blur.summary["faults"]
    for block in (faults, *faults["per_gpu"].values(), *faults["per_process"].values()):
        others = [value for key, value in block.items() if isinstance(value, int) and key != "raised"]
        assert block["raised"] == sum(others)


def test_per_gpu_and_per_process_are_parts_of_the_whole(blur):
    faults = blur.summary["faults"]
    assert set(faults["per_gpu"]) == {"gpu0", "gpu1", "gpu2", "gpu3"}
    for split in ("per_gpu", "per_process"):
        blocks = faults[split].values()
        assert sum(block["serviced"] for block in blocks) == faults["serviced"]
        assert sum(block["latency_ns"]["count"] for block in blocks) == faults["latency_ns"]["count"]


def test_a_counter_that_nobody_keeps_is_absent_not_zero(scenario):
    faults = build(scenario, synthetic.resident())["faults"]
    assert "filtered" not in faults
    assert faults["serviced"] == 0


def test_attribution_sums_to_one_and_covers_steps_too(first_touch):
    summary = first_touch.summary
    assert math.isclose(sum(summary["attribution"].values()), 1, abs_tol=1e-12)
    for step in summary["steps"]:
        assert math.isclose(sum(step["attribution"].values()), 1, abs_tol=1e-12)


def test_without_recording_there_is_no_attribution(scenario):
    summary = build(scenario, synthetic.resident(record="off"))
    assert summary["attribution"] is None
    assert summary["steps"][0]["attribution"] is None
    assert summary["faults"]["latency_ns"] is None


def test_a_breakdown_that_misses_a_picosecond_is_a_bug_of_ours(scenario):
    data = synthetic.first_touch()
    data.attribution[Kind.SYNC] += 1
    with pytest.raises(InvariantError, match="not to"):
        build(scenario, data)


def test_an_unknown_counter_is_a_bug_of_ours(scenario):
    data = synthetic.resident()
    data.faults[0].counts["forgotten"] = 3
    with pytest.raises(InvariantError, match="forgotten"):
        build(scenario, data)


def test_what_differs_from_run_to_run_is_under_engine(scenario):
    first, second = synthetic.first_touch(), synthetic.first_touch()
    second.engine = {"events": 1, "wall_s": 99.0}
    one, two = build(scenario, first), build(scenario, second)
    assert one.pop("engine") != two.pop("engine")
    assert one == two


def test_io_that_is_not_modelled_is_empty_not_zero(scenario):
    data = synthetic.first_touch()
    del data.tables["io"]
    result = Result.from_run(scenario, data)
    assert result.summary["io"] == {}
    jsonschema.validate(result.summary, summary_schema(), jsonschema.Draft202012Validator)
    assert not any(name.startswith("io.") for name in result.metrics())


def test_io_that_did_not_happen_is_zero_requests(first_touch):
    block = first_touch.summary["io"]["fastpath"]["read"]
    assert block["requests"] == 0
    assert block["bandwidth_gb_per_s"] is None
    assert block["latency_ns"]["p50"] is None


def test_io_is_reported_by_path_and_direction(scenario):
    data = synthetic.resident()
    log = IoLog(kinds=len(Kind), keep_all=False)
    reads = log.of("app", "fastpath", False)
    reads.add(0, 1_000_000, 1000, "accepted")
    reads.add(500_000, 2_000_000, 3000, "accepted")
    log.of("app", "fallback", True).add(0, 10_000, 7, "size is not aligned")
    data.tables["io"] = log.table()
    data.io = io_totals(log, limits=lambda *_: {"drive": 0.5, "link": 0.75}, recorded=True)
    io = build(scenario, data)["io"]
    block = io["fastpath"]["read"]
    assert block["requests"] == 2
    assert block["bandwidth_gb_per_s"] == 4000 / 2000  # bytes over ns, requests overlap
    assert (block["latency_ns"]["p50"], block["latency_ns"]["max"]) == (1000, 1500)
    assert (block["first_call_ns"], block["later_calls_ns"]) == (1000, 1500)
    assert block["limited_by"] == "link"
    assert io["fallback"]["write"]["bytes"] == 7
    assert io["fallback"]["write"]["reasons"] == {"size is not aligned": 1}
    assert "posix" not in io


def test_percentiles_are_nearest_rank():
    block = latency_block([value * 1000 for value in range(1, 101)])
    assert (block["p50"], block["p95"], block["p99"], block["max"]) == (50, 95, 99, 100)
    assert block["mean"] == 50.5
    assert latency_block([])["max"] is None
    assert latency_block([7000])["p50"] == 7


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=60))
def test_every_percentile_is_a_value_with_enough_at_or_below_it(latencies):
    block = latency_block(latencies)
    ordered = sorted(latencies)
    for percent in (50, 95, 99):
        at_or_below = sum(value / 1000 <= block[f"p{percent}"] for value in ordered)
        assert block[f"p{percent}"] in [value / 1000 for value in ordered]
        assert at_or_below * 100 >= percent * len(ordered)
    assert block["mean"] == pytest.approx(sum(latencies) / len(latencies) / 1000, rel=1e-12)


def test_a_mean_of_long_latencies_does_not_overflow():
    hour_ps = 3600 * 10**12
    assert latency_block(np.full(10_000, hour_ps))["mean"] == hour_ps / 1000
