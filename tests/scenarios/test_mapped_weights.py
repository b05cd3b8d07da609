"""Weights in a mapped file: pages of files do not come to the GPU."""

from functools import cache
from pathlib import Path

import pytest

import gpusim as gs

FILE = Path(__file__).parents[2] / "scenarios" / "mapped_weights.yaml"


@cache
def result(*, copy):
    return gs.run(FILE, set={"parameters.copy": copy})


def test_each_pass_crosses_the_link_and_nothing_migrates():
    ran = result(copy=False)
    assert ran.metric("migrations.host_to_device.bytes") == 0
    assert ran.metric("links.gpu[0].pcie.h2d.bytes") == pytest.approx(4 * 2**30, rel=0.01)
    assert ran.metric("links.nvme0.read.bytes") == 2**30
    passes = [ran.metric(f"steps.infer[{number}].duration_ns") for number in range(4)]
    assert passes[0] > 5 * passes[1], "the first one waits for the drive, fault after fault"
    assert passes[1:] == pytest.approx([passes[1]] * 3, rel=0.01)


def test_a_copy_costs_one_reading_of_the_file_and_pays_from_the_first_pass_on():
    ran = result(copy=True)
    assert ran.metric("links.nvme0.read.bytes") == 2**30
    once = result(copy=False).metric("steps.infer[0].duration_ns")
    assert ran.metric("steps.load.duration_ns") == pytest.approx(once, rel=0.25)
    assert ran.metric("steps.infer_resident[3].duration_ns") < 0.05 * once
