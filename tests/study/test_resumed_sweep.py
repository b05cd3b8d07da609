"""A sweep that was interrupted, or that other machines carry out, has the table of one that was not."""

import json
import subprocess
import sys
import textwrap

import pandas as pd
import pytest

import gpusim as gs
from gpusim.errors import InputError
from gpusim.study import scheduler, sweep
from gpusim.study.runs import simulated

OVER = {"parameters.prefetch": [False, True], "parameters.size": ["1MiB", "2MiB"]}


@pytest.fixture
def interrupted(monkeypatch):
    """The next runs work, then Ctrl-C comes; gives the seeds and sizes that were run."""
    ran = []

    def after(count):
        ran.clear()

        def run(scenario, **more):
            if len(ran) == count:
                raise KeyboardInterrupt
            ran.append(scenario.parameters["size"])
            return simulated(scenario, **more)

        monkeypatch.setattr(sweep, "simulated", run)
        return ran

    return after


def stop(small, out, interrupted, count, **more):
    interrupted(count)
    with pytest.raises(KeyboardInterrupt) as caught:
        gs.sweep(small, over=OVER, out=out, **more)
    return caught.value


def test_what_has_been_run_is_not_run_again(small, tmp_path, interrupted):
    whole = gs.sweep(small, over=OVER, replications=2, out=tmp_path / "whole")
    error = stop(small, tmp_path / "out", interrupted, 3, replications=2)
    assert "3 runs are kept" in error.__notes__[0]
    assert not (tmp_path / "out").exists()
    ran = interrupted(99)
    seen = []
    found = gs.sweep(
        small, over=OVER, replications=2, out=tmp_path / "out", progress=lambda *now: seen.append(now)
    )
    assert len(ran) == 5
    assert seen == [(done, 8) for done in range(4, 9)]
    pd.testing.assert_frame_equal(found, whole)
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "out/points.parquet"), pd.read_parquet(tmp_path / "whole/points.parquet")
    )
    names = {entry.name for entry in tmp_path.iterdir()}
    assert names == {"whole", "out", "small.yaml"}


def test_a_line_that_was_cut_off_is_run_again(small, tmp_path, interrupted):
    stop(small, tmp_path / "out", interrupted, 3)
    kept = tmp_path / "out.rows.jsonl"
    kept.write_text(kept.read_text()[:-40])
    ran = interrupted(99)
    gs.sweep(small, over=OVER, out=tmp_path / "out")
    assert len(ran) == 2


def test_another_scenario_begins_anew(small, tmp_path, interrupted):
    stop(small, tmp_path / "out", interrupted, 3)
    ran = interrupted(99)
    gs.sweep(small, over=OVER, seed=77, out=tmp_path / "out")
    assert len(ran) == 4


def test_a_larger_grid_goes_on_from_a_smaller_one(small, tmp_path, interrupted):
    stop(small, tmp_path / "out", interrupted, 2)
    ran = interrupted(99)
    found = gs.sweep(small, over=OVER | {"parameters.size": ["4MiB", "2MiB", "1MiB"]}, out=tmp_path / "out")
    assert ran == ["4MiB", "4MiB", "2MiB", "1MiB"]
    assert found["parameters.size"].tolist() == ["4MiB", "2MiB", "1MiB"] * 2


def test_what_is_no_journal_is_written_over(small, tmp_path):
    for text in ("", "nonsense\n", '["a list"]\n', json.dumps({"sweep of": "another"}) + "\n"):
        (tmp_path / "out.rows.jsonl").write_text(text)
        assert len(gs.sweep(small, over=OVER, out=tmp_path / "out")) == 4


def test_rows_that_cannot_be_kept_are_said(small, tmp_path):
    (tmp_path / "out.rows.jsonl").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        gs.sweep(small, over=OVER, out=tmp_path / "out")


# -- a cluster ---------------------------------------------------------------------------------------------------------

CLUSTER = """
    import sys
    import gpusim as gs
    from distributed import LocalCluster

    if __name__ == "__main__":
        over = {"parameters.size": ["1MiB", "2MiB", "3MiB"]}
        with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            there = gs.sweep(sys.argv[1], over=over, scheduler=cluster.scheduler_address)
        print("SAME", there.equals(gs.sweep(sys.argv[1], over=over)))
"""


def test_a_cluster_computes_the_same(small, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(CLUSTER))
    done = subprocess.run(
        [sys.executable, script, small], capture_output=True, text=True, timeout=150, check=False
    )
    assert "SAME True" in done.stdout, done.stderr[-2000:]


def test_a_cluster_that_does_not_answer_is_said(small, monkeypatch):
    monkeypatch.setattr(scheduler, "_PATIENCE", "0.2s")
    with pytest.raises(InputError, match=r"--scheduler tcp://127.0.0.1:9: no Dask scheduler answers"):
        gs.sweep(small, over=OVER, scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        gs.sweep(small, over=OVER, scheduler="smoke://signals")


def test_a_cluster_without_the_extra_is_said(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"not installed.*gpusim\[distributed\]"):
        gs.sweep(small, over=OVER, scheduler="tcp://127.0.0.1:9")


class Answering:
    """A client of a cluster whose workers are as told."""

    def __init__(self, workers, versions):
        self.workers, self.versions = workers, versions
        self.closed = False

    def scheduler_info(self, **_):
        return {"workers": self.workers}

    def run(self, _):
        if isinstance(self.versions, Exception):
            raise self.versions
        return self.versions

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (Answering({}, {}), "has no workers"),
        (Answering({"a": 1}, {"a": "0.0.1"}), r"another version of gpusim \(read 0.0.1"),
        (Answering({"a": 1}, ModuleNotFoundError("No module named 'gpusim'")), "cannot import gpusim"),
    ],
)
def test_workers_that_cannot_help_are_said(small, monkeypatch, client, words):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "Client", lambda *_args, **_more: client)
    with pytest.raises(InputError, match=words):
        gs.sweep(small, over=OVER, scheduler="tcp://there:1")
    assert client.closed
