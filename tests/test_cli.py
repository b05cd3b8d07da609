"""The command line: what scripts rely on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

from gpusim.cli import main
from gpusim.result.schema import TABLES, summary_schema

SMALL = """
version: 1
name: small
question: Is it better to prefetch?
system: {node: mi210-pcie4, gpus: 1}
parameters: {prefetch: false, size: 4MiB}
kernels:
  scale: {pattern: stream}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: "${size}", allocator: hipMallocManaged}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - {name: move, prefetch: {buffer: x, to: gpu0, wait: true}, when: "${prefetch}"}
        - {name: scale, launch: {kernel: scale, reads: [x], writes: [x], wait: true}}
seed: 3
"""
DYING = SMALL.replace('HSA_XNACK: "1"', 'HSA_XNACK: "0"').replace("hipMallocManaged", "malloc")
ROW = '{metric: METRIC, value: VALUE, tolerance: 5%, source: "a test", kind: predicted}'


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUSIM_DEBUG", raising=False)
    Path("small.yaml").write_text(SMALL)
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command here: exit code, stdout, stderr."""

    def run(*args):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return end.value.code, out, err

    return run


def shell(*args, **more):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "gpusim", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)


# run


def test_run_answers_and_writes_the_result_where_the_contract_says(call):
    code, out, err = call("run", "small.yaml")
    assert (code, err) == (0, "")
    assert "Is it better to prefetch?" in out
    (directory,) = Path("results/small").iterdir()
    assert str(directory) in out
    names = {path.name for path in directory.iterdir()}
    assert {"summary.json", "scenario.yaml", "breakdown.png"} <= names
    assert {f"{table}.parquet" for table in ("faults", "migrations", "io", "links")} <= names


def test_the_same_scenario_has_the_same_place_another_seed_another(call):
    for args in ((), (), ("--seed", 4), ("--set", "parameters.size=6MiB")):
        assert call("run", "small.yaml", "--quiet", *args)[0] == 0
    assert len(list(Path("results/small").iterdir())) == 3


def test_run_json_prints_the_summary_and_nothing_else(call):
    code, out, err = call("run", "small.yaml", "--json", "--out", "here")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    jsonschema.validate(summary, summary_schema())
    assert out == Path("here/summary.json").read_text()


def test_run_quiet_prints_the_answer(call):
    code, out, _ = call("run", "small.yaml", "--quiet")
    assert code == 0
    assert len(out.splitlines()) == 1
    assert "`scale` takes" in out


def test_set_and_seed_reach_the_simulation(call):
    _, out, _ = call("run", "small.yaml", "--json", "--set", "parameters.prefetch=true", "--seed", 11)
    summary = json.loads(out)
    assert summary["seed"] == 11
    assert [step["name"] for step in summary["steps"]] == ["fill", "move", "scale"]


def test_recording_decides_what_is_written(call):
    call("run", "small.yaml", "--record", "spans", "--out", "spans")
    call("run", "small.yaml", "--record", "off", "--out", "off")
    assert Path("spans/spans.parquet").exists()
    assert not list(Path("off").glob("*.png"))
    assert json.loads(Path("off/summary.json").read_text())["attribution"] is None


def test_a_run_repeats_to_the_byte_but_for_the_engine(call):
    for name in ("one", "two"):
        call("run", "small.yaml", "--quiet", "--out", name)
    one, two = (json.loads(Path(name, "summary.json").read_text()) for name in ("one", "two"))
    one.pop("engine"), two.pop("engine")
    assert one == two
    for name in ("latency.png", "scenario.yaml"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    for table in ("faults", "links", "migrations"):
        first, second = (pd.read_parquet(f"{name}/{table}.parquet") for name in ("one", "two"))
        pd.testing.assert_frame_equal(first, second)


def test_a_program_that_dies_is_reported_written_and_3(call):
    Path("dying.yaml").write_text(DYING)
    code, out, err = call("run", "dying.yaml", "--out", "dead")
    assert (code, err) == (3, "")
    assert "vm_fault" in out
    assert json.loads(Path("dead/summary.json").read_text())["outcome"] == "vm_fault"


def test_a_run_that_its_limit_ends_has_its_rows_pictures_and_trace(call):
    row = ROW.replace("METRIC", "steps.scale.duration_ns").replace("VALUE", "1ms")
    Path("limited.yaml").write_text(SMALL + f"limits: {{simulated_time: 1.5ms}}\nexpect:\n  - {row}\n")
    code, out, err = call("run", "limited.yaml", "--out", "here", "--trace")
    assert (code, err) == (3, "")
    assert "OUT" in out
    assert {"use.png", "perfetto-trace.proto"} <= {path.name for path in Path("here").iterdir()}


@pytest.mark.parametrize(
    "args",
    [
        ("calibrate", "data", "--profile", "mi210"),
        ("import", "trace.json", "--anything"),
    ],
)
def test_what_comes_later_says_so(call, args):
    code, out, err = call(*args)
    assert (code, out) == (2, "")
    assert "not supported yet" in err


# bad input

BAD = {
    "missing": ("nothing.yaml", None, "no such file"),
    "directory": (".", None, "directory"),
    "binary": ("bad.yaml", b"\x00\xff\x80ELF", "bad.yaml"),
    "empty": ("bad.yaml", b"", "bad.yaml"),
    "bad YAML": ("bad.yaml", b"a: [1, 2", "bad.yaml:"),
    "not a mapping": ("bad.yaml", b"- 1\n- 2\n", "bad.yaml"),
    "duplicate key": ("bad.yaml", SMALL.encode() + b"seed: 4\n", "seed"),
    "unknown key": ("bad.yaml", SMALL.encode() + b"sed: 4\n", "seed"),
    "wrong unit": ("bad.yaml", SMALL.replace("4MiB", "4Mb").encode(), "bits"),
    "ambiguous unit": ("bad.yaml", SMALL.replace("4MiB", "4M").encode(), "ambiguous"),
    "bare number": ("bad.yaml", SMALL.replace('"${size}"', "4096").encode(), "unit"),
    "negative": ("bad.yaml", SMALL.replace("4MiB", "-4MiB").encode(), "negative"),
    "zero": ("bad.yaml", SMALL.replace("4MiB", "0MiB").encode(), "above 0"),
    "NaN": ("bad.yaml", SMALL.replace('"${size}"', ".nan").encode(), "size"),
    "overflow": ("bad.yaml", SMALL.replace("4MiB", "1e30GiB").encode(), "too large"),
    "unknown node": ("bad.yaml", SMALL.replace("mi210-pcie4", "mi210-pcie5").encode(), "mi210-pcie4"),
    "unknown buffer": ("bad.yaml", SMALL.replace("reads: [x]", "reads: [y]").encode(), "y"),
    "unknown step": ("bad.yaml", SMALL.replace("host_touch", "host_tuch").encode(), "host_touch"),
    "unknown pattern": ("bad.yaml", SMALL.replace("stream", "steam").encode(), "stream"),
}


@pytest.mark.parametrize(("file", "content", "words"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("command", ["run", "check", "explain", "sweep", "validate"])
def test_bad_input_is_2_with_a_message_and_no_result(call, command, file, content, words):
    if content is not None:
        Path(file).write_bytes(content)
    if (command, file) == ("explain", "."):
        words = "summary.json"
    code, out, err = call(command, file)
    assert code == 2
    assert out == ""
    assert words in err
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--set", "parameters.prefetsch=true"), "prefetch"),
        (("--set", "no.such.path=1"), "no"),
        (("--set", "novalue"), "path=value"),
        (("--set", "parameters.size=4M"), "ambiguous"),
        (("--seed", "-1"), "seed"),
        (("--seed", "x"), "--seed"),
        (("--record", "all"), "--record"),
        (("--out", "small.yaml"), "is a file"),
        (("--out", "/proc/gpusim"), "cannot be written"),
        (("--out", "."), "current directory"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_bad_options_are_2(call, args, words):
    code, out, err = call("run", "small.yaml", *args)
    assert (code, out) == (2, "")
    assert words in err


def test_an_unknown_command_names_the_nearest(call):
    code, _, err = call("rnu", "small.yaml")
    assert code == 2
    assert "'run'" in err


def test_a_bug_of_ours_is_1_and_writes_nothing(call, monkeypatch):
    monkeypatch.setattr("gpusim.public.simulated", lambda *_, **__: 1 / 0)
    code, _, err = call("run", "small.yaml", "--out", "here")
    assert code == 1
    assert "a bug of ours" in err
    assert not Path("here").exists()


# check, explain, plot


def test_check_takes_its_turn_with_every_file(call):
    Path("bad.yaml").write_text("version: 2")
    code, out, err = call("check", "small.yaml", "bad.yaml")
    assert code == 2
    assert out == "small.yaml: ok (small)\n"
    assert "bad.yaml:1" in err
    assert call("check", "small.yaml")[0] == 0


def test_check_takes_the_changes_that_run_takes(call):
    assert call("check", "small.yaml", "--set", "parameters.size=8MiB", "--seed", 4)[0] == 0
    code, _, err = call("check", "small.yaml", "--set", "parameters.size=8M")
    assert code == 2
    assert "ambiguous" in err


def test_check_json(call):
    Path("bad.yaml").write_text(SMALL.replace("seed: 3", "sed: 3"))
    code, out, _ = call("check", "small.yaml", "bad.yaml", "nothing.yaml", "--json")
    assert code == 2
    good, bad, nothing = json.loads(out)
    assert good == {"file": "small.yaml", "ok": True, "problems": []}
    (problem,) = bad["problems"]
    line = SMALL.splitlines().index("seed: 3") + 1
    assert (problem["file"], problem["line"], problem["column"]) == ("bad.yaml", line, 1)
    assert (problem["path"], problem["message"]) == ("sed", "unknown key 'sed'")
    assert (nothing["ok"], len(nothing["problems"])) == (False, 1)


def test_explain_a_scenario_or_its_result_with_spans_alike(call):
    call("run", "small.yaml", "--out", "here", "--record", "spans")
    code, of_file, _ = call("explain", "small.yaml")
    assert code == 0
    code, of_directory, _ = call("explain", "here")
    assert code == 0
    assert "The life of a fault" in of_file
    assert "What would help" in of_file
    assert of_file == of_directory


def test_explain_a_result_without_spans_says_how_to_get_them(call):
    call("run", "small.yaml", "--out", "here")
    code, out, _ = call("explain", "here")
    assert code == 0
    assert "What would help" not in out
    assert "--record spans" in out


def test_explain_verify_passes_on_a_real_run_and_is_json(call):
    code, out, _ = call("explain", "small.yaml", "--verify", "--json")
    checks = json.loads(out)["checks"]
    assert len(checks) >= 10
    assert [check for check in checks if not check["ok"]] == []
    assert code == 0


def test_explain_verify_finds_a_result_that_was_tampered_with(call):
    call("run", "small.yaml", "--out", "here")
    summary = json.loads(Path("here/summary.json").read_text())
    summary["faults"]["raised"] += 1
    Path("here/summary.json").write_text(json.dumps(summary))
    code, out, _ = call("explain", "here", "--verify")
    assert code == 1
    assert "BROKEN" in out


def test_explain_recommends_settings_and_writes_them(call):
    options = ("--recommend", "--only", "xnack", "--only", "prefetch", "--workers", 1)
    code, out, _ = call("explain", "small.yaml", *options, "--write", "best.yaml")
    assert code == 0
    assert "Set XNACK of app: off" in out
    assert "--set processes.app.env.HSA_XNACK=0" in out
    assert "One setting changed at the best" in out
    assert call("run", "best.yaml")[0] == 0
    code, out, _ = call(
        "explain", "small.yaml", *options, "--json", "--crossover", "parameters.size=64KiB,8MiB"
    )
    found = json.loads(out)
    assert code == 0
    assert found["best"]["changed"] == {"XNACK of app": "off"}
    assert found["crossovers"][0]["path"] == "parameters.size"
    assert found["ranking"][0]["value"] == found["best"]["value"] < found["own"]["value"]


def test_explain_recommends_for_a_result_directory_too(call):
    call("run", "small.yaml", "--out", "out")
    options = (
        "--recommend",
        "--over",
        "parameters.size=4MiB,2MiB",
        "--only",
        "over",
        "--workers",
        1,
        "--json",
    )
    _, out, _ = call("explain", "out", *options)
    assert json.loads(out)["best"]["changed"] == {"parameters.size": "2MiB"}


def test_explain_recommend_is_3_where_nothing_completes(call):
    Path("dying.yaml").write_text(DYING)
    code, out, _ = call(
        "explain", "dying.yaml", "--recommend", "--only", "prefetch", "--workers", 1, "--replications", 2
    )
    assert code == 3
    assert "vm_fault" in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--budget", "9"), "--budget would be ignored without --recommend"),
        (("--recommend", "--verify"), "--verify does not go with --recommend"),
        (("--recommend", "--only", "xnak"), "did you mean 'xnack'"),
        (("--recommend", "--crossover", "parameters.size"), "--crossover needs a path and values"),
        (("--recommend", "--metric", "makespan"), "not a metric (read 'makespan'; legal: makespan_ns"),
        (("--recommend", "--only", "xnack", "--write", "no/best.yaml"), "cannot be written"),
    ],
)
def test_explain_refuses_what_makes_no_sense(call, args, words):
    code, _, err = call("explain", "small.yaml", *args)
    assert code == 2
    assert words in err


def test_explain_of_a_result_takes_no_changes(call):
    call("run", "small.yaml", "--out", "out")
    code, _, err = call("explain", "out", "--seed", 4)
    assert code == 2
    assert "does not go with a result directory" in err


def test_run_uncertainty_prints_the_band_and_what_it_hangs_on(call):
    options = ("--uncertainty", 8, "--workers", 1, "--record", "off")
    code, out, _ = call("run", "small.yaml", *options)
    assert code == 0
    assert "90 % of the draws within" in out
    assert "hangs on" in out
    code, out, _ = call("run", "small.yaml", *options, "--json", "--out", "here")
    summary = json.loads(out)
    jsonschema.validate(summary, summary_schema())
    found = summary["uncertainty"]
    assert found["metric"] == summary["answer"]["metric"]
    assert found["value"] == summary["answer"]["value"]
    assert found["min"] <= found["p5"] <= found["p50"] <= found["p95"] <= found["max"]
    assert json.loads(Path("here/summary.json").read_text())["uncertainty"] == found


@pytest.mark.parametrize(
    ("args", "words"),
    [(("--workers", "2"), "ignored without --uncertainty"), (("--uncertainty", "1"), "--uncertainty")],
)
def test_run_refuses_uncertainty_without_draws(call, args, words):
    code, _, err = call("run", "small.yaml", *args)
    assert code == 2
    assert words in err


def test_plot_draws_what_is_asked_for(call):
    call("run", "small.yaml", "--out", "here")
    for picture in Path("here").glob("*.png"):
        picture.unlink()
    code, out, _ = call("plot", "here", "latency")
    assert (code, out) == (0, "here/latency.png\n")
    assert [path.name for path in Path("here").glob("*.png")] == ["latency.png"]
    call("plot", "here")
    assert len(list(Path("here").glob("*.png"))) == 4


def test_plot_refuses_what_is_no_result_or_no_picture(call):
    assert call("plot", "nowhere")[0] == 2
    assert call("plot", "nowhere", "pie")[0] == 2


# validate, sweep


def with_row(name, metric, value, text=SMALL):
    Path(name).write_text(
        text + "expect:\n  - " + ROW.replace("METRIC", metric).replace("VALUE", value) + "\n"
    )
    return name


def test_validate_is_4_when_a_row_is_out_and_2_beats_it(call):
    good = with_row("good.yaml", "faults.serviced", "2")
    bad = with_row("off.yaml", "steps.fill.duration_ns", "9s")
    assert call("validate", good)[0] == 0
    code, out, _ = call("validate", good, bad)
    assert code == 4
    assert "1 of 2 rows within tolerance" in out
    assert call("validate", bad, "small.yaml")[0] == 2  # without rows


def test_validate_json_rows_are_the_contract(call):
    code, out, _ = call("validate", with_row("good.yaml", "steps.fill.duration_ns", "9s"), "--json")
    assert code == 4
    (row,) = json.loads(out)
    assert list(row) == [
        "scenario", "source", "metric", "unit", "measured", "simulated", "error", "tolerance", "kind", "ok",
    ]  # fmt: skip
    assert (row["measured"], row["unit"], row["ok"]) == (9e9, "ns", False)


def test_a_program_that_dies_in_validate_is_3(call):
    assert call("validate", with_row("dying.yaml", "seed", "3", DYING))[0] == 3


def test_sweep_writes_points_and_prints_them(call):
    over = ("--over", "parameters.prefetch=false,true", "--replications", 2, "--workers", 1)
    code, out, _ = call("sweep", "small.yaml", *over, "--out", "swept")
    assert code == 0
    assert "4 runs in swept/points.parquet" in out
    found = pd.read_parquet("swept/points.parquet")
    assert found["parameters.prefetch"].tolist() == [False, False, True, True]


def test_sweep_is_0_when_a_point_died_and_json_has_every_row(call):
    over = ("--over", "processes.app.env.HSA_XNACK=0,1", "--set", "processes.app.buffers.x.allocator=malloc")
    code, out, _ = call("sweep", "small.yaml", *over, "--workers", 1, "--json")
    assert code == 0
    data = json.loads(out)
    assert [row["outcome"] for row in data["points"]] == ["vm_fault", "completed"]
    assert Path(data["directory"]).parent == Path("results/small")


def test_sweep_takes_workers_or_a_scheduler(call):
    code, _, err = call("sweep", "small.yaml", "--scheduler", "tcp://x:1", "--workers", 2)
    assert code == 2
    assert "--workers does not go with --scheduler" in err


def test_sweep_refuses_a_wrong_grid(call):
    for args in (
        (),
        ("--over", "parameters.nothing=1"),
        ("--over", "parameters.size="),
        ("--replications", "0"),
    ):
        assert call("sweep", "small.yaml", *args)[0] == 2
    assert not Path("results").exists()


# profiles, schema, init


def test_profiles_lists_and_shows_every_number_with_its_grade(call):
    code, out, _ = call("profiles")
    assert code == 0
    assert "mi210-pcie4" in out
    code, out, _ = call("profiles", "mi210-pcie4")
    assert code == 0
    assert "gpu[0].pcie.h2d" in out
    code, out, _ = call("profiles", "mi210")
    assert "datasheet" in out
    assert call("profiles", "mi210", "--yaml")[1].startswith("profile_version")
    assert call("profiles", "mi211")[0] == 2


def test_schemas_are_json_schemas(call):
    _, out, _ = call("schema")
    jsonschema.Draft202012Validator.check_schema(json.loads(out))
    _, out, _ = call("schema", "results")
    results = json.loads(out)
    jsonschema.Draft202012Validator.check_schema(results["summary"])
    assert set(results["tables"]) == set(TABLES)
    assert all(column["description"] for table in results["tables"].values() for column in table)


def test_init_writes_a_scenario_that_runs_and_never_replaces_one(call):
    assert call("init")[0] == 0
    assert call("check", "scenario.yaml")[0] == 0
    code, _, err = call("init")
    assert code == 2
    assert "already" in err
    assert call("init", "--force")[0] == 0
    assert call("init", "-")[1] == Path("scenario.yaml").read_text()
    assert call("init", "no/such/place.yaml")[0] == 2


def test_help_and_version(call):
    code, out, _ = call("--help")
    assert code == 0
    for command in (
        "run",
        "check",
        "explain",
        "compare",
        "sweep",
        "validate",
        "calibrate",
        "plot",
        "report",
        "import",
    ):
        assert f"\n  {command} " in out
    assert call("run", "-h")[0] == 0
    assert call("--version")[1].startswith("gpusim ")


# processes of their own


def test_ctrl_c_is_130_and_leaves_nothing_half_written(place):
    Path("long.yaml").write_text(SMALL.replace("4MiB", "24GiB"))
    command = [sys.executable, "-m", "gpusim", "run", "long.yaml", "--out", "here", "--quiet"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    assert running.poll() is None, "the run was too short to interrupt"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "Traceback" not in err
    assert out == ""
    assert sorted(path.name for path in place.iterdir()) == ["long.yaml", "small.yaml"]


def test_a_sweep_that_is_interrupted_takes_its_workers_along(place):
    command = [sys.executable, "-m", "gpusim", "sweep", "small.yaml", "--workers", "2", "--out", "here"]
    command += ["--over", "parameters.size=20GiB,21GiB,22GiB", "--quiet"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(5)
    assert running.poll() is None, "the sweep was too short to interrupt"
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to the workers as well
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "Traceback" not in err
    assert [path.name for path in place.iterdir()] == ["small.yaml"]
    deadline = time.monotonic() + 20
    while _lives(running.pid):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.1)


def test_an_interrupted_sweep_goes_on_where_it_was(place, call):
    sizes = ",".join(f"{size}MiB" for size in range(64, 94))
    options = [
        "small.yaml",
        "--over",
        f"parameters.size={sizes}",
        "--workers",
        "1",
        "--out",
        "here",
        "--quiet",
    ]
    running = subprocess.Popen(
        [sys.executable, "-m", "gpusim", "sweep", *options], stderr=subprocess.PIPE, text=True, cwd=place
    )
    kept = place / "here.rows.jsonl"
    deadline = time.monotonic() + 60
    while not (kept.exists() and len(kept.read_text().splitlines()) > 2):
        assert running.poll() is None, "the sweep was too short to interrupt"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "runs are kept in" in err
    assert "the same command goes on from there" in err
    before = kept.read_text().splitlines()
    assert 3 <= len(before) < 31
    assert call("sweep", *options)[0] == 0
    assert not kept.exists()
    found = pd.read_parquet("here/points.parquet")
    assert found["parameters.size"].tolist() == sizes.split(",")


def _lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_reader_that_goes_away_is_no_error():
    script = f"{sys.executable} -m gpusim schema | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_a_terminal_without_unicode_is_no_error():
    done = shell("run", "small.yaml", env=os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert done.returncode == 0, done.stderr


def test_python_dash_m_and_import_give_the_same():
    code = 'import gpusim as gs; print(gs.run("small.yaml").summary["answer"]["text"])'
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shell("run", "small.yaml", "--quiet").stdout == text


# an unfriendly shell


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_reason_to_stop(closed):
    command = f"{sys.executable} -m gpusim run small.yaml --out there {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(Path("there/summary.json").read_text())["outcome"] == "completed"


def test_a_current_directory_that_is_gone_is_said(place):
    (place / "gone").mkdir()
    command = f"cd gone && rmdir ../gone && {sys.executable} -m gpusim run {place}/small.yaml"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr == "gpusim: the current directory does not exist any more: change to one that does\n"


def test_a_profile_that_does_not_exist_is_said_once(call):
    code, _, err = call("profiles", "zz")
    assert code == 2
    assert "there is no profile 'zz'" in err


def test_time_beyond_the_clock_is_an_outcome(call):
    text = SMALL.replace(
        "main:\n", "main:\n        - sleep: {duration: 8e6s}\n        - sleep: {duration: 8e6s}\n"
    )
    Path("long.yaml").write_text(text)
    code, out, _ = call("run", "long.yaml", "--json", "--out", "there")
    summary = json.loads(out)
    assert (code, summary["outcome"]) == (3, "limit")
    assert summary["makespan_ns"] == 9e15
    assert pd.read_parquet("there/steps.parquet")["duration_ns"].tolist() == [8e15]


def test_a_result_without_one_of_its_tables_is_said(call):
    assert call("run", "small.yaml", "--out", "made", "--record", "off")[0] == 0
    Path("made/links.parquet").unlink()
    for command in ("plot", "report", "explain"):
        code, _, err = call(command, "made")
        assert code == 2
        assert "links.parquet: is missing from the result" in err


def test_a_name_that_no_file_can_have_is_no_bug(call):
    code, _, err = call("run", "small.yaml", "--out", "a" * 300)
    assert (code, "File name too long" in err) == (2, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_no_bug():
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "gpusim", "profiles", "mi210-pcie4"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
