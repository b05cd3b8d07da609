"""`python -m tests.benchmarks.peak_memory GIB ALLOCATOR STEP_KIB RECORD`: what a first touch adds to all imports.

Prints a line of JSON: MiB resident after all imports, by how much the peak was above that, and the spans recorded. It
is a process of its own because a peak is that of its whole life.
"""

import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.result import Result
from gpusim.simulation import simulate
from tests.benchmarks.first_touch import program

ROOT = Path(__file__).parents[2]
STATUS = Path("/proc/self/status")
needs_proc = pytest.mark.skipif(not STATUS.exists(), reason=f"reads {STATUS}")


def measured(gib, allocator, *, step_kib, record="summary"):
    """Run this module as a process and return what it prints; `peak` is less the imports."""
    arguments = [str(gib), allocator, str(step_kib), record]
    command = [sys.executable, "-m", "tests.benchmarks.peak_memory", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def resident(entry):
    """`VmRSS` or its peak, `VmHWM`, in MiB. (`ru_maxrss` would begin with the peak of the parent.)"""
    for line in STATUS.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == entry:
            return int(value.split()[0]) / 1024
    raise LookupError(entry)


def import_all():
    for module in pkgutil.walk_packages(gpusim.__path__, "gpusim."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert np.random  # numpy imports it when it is first used


def main():
    gib, allocator, step_kib, record = sys.argv[1:]
    import_all()
    chosen = program(int(gib), allocator, int(step_kib))
    imports = resident("VmRSS")
    data = simulate(chosen, record=record)
    result = Result.from_run(chosen, data)
    peak = resident("VmHWM")
    assert result.outcome == "completed"
    spans = len(data.tables["spans"]["who"]) if record == "spans" else 0
    print(json.dumps({"imports": imports, "peak": peak - imports, "spans": spans}))


if __name__ == "__main__":
    main()
