"""Memory of the other socket: somebody pays, the thread or the copy engine."""

from functools import cache
from pathlib import Path

import pytest

import gpusim as gs

FILE = Path(__file__).parents[2] / "scenarios" / "far_memory.yaml"


@cache
def seconds(step, numa, gpu):
    ran = gs.run(FILE, set={"parameters.numa": numa, "parameters.gpu": gpu})
    return ran.metric(f"steps.{step}[1].duration_ns") / 1e9


def test_the_copy_from_the_other_socket_takes_1_8_times_as_long():
    """UM36."""
    assert seconds("feed", 0, "gpu4") / seconds("feed", 1, "gpu4") == pytest.approx(1.8, rel=0.02)
    assert seconds("feed", 1, "gpu0") == pytest.approx(seconds("feed", 0, "gpu4"))


def test_a_buffer_beside_the_gpu_costs_the_thread_more_than_it_saves_the_copy():
    filled = seconds("fill", 1, "gpu4") - seconds("fill", 0, "gpu4")
    copied = seconds("feed", 0, "gpu4") - seconds("feed", 1, "gpu4")
    assert filled > copied > 0


def test_all_on_one_socket_is_best():
    best = seconds("fill", 0, "gpu0") + seconds("feed", 0, "gpu0")
    for numa, gpu in ((0, "gpu4"), (1, "gpu4"), (1, "gpu0")):
        assert seconds("fill", numa, gpu) + seconds("feed", numa, gpu) > 1.1 * best
