"""Result directories are whole or absent: written under another name in the same place, renamed when
complete.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpusim.errors import InputError, Problem

#: a directory that holds one of these was written by gpusim and may be replaced
MARKS = ("summary.json", "points.parquet")


def check_target(target: Path) -> Path:
    """Refuse, before an hour is spent on the run, a place that could not be written or must not be replaced.

    Returns the absolute path with links followed. Raises InputError.
    """
    path = Path(os.path.realpath(target))
    if Path(target).is_symlink() and not path.exists():
        raise _refused(target, f"is a link to {path}, which is not there")
    if path.exists() or path.is_symlink():
        if not path.is_dir():
            raise _refused(target, "is a file, not a directory")
        if Path.cwd().is_relative_to(path):
            raise _refused(target, "is or holds the current directory, and would be replaced whole")
        try:
            names = [entry.name for entry in path.iterdir()]
        except OSError as error:
            raise _refused(target, f"cannot be read: {error.strerror}") from None
        if names and not any(mark in names for mark in MARKS):
            raise _refused(target, "holds files that are not a gpusim result, and would be replaced whole")
    parent = path.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise _refused(target, f"cannot be made: {parent} is a file")
    probe = parent / f".gpusim.{secrets.token_hex(4)}.probe"
    try:  # asking for permission is not enough: root has it everywhere, also where nothing can be written
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        raise _refused(target, f"cannot be written: {parent}: {error.strerror}") from None
    return path


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A new directory to write into; it becomes `target` when the block ends, and vanishes when the block
    fails.

    Raises InputError when the place cannot be written, also when the disk fills up.
    """
    path = check_target(target)
    partial = path.parent / f".{path.name}.{secrets.token_hex(4)}.partial"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
        yield partial
        _rename(partial, path)
    except OSError as error:
        raise _refused(target, f"cannot be written: {error.strerror or error}") from error
    finally:  # also on Ctrl-C
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """The same for one file."""
    partial = target.parent / f".{target.name}.{secrets.token_hex(4)}.partial"
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        raise _refused(target, f"cannot be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _rename(partial: Path, path: Path) -> None:
    """Put `partial` in the place of `path`. An old result is moved aside first and comes back when this
    fails.
    """
    taken = (errno.ENOTEMPTY, errno.EEXIST)
    for _ in range(8):  # another run may put its result here, or take it away, between our steps
        try:
            partial.rename(path)
            return
        except OSError as error:
            if error.errno not in taken:
                raise
        aside = path.parent / f".{path.name}.{secrets.token_hex(4)}.old"
        try:
            path.rename(aside)
            partial.rename(path)
        except BaseException as error:
            _put_back(aside, path)
            if isinstance(error, OSError) and error.errno in (*taken, errno.ENOENT):
                continue
            raise
        try:
            shutil.rmtree(aside, ignore_errors=True)
        finally:  # the new result is in place: an interrupt must not leave half of the old one beside it
            shutil.rmtree(aside, ignore_errors=True)
        return
    raise OSError(errno.EBUSY, "another run keeps writing to the same place")


def _put_back(aside: Path, path: Path) -> None:
    if aside.exists():
        with suppress(OSError):
            aside.rename(path)
        if path.exists():
            shutil.rmtree(aside, ignore_errors=True)


def _refused(target: Path, why: str) -> InputError:
    return InputError([Problem(f"the output {target} {why}", legal="--out with another directory")])
