"""`import gpusim as gs`."""

import pytest

import gpusim as gs
from tests.test_cli import SMALL


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file


def test_every_public_name_is_there_and_listed():
    for name in gs.__all__:
        assert getattr(gs, name) is not None
    assert set(gs.__all__) <= set(dir(gs))
    with pytest.raises(AttributeError, match="no attribute 'simulate'"):
        _ = gs.simulate


def test_the_names_survive_the_import_of_everything_behind_them(small):
    gs.run(small)
    assert callable(gs.run)
    assert callable(gs.sweep)
    assert callable(gs.load)


def test_run_takes_a_file_or_a_scenario_with_changes(small):
    scenario = gs.load(small).with_(**{"parameters.prefetch": True})
    one = gs.run(scenario)
    two = gs.run(small, set={"parameters.prefetch": True})
    three = gs.run(gs.load(small), set={"parameters.prefetch": True}, seed=3)
    assert one.metric("makespan_ns") == two.metric("makespan_ns") == three.metric("makespan_ns")


def test_nothing_is_written_unless_asked_for(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gs.run(small)
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]
    result = gs.run(small, out=tmp_path / "out")
    assert gs.open_result(tmp_path / "out").summary == result.summary


def test_a_wrong_place_is_refused_before_the_run(small, monkeypatch):
    monkeypatch.setattr("gpusim.public.simulated", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(gs.InputError):
        gs.run(small, out="/proc/gpusim")
    with pytest.raises(gs.InputError):
        gs.sweep(small, over={"parameters.prefetch": [True]}, out="/proc/gpusim")


def test_progress_is_called_with_what_reports_need(small):
    seen = []
    gs.run(
        small,
        set={"parameters.size": "2GiB"},
        progress=lambda at: seen.append((at.now_ps, at.events, at.faults, at.wall_s)),
    )
    assert all(isinstance(value, int | float) for reading in seen for value in reading)
