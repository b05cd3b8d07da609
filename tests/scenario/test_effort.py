"""A run that would take days says so before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpusim.cli import cli
from gpusim.scenario import loader
from gpusim.scenario.effort import efforts, warning
from gpusim.shipped import validation_dir

ROOT = Path(__file__).parents[2]
TEXT = """\
version: 1
name: long
system: {{node: mi300x-16nvme, gpus: 1}}
kernels:
  scan: {{step: {step}}}
processes:
  - name: app
    env: {{HSA_XNACK: "1"}}
    buffers:
      x: {{size: 1GiB, allocator: hipMalloc}}
      y: {{size: 1GiB, allocator: hipMallocManaged}}
    files: {{f: {{size: 2GiB, filesystem: xfs, drive: nvme0}}}}
    threads:
      main:
        - {step_text}
"""


def scenario(step_text: str, step: str = "64KiB") -> str:
    return TEXT.format(step_text=step_text, step=step)


def counted(text: str) -> int:
    return sum(effort.count for effort in efforts(loader.loads(text)))


@pytest.mark.parametrize(
    ("step", "count"),
    [
        ("{file_read: {file: f, buffer: x, io_size: 1MiB}}", 1024),
        ("{file_read: {file: f, buffer: x, io_size: 1MiB, file_offset: 2047MiB}}", 1),
        ("{file_read: {file: f, buffer: x, io_size: 4KiB, size: 1TiB}}", 1 << 28),
        ("{file_read: {file: f, buffer: x, io_size: 4KiB, duration: 1s, threads: 4}}", 400_000),
        ("{file_read: {file: f, buffer: x, io_size: 64MiB, duration: 1s, threads: 4}}", 954),
        ("{file_read: {file: f, buffer: x, io_size: 1MiB, pieces: [{size: 3MiB, count: 5}]}}", 15),
        ("{file_batch: {operation: read, file: f, buffer: x, io_size: 4KiB, entries: 77}}", 77),
        ("{launch: {kernel: scan, reads: [x, y]}}", 1 + (1 << 30 >> 16)),
        ("{repeat: {times: 5, steps: [{sleep: {duration: 1ms}}, {sleep: {duration: 1ms}}]}}", 5 + 10),
        ("{parallel: {branches: [[{sleep: {duration: 1ms}}], [{sleep: {duration: 1ms}}]]}}", 1 + 2),
        ("{when: false, sleep: {duration: 1ms}}", 0),
    ],
)
def test_model_steps_are_counted(step: str, count: int) -> None:
    assert counted(scenario(step)) == count


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (scenario("{name: bytes, file_read: {file: f, buffer: x, io_size: 1B}}"), ["bytes", "io_size"]),
        (scenario("{repeat: {times: 1000000000, steps: [{name: nap, sleep: {duration: 1ns}}]}}"), ["times"]),
        (scenario("{name: walk, launch: {kernel: scan, reads: [y]}}", step="8B"), ["walk", "`step`"]),
    ],
)
def test_a_run_of_hours_is_told_with_its_remedy(text: str, told: list[str]) -> None:
    line = warning(loader.loads(text))
    assert line is not None
    assert "\n" not in line
    assert all(word in line for word in told)
    assert any(unit in line for unit in ("minutes", "hours", "days"))


def test_check_warns_on_stderr_and_is_content(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text(scenario("{file_read: {file: f, buffer: x, io_size: 1B}}"))
    done = CliRunner().invoke(cli, ["check", str(file)])
    assert done.exit_code == 0
    assert done.stdout.strip() == f"{file}: ok (long)"
    assert done.stderr.startswith("gpusim: warning: long: about 1,073,741,824 model steps")


@pytest.mark.parametrize(
    "file",
    sorted({*ROOT.glob("scenarios/*.yaml"), *validation_dir().glob("*.yaml")}),
    ids=lambda file: file.stem,
)
def test_no_shipped_scenario_is_warned_of(file: Path) -> None:
    assert warning(loader.load(file)) is None


MANY = "{repeat: {times: 100000000, steps: [{launch: {kernel: scan, reads: [y], wait: true}}]}}"


def test_a_program_that_dies_before_its_work_needs_no_warning() -> None:
    text = scenario(MANY)
    assert warning(loader.loads(text)) is not None
    too_large = {"processes.app.buffers.x.size": "300GiB"}
    assert warning(loader.loads(text, sets=too_large)) is None
    assert warning(loader.loads(text, sets=too_large | {"processes.app.on_error": "continue"})) is not None


def test_what_comes_after_a_fatal_fault_is_not_counted() -> None:
    fatal = "{launch: {kernel: scan, reads: [y], wait: true}}"
    text = scenario(f"{fatal}\n        - {MANY}")
    off = {"processes.app.env.HSA_XNACK": "0"}
    malloc = {"processes.app.buffers.y.allocator": "malloc"}
    assert warning(loader.loads(text, sets=malloc)) is not None
    assert warning(loader.loads(text, sets=off)) is not None  # managed memory is read in place
    assert warning(loader.loads(text, sets=off | malloc)) is None
