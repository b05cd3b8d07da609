"""What a machine does on which a kind of work takes less time, and what its spans say about that beforehand."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import gpusim as gs
from gpusim.engine.critical import Graph, kinds_on, path
from gpusim.kinds import Kind
from gpusim.simulation import simulate

FOLDER = Path(__file__).parents[2] / "scenarios"


@cache
def scenario(name):
    sets = {
        "first_touch": {"processes.app.buffers.x.size": "512MiB"},
        "prefetch_or_fault": {"processes.app.buffers.x.size": "256MiB", "parameters.prefetch": False},
        "zero_copy": {"parameters.copy": False},
    }
    return gs.load(FOLDER / f"{name}.yaml", set=sets.get(name))


@cache
def spans(name):
    data = simulate(scenario(name), record="spans")
    table = data.tables["spans"]
    return data, np.rec.fromarrays(list(table.values()), names=list(table))


@pytest.mark.parametrize("name", ["explicit_copy", "first_touch", "first_touch_malloc", "prefetch_or_fault"])
def test_walking_the_spans_gives_the_same_critical_path_as_the_chains(name):
    data, table = spans(name)
    rows = path(table["released_by"])
    on_path = kinds_on(table, rows, len(Kind))
    assert on_path == [data.attribution.get(kind, 0) for kind in Kind]
    assert sum(on_path) == data.makespan_ps
    graph = Graph(table)
    assert graph.makespan(graph.lengths) == data.makespan_ps


def paced(kind, pace):
    return [pace if other is kind else 1.0 for other in Kind]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("explicit_copy", Kind.BOUNCE_COPY),
        ("explicit_copy", Kind.SDMA_COPY),
        ("explicit_copy", Kind.HBM),
        ("explicit_copy", Kind.HOST_MEMORY),
        ("first_touch", Kind.RECENT_SKIP),
        ("first_touch", Kind.DEVICE_PAGE),
        ("first_touch_malloc", Kind.BO_CLEAR),
        ("zero_copy", Kind.ZERO_COPY_LINK),
    ],
)
def test_work_at_double_speed_saves_half_its_share_where_nothing_else_is_hidden(name, kind):
    whole = simulate(scenario(name))
    share = whole.attribution[kind]
    assert share > 0.01 * whole.makespan_ps
    faster = simulate(scenario(name), paces=paced(kind, 0.5))
    assert faster.makespan_ps == pytest.approx(whole.makespan_ps - share / 2, rel=0.01)
    assert faster.attribution[kind] == pytest.approx(share / 2, rel=0.03)


def test_a_pace_of_1_changes_nothing():
    whole = simulate(scenario("first_touch"))
    same = simulate(scenario("first_touch"), paces=[1.0] * len(Kind))
    assert same.makespan_ps == whole.makespan_ps
    assert same.attribution == whole.attribution


def test_a_slower_part_takes_longer():
    whole = simulate(scenario("zero_copy"))
    slower = simulate(scenario("zero_copy"), paces=paced(Kind.ZERO_COPY_LINK, 2.0))
    longer = whole.makespan_ps + whole.attribution[Kind.ZERO_COPY_LINK]
    assert slower.makespan_ps == pytest.approx(longer, rel=0.01)
