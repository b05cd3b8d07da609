"""File steps and injected faults as they are written: what is wrong is said with place, cause and remedy."""

from __future__ import annotations

import pytest

from gpusim.errors import InputError, Problem
from gpusim.scenario import loader

RIGHT = """\
version: 1
name: files
system: {node: mi300x-7nvme, gpus: 1}
runtime: {hipfile: {version: 0.2.0, missing_symbols: [hipAmdFileRead]}}
faults: [{where: pread, file: f, errno: EINTR, at: [0]}, {where: pwrite, short: 50%, probability: 1%}]
processes:
  - name: app
    buffers: {x: {size: 1GiB, allocator: hipMalloc}}
    files: {f: {size: 8GiB, filesystem: xfs, drive: nvme0}}
    threads:
      main:
        - {name: load, file_read: {file: f, buffer: x, io_size: 1MiB, size: 8GiB}}
        - {name: stream, stream: s, file_write: {file: [f, f], buffer: x, io_size: 1MiB, api: async, depth: 4}}
"""


def problem(old: str, new: str) -> Problem:
    assert old in RIGHT
    with pytest.raises(InputError) as refusal:
        loader.loads(RIGHT.replace(old, new))
    (found,) = refusal.value.problems
    return found


def test_a_job_may_be_larger_than_its_buffer() -> None:
    assert len(loader.loads(RIGHT).processes[0].threads["main"]) == 2


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("size: 8GiB}}\n", "depth: 4}}\n", "load.file_read.depth", "api sync would ignore this key"),
        ("size: 8GiB}}\n", "bounce: pinned}}\n", "load.file_read.bounce", "api sync would ignore this key"),
        ("size: 8GiB}}\n", "api: posix, depth: 2}}\n", "load.file_read.depth", "api posix would ignore"),
        ("{name: load,", "{name: load, stream: s,", "load.stream", "api sync does not use a stream"),
        ("[f, f]", "[f, g]", "stream.file_write.file[1]", "'g' is no file of the process"),
        ("size: 8GiB}}\n", "buffer_offset: 1GiB}}\n", "load.file_read.buffer_offset", "lies beyond the end"),
        ("errno: EINTR, at", "errno: EINTR, short: 10%, at", "faults[0]", "needs one of"),
        ("errno: EINTR, at", "at", "faults[0]", "needs one of"),
        ("errno: EINTR", "errno: hipError", "faults[0].errno", "pread is no call of HIP"),
        ("where: pwrite", "where: fdatasync", "faults[1].short", "fdatasync moves no bytes"),
        ("file: f, errno", "file: h, errno", "faults[0].file", "'h' is no file of a process"),
        ("at: [0]", "at: [0], probability: 1%", "faults[0].at", "`probability` would ignore this key"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(old: str, new: str, path: str, message: str) -> None:
    found = problem(old, new)
    assert path in found.path
    assert message in found.message
    assert found.line is not None


def test_a_default_written_out_is_no_mistake() -> None:
    loader.loads(RIGHT.replace("size: 8GiB}}\n", "depth: 1, bounce: pageable, direct: false}}\n"))


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        (
            "{file: f, buffer: x, io_size: 1MiB, size: 8GiB}",
            "{file: [], buffer: x, io_size: 1MiB}",
            "file",
            "names no",
        ),
        ("size: 8GiB, filesystem", "size: 4TB, filesystem", "files.f.size", "nvme0 has no room for it"),
        (
            "drive: nvme0}",
            "drive: nvme0, dio_offset_align: 3B}",
            "dio_offset_align",
            "statx reports powers of two",
        ),
        ("at: [0]", "at: [-1]", "faults[0].at[0]", "must be at least 0"),
    ],
)
def test_what_no_machine_has_is_refused(old: str, new: str, path: str, message: str) -> None:
    found = problem(old, new)
    assert found.path.endswith(path)
    assert message in found.message
    assert found.line is not None


def test_files_share_the_room_of_their_drive() -> None:
    """Two of 2 TB do not fit on 3.84 TB; ranks share what they declare alike, and tmpfs lies in memory."""
    two = (
        "files: {f: {size: 2TB, filesystem: xfs, drive: nvme0}, g: {size: 2TB, filesystem: FS, drive: nvme0}}"
    )
    one = "files: {f: {size: 8GiB, filesystem: xfs, drive: nvme0}}"
    assert problem(one, two.replace("FS", "xfs")).path.endswith("files.g.size")
    loader.loads(RIGHT.replace(one, two.replace("FS", "tmpfs")))
    ranks = RIGHT.replace("- name: app", "- name: app\n    count: 4").replace("size: 8GiB, f", "size: 2TB, f")
    assert len(loader.loads(ranks).processes) == 4


@pytest.mark.parametrize(("stack", "room"), [("vg0", "7.68TB"), ("md0", "7.68TB"), ("md1", "3.84TB")])
def test_a_stack_has_the_room_of_its_members(stack: str, room: str) -> None:
    text = RIGHT.replace("mi300x-7nvme", "mi300x-stacks").replace("drive: nvme0", f"drive: {stack}")
    loader.loads(text.replace("size: 8GiB, f", f"size: {room}, f"))
    with pytest.raises(InputError, match=f"{stack} has no room"):
        loader.loads(
            text.replace("size: 8GiB, f", f"size: {room.replace('8TB', '9TB').replace('4TB', '5TB')}, f")
        )
