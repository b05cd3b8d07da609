"""Lines that CPU threads and GPUs update at the same time."""

import pytest

from gpusim.engine.environment import Environment
from gpusim.hardware.coherence import LineCosts, SharedLines

COSTS = LineCosts(owned="5ns", between_cores="40ns", from_gpu="320ns")
NS = 1000


class Kernel:
    def __init__(self, use):
        self.lines_use = use
        self.factor = 1.0

    def slow_atomics(self, factor):
        self.factor = factor


def lines(count=128):
    env = Environment()
    return env, SharedLines(env, COSTS, count * 64)


def ends(env, shared, counts, per_line=8):
    found = []
    for count in counts:
        shared.update(count, per_line, lambda: found.append(env.now))
    env.run_to()
    return found


def test_a_thread_alone_has_the_lines_in_its_cache():
    env, shared = lines()
    assert ends(env, shared, [1000]) == [1000 * 5 * NS]


def test_two_threads_take_lines_from_each_other():
    """Half of the visits find the line with the other core: 5 + 40 / 2 / 8 ns."""
    env, shared = lines()
    assert ends(env, shared, [1000, 1000]) == [1000 * 7500] * 2


def test_a_thread_that_is_left_alone_is_fast_again():
    env, shared = lines()
    first, second = ends(env, shared, [1000, 2000])
    assert first == 1000 * 7500
    assert second == first + 1000 * 5 * NS


def test_a_gpu_on_all_lines_makes_each_visit_fetch_its_line():
    env, shared = lines()
    shared.begin(Kernel(1.0))
    assert ends(env, shared, [1000]) == [1000 * 45 * NS]


def test_a_kernel_waits_for_lines_that_are_at_cores():
    env, shared = lines(15)
    kernel = Kernel(1.0)
    shared.begin(kernel)
    shared.update(1000, 8, lambda: None)
    assert kernel.factor == pytest.approx(16 / 15)
    env.run_to()
    assert kernel.factor == 1.0


def test_two_gpus_get_half_of_the_lines_each():
    _, shared = lines()
    one, two = Kernel(1.0), Kernel(1.0)
    shared.begin(one)
    shared.begin(two)
    assert one.factor == two.factor == 2.0
    shared.end(one)
    assert two.factor == 1.0


def test_a_kernel_that_hardly_needs_the_lines_hardly_slows_others_down():
    _, shared = lines()
    busy, idle = Kernel(1.0), Kernel(0.05)
    shared.begin(busy)
    shared.begin(idle)
    assert busy.factor == pytest.approx(1.05)
