"""A grid of runs: tidy, complete, and the same however many workers it has."""

import multiprocessing
import subprocess
import sys
import textwrap

import pandas as pd
import pytest

import gpusim as gs
from gpusim.errors import GpusimError, InputError
from gpusim.study import sweep as study

OVER = {"parameters.prefetch": [False, True], "parameters.size": ["4MiB", "8MiB"]}


def test_one_row_per_point_and_replication(small):
    found = gs.sweep(small, over=OVER, replications=2)
    assert len(found) == 8
    assert list(found.columns[:4]) == ["parameters.prefetch", "parameters.size", "replication", "seed"]
    assert found["parameters.size"].tolist() == ["4MiB", "4MiB", "8MiB", "8MiB"] * 2
    assert found["replication"].tolist() == [0, 1] * 4
    assert found["seed"].tolist() == [3, 4] * 4
    assert (found["outcome"] == "completed").all()


def test_columns_are_metrics_of_the_same_run(small):
    found = gs.sweep(small, over={"parameters.prefetch": [True]}).iloc[0]
    result = gs.run(small, set={"parameters.prefetch": True})
    metrics = [name for name in found.index if name.partition(".")[0] not in ("parameters", "replication")]
    assert {"makespan_ns", "steps.scale.duration_ns", "steps.move.bandwidth_gb_per_s"} <= set(metrics)
    assert {"faults.raised", "links.gpu[0].pcie.h2d.busy_fraction"} <= set(metrics)
    for name in metrics:
        value = result.metric(name)
        assert found[name] == value or (pd.isna(found[name]) and value is None), name


def test_attribution_is_complete_at_every_point(small):
    found = gs.sweep(small, over={"parameters.prefetch": [False, True]})
    kinds = [name for name in found.columns if name.startswith("attribution.")]
    assert found[kinds].notna().all().all()
    assert found[kinds].sum(axis=1).tolist() == pytest.approx([1, 1])


def test_a_step_that_some_points_skip_is_missing_there_only(small):
    found = gs.sweep(small, over={"parameters.prefetch": [False, True]})
    assert found["steps.move.duration_ns"].isna().tolist() == [True, False]


def test_the_number_of_workers_changes_nothing(small):
    alone = gs.sweep(small, over=OVER, replications=2, workers=1)
    together = gs.sweep(small, over=OVER, replications=2, workers=2)
    pd.testing.assert_frame_equal(alone, together)
    assert multiprocessing.active_children() == []


def test_a_point_that_died_is_a_row_like_any_other(small):
    over = {
        "processes.app.buffers.x.allocator": ["malloc", "hipMallocManaged"],
        "processes.app.env.HSA_XNACK": ["0"],
    }
    found = gs.sweep(small, over=over)
    assert found["outcome"].tolist() == ["vm_fault", "completed"]


def test_the_scenarios_own_grid_is_used_and_options_add_to_it(small, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(
        small.read_text() + "sweep: {over: {parameters.prefetch: [false, true]}, replications: 2}\n"
    )
    assert len(gs.sweep(file)) == 4
    assert len(gs.sweep(file, over={"parameters.size": ["4MiB", "6MiB"]}, replications=1)) == 4
    assert len(gs.sweep(file, over={"parameters.prefetch": [True]}, replications=1)) == 1


def test_progress_counts_to_the_end(small):
    seen = []
    gs.sweep(small, over=OVER, progress=lambda done, whole: seen.append((done, whole)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("over", "words"),
    [
        (None, "nothing to sweep"),
        ({"parameters.prefetsch": [True]}, "prefetsch"),
        ({"parameters.size": ["4MiB", "4M"]}, "ambiguous"),
        ({"processes.app.buffers.x.size": []}, "sweep"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(small, over, words, monkeypatch):
    monkeypatch.setattr(study, "simulated", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(InputError, match=words):
        gs.sweep(small, over=over)


def test_the_table_is_written_whole_beside_its_scenario(small, tmp_path):
    found = gs.sweep(small, over=OVER, out=tmp_path / "out")
    names = sorted(entry.name for entry in (tmp_path / "out").iterdir())
    assert names == ["points.parquet", "scenario.yaml"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "out" / "points.parquet"), found, check_dtype=False
    )
    assert gs.load(tmp_path / "out" / "scenario.yaml").sweep is not None


def test_an_error_names_its_point(small, monkeypatch):
    def fail(scenario, **_):
        if scenario.parameters["size"] == "8MiB":
            raise InputError("too hard")
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(study, "simulated", fail)
    with pytest.raises(InputError, match=r"too hard \(at parameters.size=8MiB, seed 3\)"):
        gs.sweep(small, over={"parameters.size": ["8MiB"]})
    with pytest.raises(ZeroDivisionError) as caught:
        gs.sweep(small, over={"parameters.size": ["4MiB"]})
    assert "parameters.size=4MiB" in caught.value.__notes__[0]


SCRIPT = """
    import os, signal, sys
    import gpusim as gs
    from gpusim.study import sweep as study

    def die(*args):
        os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        import gpusim.study.runs
        try:
            gs.sweep(sys.argv[1], over={"parameters.size": ["4MiB", "6MiB", "8MiB"]}, workers=2)
        except gs.GpusimError as error:
            print("SAID", error)
    else:  # a worker, which imports this file again
        study.simulated = die
"""


def test_a_worker_that_is_killed_is_explained(small, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, script, small], capture_output=True, text=True, timeout=120, check=False
    )
    assert "SAID a worker process was ended from outside" in done.stdout, done.stderr
    assert issubclass(GpusimError, Exception)


def test_points_of_several_steps_of_one_name_are_summed_up(small, tmp_path):
    file = tmp_path / "repeat.yaml"
    step = "{name: scale, launch: {kernel: scale, reads: [x], writes: [x], wait: true}}"
    text = small.read_text().replace(f"- {step}", f"- repeat: {{times: 3, steps: [{step}]}}")
    file.write_text(text)
    found = gs.sweep(file, over={"parameters.size": ["4MiB"]})
    assert "steps.scale[0].duration_ns" in found.columns
    assert "steps.scale[*].duration_ns.mean" in found.columns
    result = gs.run(file, set={"parameters.size": "4MiB"})
    assert found["steps.scale[*].duration_ns.max"][0] == result.metric("steps.scale[*].duration_ns.max")


def test_the_seed_can_be_swept(small):
    found = gs.sweep(small, over={"seed": [11, 5]})
    assert found["seed"].tolist() == [11, 5]
    assert found["replication"].tolist() == [0, 0]
    assert list(found.columns).count("seed") == 1


def test_the_seed_is_swept_or_replicated_not_both(small):
    with pytest.raises(InputError, match="sweep the seed, or replicate"):
        gs.sweep(small, over={"seed": [1, 2]}, replications=2)


def test_numbers_beyond_64_bits_are_the_scenarios_fault(small, monkeypatch):
    def overflowing(*_args, **_more):
        raise OverflowError("int too big to convert")

    monkeypatch.setattr("gpusim.simulation.simulate", overflowing)
    with pytest.raises(InputError, match="104 days"):
        gs.run(small)
