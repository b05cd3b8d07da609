"""Programs that would go on for ever: the run ends with `livelock`, and says on which page, in which circle."""

import json

import pytest

from gpusim.cli import main
from tests.programs import launch, process, run, scenario, touch

MANAGED = {"x": "2MiB hipMallocManaged"}


def read_only(buffer="x"):
    return {"svm_attributes": {"buffer": buffer, "set_flags": ["gpu_ro"]}}


def test_writing_through_read_only_entries_is_a_restore_loop():
    """Each restore succeeds, maps the page without the write bit, and the store faults again."""
    ran = run([touch("x"), read_only(), launch(writes="x")], buffers=MANAGED)
    assert ran.outcome == "livelock"
    error = ran.process("app").error
    assert "has been restored 200 times" in error
    assert "app.svms" in error


def test_reading_through_read_only_entries_is_fine():
    assert run([touch("x"), read_only(), launch(reads="x")], buffers=MANAGED).outcome == "completed"


def test_the_command_exits_with_3(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = scenario([touch("x"), read_only(), launch(writes="x")], buffers=MANAGED).raw
    file = tmp_path / "loop.yaml"
    file.write_text(json.dumps(source))
    with pytest.raises(SystemExit) as end:
        main(["run", str(file), "--json"])
    assert end.value.code == 3
    assert json.loads(capsys.readouterr().out)["outcome"] == "livelock"


def test_another_process_is_not_held_up_by_it():
    loop = process([touch("x"), read_only(), launch(writes="x")], name="loop", buffers=MANAGED)
    fine = process([touch("y"), launch(writes="y")], name="fine", buffers={"y": "8MiB malloc"})
    ran = run(processes=[loop, fine])
    assert ran.process("loop").outcome == "livelock"
    assert ran.process("fine").outcome == "completed"


def test_many_faults_with_progress_are_no_livelock():
    steps = [{"repeat": {"times": 150, "steps": [touch("x"), launch(writes="x")]}}]
    ran = run(steps, buffers=MANAGED)
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] >= 150


def test_restore_work_that_never_gets_its_pages_is_a_livelock():
    """XNACK off: pages were swapped out, other memory took their place, and HMM cannot bring them back."""
    buffers = {"x": "64MiB hipMallocManaged", "y": "60MiB malloc"}
    threads = {
        "main": [touch("x"), {"swap_out": {"buffer": "x"}}, {"barrier": {"name": "out"}}, launch(reads="x")],
        "hungry": [{"barrier": {"name": "out"}}, touch("y")],
    }
    ran = run(threads=threads, buffers=buffers, xnack=False, overrides={"cpu.memory": "66MiB"})
    assert ran.outcome in ("livelock", "host_out_of_memory")
