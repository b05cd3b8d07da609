"""The time until `gpusim --help` has answered."""

import subprocess
import sys
from time import perf_counter

import pytest


@pytest.mark.timing
def test_help_starts_in_under_0_35_s():
    command = [sys.executable, "-m", "gpusim", "--help"]
    seconds = []
    for _ in range(5):
        start = perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        seconds.append(perf_counter() - start)
    print(f"gpusim --help: {min(seconds):.3f} s, the best of {len(seconds)}")
    assert min(seconds) < 0.35
