"""Makes the compiled twins: mypyc translates the modules to C, and the compiler of this machine makes a library."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

from gpusim.native import PURE, built
from gpusim.native.modules import MODULES

_PACKAGE = Path(__file__).parent.parent


def main(arguments: list[str]) -> int:
    """The command; returns its exit status: 0 built (or there already), 1 it does not compile, 2 it cannot here."""
    parser = argparse.ArgumentParser(
        prog="python -m gpusim.native",
        description="Compile the modules that a run spends its time in (about two minutes, once per version).",
    )
    parser.add_argument("--remove", action="store_true", help="take the compiled modules away")
    parser.add_argument("--verbose", action="store_true", help="show what the compiler says")
    options = parser.parse_args(arguments)
    folder = built()
    if options.remove:
        shutil.rmtree(folder.parent, ignore_errors=True)
        print("gpusim runs in plain Python")
        return 0
    if folder.is_dir():
        print(f"{len(MODULES)} modules are compiled already")
        return 0
    missing = _missing()
    problem = missing or _build(folder, verbose=options.verbose)
    if problem:
        print(f"gpusim.native: {problem}\ngpusim runs in plain Python all the same", file=sys.stderr)
        return 2 if missing else 1
    print(f"{len(MODULES)} modules compiled into {folder}")
    return 0


def _missing() -> str | None:
    """What is not there that a build needs."""
    for package in ("mypyc", "setuptools"):
        if find_spec(package) is None:
            return f"{package} is not installed: pip install 'gpusim[native]'"
    if shutil.which(os.environ.get("CC", "cc")) is None:
        return "there is no C compiler: install gcc (or set CC)"
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return "Python's headers are not installed: on Debian and Ubuntu, install python3-dev"
    folder = built().parent
    folder = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(folder, os.W_OK):
        return f"{folder} cannot be written: install gpusim into an environment of your own"
    return None


def _build(folder: Path, *, verbose: bool) -> str | None:
    """Compile beside the place where the twins belong, and move them there when they are whole."""
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as scratch:
        made = subprocess.run(
            [sys.executable, "-m", "gpusim.native.compile", scratch],
            cwd=_PACKAGE.parent,
            env=os.environ | {PURE: "1"},
            stdout=None if verbose else subprocess.PIPE,
            stderr=None if verbose else subprocess.STDOUT,
            text=True,
            check=False,
        )
        if made.returncode:
            tail = "" if verbose else "\n".join(made.stdout.splitlines()[-8:])
            return f"the compiler failed (--verbose shows all):\n{tail}"
        for old in folder.parent.glob(f"{sys.implementation.cache_tag}-*"):
            shutil.rmtree(old)
        (Path(scratch) / "twins").rename(folder)
    return None
