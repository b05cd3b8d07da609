"""Programs that would go on for ever: the run ends with `livelock`, and says on which page, in which circle."""

import itertools
import json
from contextlib import suppress

import pytest

from gpusim.cli import main
from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.watch import PATIENCE_PS, Watch
from gpusim.engine.environment import Environment
from gpusim.errors import SimulatedFailure
from gpusim.linux.address_space import Vma, VmaKind
from tests.programs import MS, US, launch, process, run, scenario, sleep, touch

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
    buffers = {"x": "2MiB hipMallocManaged", "y": "16MiB malloc"}
    threads = {
        "main": [touch("x"), {"barrier": {}}, {"swap_out": {"buffer": "x"}}, launch(reads="x")],
        "hungry": [{"barrier": {}}, sleep("100us"), touch("y")],
    }
    overrides = {"cpu.memory": "18MiB", "gpu.vram": "32MiB"}
    ran = run(threads=threads, buffers=buffers, xnack=False, overrides=overrides)
    assert ran.outcome == "livelock"
    assert "restore work of app has failed 101 times" in ran.process("app").error


def test_copies_that_fault_get_on_however_often_the_cpu_takes_the_pages_back():
    """A copy engine is no wavefront: what it moves is progress all the same."""
    steps = [{"repeat": {"times": 250, "steps": [touch("x"), {"memcpy": {"dst": "d", "src": "x"}}]}}]
    ran = run(steps, buffers={"x": "4KiB hipMallocManaged", "d": "4KiB hipMalloc"})
    assert ran.outcome == "completed"
    assert ran.faults["serviced"] == 250


def test_a_copy_into_read_only_entries_is_a_restore_loop():
    copy = {"memcpy": {"dst": "x", "src": "d"}}
    ran = run([touch("x"), read_only(), copy], buffers=MANAGED | {"d": "2MiB hipMalloc"})
    assert ran.outcome == "livelock"


# -- the watch by itself -----------------------------------------------------------------------------------------------


def restores(pages, *, every_ps, done=lambda number: 0):
    """Serve `pages` of a process one after another; restores until the watch has had enough, None if it never has."""
    number = 0
    env = Environment()
    kfd = KfdProcess("app", env=env, vms={}, xnack=True, number=1, kill=lambda outcome, error: None)
    vma = Vma("x", 0, 1, VmaKind.ANONYMOUS)
    watch = Watch(env=env, done=lambda _: done(number))
    with suppress(SimulatedFailure):
        for page in pages:
            number += 1
            env._now += every_ps
            watch.restoring(kfd, vma, page, "gpu[0]")
        return None
    return number


def circle(length, rounds):
    return itertools.chain.from_iterable(itertools.repeat(range(length), rounds))


@pytest.mark.parametrize("length", [1, 3, 1000, 70_000])
def test_a_circle_is_found_however_many_pages_it_goes_over(length):
    """By the number of restores of a page, or by the clock."""
    found = restores(circle(length, 1 + 300_000 // length), every_ps=300 * US)
    assert found is not None
    assert found <= max(201 * length, length + 2 * PATIENCE_PS // (300 * US) + 2)


def test_pages_served_for_the_first_time_are_no_circle_however_long_no_step_completes():
    assert restores(range(200_000), every_ps=2 * MS) is None


def test_a_walk_that_gets_on_is_no_circle():
    """Each round over more pages than are remembered completes some steps."""
    assert restores(circle(70_000, 12), every_ps=200 * US, done=lambda number: number // 20_000) is None
