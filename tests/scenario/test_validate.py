"""What no part can check alone: names that must exist elsewhere, keys that a chosen mode ignores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpusim.errors import Problem
from gpusim.scenario import loader, profiles

Spoil = Callable[..., list[Problem]]

STEP = "host_touch: {buffer: x, access: write}"
KERNEL = "scale: {pattern: stream, bytes_per_lane: 8B}"
BUFFER = "x: {size: 4GiB, allocator: hipMallocManaged}"


@pytest.mark.parametrize(
    ("old", "new", "path", "message", "nearest"),
    [
        (STEP, "host_touch: {buffer: xx}", "main.fill.host_touch.buffer", "'xx' is no buffer", "x"),
        (STEP, "memcpy: {dst: x, src: v}", "main.fill.memcpy.src", "'v' is no buffer of the process", None),
        ("reads: [x]", "reads: [x, y]", "scale.launch.reads[1]", "'y' is no buffer of the process", None),
        ("kernel: scale", "kernel: scael", "scale.launch.kernel", "'scael' is no kernel", "scale"),
        ("to: gpu0", "to: gpu2", "main.move.prefetch.to", "'gpu2' is no GPU that the process sees", "gpu1"),
        ("to: gpu0", "to: cpuu", "main.move.prefetch.to", "'cpuu' is no GPU that the process sees", "cpu"),
        ("gpu: gpu1", "gpu: gpu7", "buffers.w.gpu", "'gpu7' is no GPU that the process sees", "gpu1"),
        (STEP, "wait: {event: done}", "main.fill.wait.event", "'done' is no event that a `record`", None),
        (STEP, "synchronize: {}, stream: s", "main.fill.stream", "'s' is no stream that another step", None),
        (STEP, "sleep: {duration: 1s}, stream: s", "main.fill.stream", "`stream` would be ignored", None),
        (
            STEP,
            "host_touch: {buffer: x, offset: 4GiB}",
            "main.fill.host_touch.offset",
            "beyond the end",
            None,
        ),
        (STEP, "host_touch: {buffer: x, size: 5GiB}", "main.fill.host_touch.size", "beyond the end", None),
        (
            STEP,
            "memcpy: {dst: w, src: x, dst_offset: 8GiB}",
            "fill.memcpy.dst_offset",
            "beyond the end",
            None,
        ),
        (STEP, "kill: {process: ap}", "main.fill.kill.process", "'ap' is no process", "app"),
        ("name: fill", "name: move", "main[1].name", "two steps of the process are called 'move'", None),
        ("reads: [x], writes: [w], ", "", "scale.launch", "the kernel has nothing to do", None),
        (
            KERNEL,
            "scale: {stride: 4KiB}",
            "kernels.scale.stride",
            "pattern stream would ignore this key",
            None,
        ),
        (KERNEL, "scale: {points: 5}", "kernels.scale.points", "pattern stream would ignore this key", None),
        (KERNEL, "scale: {pattern: strided}", "kernels.scale", "pattern strided needs 'stride'", None),
        (KERNEL, "scale: {pattern: stencil}", "kernels.scale", "pattern stencil needs 'points'", None),
        (
            KERNEL,
            "scale: {duration: 1ms, flops_per_byte: 2}",
            "kernels.scale.flops_per_byte",
            "a given `duration` would ignore this key",
            None,
        ),
        (
            BUFFER,
            "x: {size: 4GiB, allocator: malloc, gpu: gpu0}",
            "buffers.x.gpu",
            "malloc would ignore",
            None,
        ),
        (
            BUFFER,
            "x: {size: 4GiB, allocator: malloc, file: f}",
            "buffers.x.file",
            "malloc would ignore",
            None,
        ),
        (BUFFER, "x: {size: 4GiB, allocator: hipMalloc, numa: 0}", "buffers.x.numa", "would ignore", None),
        (BUFFER, "x: {size: 4GiB, allocator: malloc, align: 3KiB}", "buffers.x.align", "power of two", None),
        (BUFFER, "x: {size: 4GiB, allocator: mmap}", "buffers.x", "allocator mmap needs 'file'", None),
        (BUFFER, "x: {size: 4GiB, allocator: mmap, file: f}", "buffers.x.file", "'f' is no file", None),
    ],
)
def test_what_does_not_fit_together_is_told(
    spoil: Spoil, old: str, new: str, path: str, message: str, nearest: str | None
) -> None:
    problem = next(problem for problem in spoil((old, new)) if message in problem.message)
    assert problem.path.endswith(path)
    assert problem.line is not None
    assert problem.nearest == nearest


def test_two_processes_of_one_name_are_told(spoil: Spoil) -> None:
    problem = spoil(("seed: 7", "  - {name: app}\nseed: 7"))[0]
    assert (problem.path, problem.message) == ("processes[1].name", "two processes are called 'app'")


def test_a_file_lies_on_a_drive_of_the_node(spoil: Spoil, tmp_path: Path) -> None:
    node = tmp_path / "node.yaml"
    node.write_text(profiles.load("nodes", "mi210-pcie4").text)
    new = "files: {f: {size: 1GiB, filesystem: xfs, drive: nvme1}}\n    buffers:"
    problems = spoil(("buffers:", new), sets={"system.node": str(node)})
    problem = next(problem for problem in problems if problem.path.endswith("files.f.drive"))
    assert problem.message == "'nvme1' is no drive of the node"
    assert problem.nearest == "nvme0"


@pytest.mark.parametrize(
    ("devices", "seen"),
    [("1", ["gpu0"]), ("1,0", ["gpu0", "gpu1"]), ("0,0", ["gpu0"]), ("7,0", []), ("", [])],
)
def test_a_process_sees_what_its_environment_shows(spoil: Spoil, devices: str, seen: list[str]) -> None:
    env = f'HSA_XNACK: "1", ROCR_VISIBLE_DEVICES: "{devices}"'
    problems = spoil(('HSA_XNACK: "1"', env), ("to: gpu0", "to: gpu3"))
    found = next(problem for problem in problems if problem.path.endswith("prefetch.to"))
    assert found.legal == ", ".join([*seen, "cpu"])


def test_a_step_larger_than_its_buffer_is_fine(right: str) -> None:
    text = right.replace("size: 4GiB", "size: 4KiB").replace("bytes_per_lane: 8B", "step: 1MiB")
    assert loader.loads(text).kernels["scale"].step == 2**20


def test_names_inside_repeat_and_parallel_are_checked_too(spoil: Spoil) -> None:
    nested = "parallel: {branches: [[{sleep: {duration: 1s}}], [{free: {buffer: y}}]]}"
    problem = spoil((STEP, nested))[0]
    assert problem.path == "processes.app.threads.main.fill.parallel.branches[1].free.free.buffer"


def test_all_of_this_is_told_although_a_part_is_broken(spoil: Spoil) -> None:
    problems = spoil(("bytes_per_lane: 8B", "bytes_per_lane: 8"), (STEP, "host_touch: {buffer: y}"))
    assert len(problems) == 2


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("gpu.compute.compute_units: 0", "must be above 0"),
        ("gpu[1].compute.compute_units: -1", "must be above 0"),
        ("link.coupling: 2", "must be below 1.0"),
        ("link.h2d: 1B/s", "the other direction at full use would leave nothing of it"),
        ("link.d2h: 900TB/s", "link.h2d: the other direction at full use would leave nothing of it"),
        ("gpu.hbm.bandwidth: 2PB/s", "is too fast to simulate"),
        ("cpu.cores: 0", "must be above 0"),
    ],
)
def test_an_override_that_no_machine_can_have_is_refused_at_its_line(spoil, right, override, message):
    (problem,) = spoil(("seed: 7\n", f"seed: 7\noverrides:\n  {override}\n"))
    path = override.partition(": ")[0]
    assert (problem.path, problem.message) == (f"overrides.{path}", message)
    assert problem.line == right.splitlines().index("seed: 7") + 3


def test_buffers_that_the_simulator_cannot_hold_are_refused(spoil, right):
    (problem,) = spoil(("size: 4GiB", "size: 5TiB"), ("size: 8GiB", "size: 4TiB"))
    assert problem.path == "processes.app.buffers"
    assert (problem.read, problem.legal) == ("9TiB together", "at most 8TiB")
    loader.loads(right.replace("size: 4GiB", "size: 4TiB").replace("size: 8GiB", "size: 4TiB"))
