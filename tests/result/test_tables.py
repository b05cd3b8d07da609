"""Tables: nanoseconds, categories, and bins where they would be too big."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gpusim.kinds import Kind
from gpusim.result.schema import kind_column
from gpusim.result.tables import build
from tests import synthetic


@pytest.fixture(scope="module")
def big():
    data = synthetic.first_touch(count=60_000)
    return build(data)["faults"], build(data, limit_bytes=2**20)["faults"]


def test_times_are_nanoseconds(first_touch):
    data = synthetic.first_touch()
    faults = first_touch.tables["faults"]
    np.testing.assert_allclose(faults["latency_ns"], data.tables["faults"]["latency_ps"] / 1000)
    assert not [
        name for table in first_touch.tables.values() for name in table.columns if name.endswith("_ps")
    ]


def test_a_small_table_is_row_by_row(first_touch):
    faults = first_touch.tables["faults"]
    assert len(faults) == 2048
    assert (faults["count"] == 1).all()


def test_a_table_that_is_too_big_is_binned(big):
    whole, binned = big
    assert len(binned) < len(whole) / 2
    assert list(binned.columns) == list(whole.columns)
    assert binned["count"].sum() == len(whole)


def test_binning_keeps_totals_and_means(big):
    whole, binned = big
    for name in ("latency_ns", "recent_skip_ns", "pages", "waiters"):
        assert (binned[name] * binned["count"]).sum() == pytest.approx(whole[name].sum(), rel=1e-9)


def test_binned_pieces_still_tile_the_latency(big):
    _, binned = big
    pieces = [kind_column(kind) for kind in Kind if kind_column(kind) in binned.columns]
    np.testing.assert_allclose(binned[pieces].sum(axis=1), binned["latency_ns"], rtol=1e-9)


def test_binning_keeps_percentiles_within_a_bin_of_durations(big):
    whole, binned = big
    ordered = binned.sort_values("latency_ns")
    reached = ordered["count"].cumsum() / ordered["count"].sum()
    for share in (0.5, 0.95, 0.99):
        found = float(ordered.loc[reached >= share, "latency_ns"].iloc[0])
        assert found == pytest.approx(float(whole["latency_ns"].quantile(share)), rel=0.08)


def test_the_last_bin_of_a_resource_ends_with_the_run(first_touch):
    links = first_touch.tables["links"]
    assert links["end_ns"].max() == pytest.approx(first_touch.metric("makespan_ns"))
    assert links["busy_fraction"].max() <= 1 + 1e-9


def test_steps_have_their_breakdown_beside_them(first_touch):
    steps = first_touch.tables["steps"]
    pieces = [kind_column(kind) for kind in Kind if kind_column(kind) in steps.columns]
    np.testing.assert_allclose(steps[pieces].sum(axis=1), steps["duration_ns"])
    assert '"gpu": "gpu0"' in steps.loc[steps["name"] == "scale", "detail"].iloc[0]


def test_two_actors_of_one_name_stay_apart_by_name_only():
    data = synthetic.with_spans(synthetic.first_touch())
    before = build(data)["spans"]["who"]
    twice = data.tables["actors"]["name"]
    data.tables["actors"]["name"] = [twice[0], twice[0], *twice[2:]]
    who = build(data)["spans"]["who"]
    assert list(who.cat.categories) == [twice[0], *twice[2:]]
    assert (who == twice[0]).sum() == before.isin(twice[:2]).sum()


def test_spans_name_who_and_what(scenario):
    spans = build(synthetic.with_spans(synthetic.first_touch()))["spans"]
    assert set(spans["who"].cat.categories) == {"gpu[0].fault_worker", "gpu[0].wave[3]", "app.main"}
    assert set(spans["kind"]) <= {kind.name.lower() for kind in Kind}
    assert (spans["end_ns"] >= spans["start_ns"]).all()


def test_parameters_come_with_source_and_grade(first_touch):
    parameters = first_touch.tables["parameters"]
    assert set(parameters["grade"]) == {"datasheet", "assumed", "fitted"}
    assert parameters["source"].notna().all()


def test_without_events_there_are_empty_tables_not_missing_ones():
    tables = build(synthetic.resident())
    assert tables["io"].empty
    assert tables["migrations"].empty
    assert isinstance(tables["faults"], pd.DataFrame)
    assert "spans" not in tables


def test_a_column_that_no_schema_knows_is_refused():
    data = synthetic.first_touch(count=4)
    data.tables["faults"]["mystery"] = [1, 2, 3, 4]
    with pytest.raises(ValueError, match="mystery"):
        _ = build(data)["faults"]


def test_bins_may_reach_beyond_64_bits_of_picoseconds():
    data = synthetic.resident()
    bin_ps = 2**62
    data.makespan_ps = 2**63 - 1
    data.uses = [
        replace(data.uses[0], bin_ps=bin_ps, busy_ps_per_bin=[bin_ps, 5, 0, 0], bytes_per_bin=[7, 9, 0, 0])
    ]
    links = build(data)["links"]
    assert links["bytes"].tolist() == [7, 9]
    assert links["end_ns"].tolist() == [bin_ps / 1000, data.makespan_ps / 1000]
    assert links["busy_fraction"].tolist() == [1, 5 / (bin_ps - 1)]
