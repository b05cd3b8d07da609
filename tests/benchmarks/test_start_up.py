"""The time until `gpusim --help` has answered."""

import subprocess
import sys
from time import perf_counter

import pytest


@pytest.mark.timing
def test_help_starts_in_under_0_35_s(figure):
    command = [sys.executable, "-m", "gpusim", "--help"]
    seconds = []
    for _ in range(5):
        start = perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        seconds.append(perf_counter() - start)
    note = f"the best of {len(seconds)}, {max(seconds):.2f} at most"
    figure("gpusim --help", min(seconds), most=0.35, unit=" s", note=note)
    assert min(seconds) < 0.35
