"""Wavefronts whose lanes hit several pages: what waits, what is replayed, and that nothing is done twice."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.engine.environment import Environment
from gpusim.hardware.access import Operand
from gpusim.hardware.gpu_spec import RetrySpec
from gpusim.hardware.gpuvm import INVALID, LOCAL, Region, Vm
from gpusim.hardware.lane_faults import LaneFault
from gpusim.hardware.lanes import LaneAccess
from gpusim.hardware.retry import RetryUnit
from tests.programs import launch, repeat, run, touch

PERIOD = 100
PAGES = 8


class Mapper:
    """Maps a page a while after a fault on it, as a driver would."""

    def __init__(self, env, delays):
        self.env = env
        self.delays = iter(delays)
        self.path = ([0], 0)

    def retry_fault(self, fault):
        region, page = fault.region, fault.page
        at = self.env.now + next(self.delays, 50)
        self.env.call_at(at, lambda: region.map(page, page, LOCAL, self.env.now))

    def fatal_fault(self, region, page, write):
        raise AssertionError("XNACK is on")


class Wavefront:
    """What a lane fault needs of its wavefront."""

    def __init__(self, env, gpu):
        self.dispatch = SimpleNamespace(env=env, gpu=gpu, dead=False, counters=SimpleNamespace(sends=0))
        self.base = ([0], 0)
        self.over_ps = None

    def path(self):
        return self.base

    def served(self, base, base_ps):
        self.over_ps = self.dispatch.env.now


@settings(max_examples=500, deadline=None)
@given(
    pages=st.lists(st.integers(0, PAGES - 1), min_size=1, max_size=64),
    mapped=st.sets(st.integers(0, PAGES - 1)),
    delays=st.lists(st.integers(1, 500), max_size=40),
    evictions=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, PAGES - 1)), max_size=20),
)
def test_each_lane_is_done_exactly_once_whatever_comes_and_goes(pages, mapped, delays, evictions):
    """Evictions fall between the mapping of a page and the re-send that would have found it."""
    env = Environment()
    region = Region(Vm("app", 3, retry=True), "x", 0, PAGES)
    for page in mapped:
        region.map(page, page, LOCAL, 0)
    mapper = Mapper(env, delays)
    spec = RetrySpec.model_construct(period=PERIOD, cam_entries=512, delivery=1)
    retry = RetryUnit(spec, env=env, listener=mapper, random=np.random.default_rng(1))
    gpu = SimpleNamespace(retry=retry, releasing=([0], 0))
    wave = Wavefront(env, gpu)
    done = [0] * len(pages)

    def atomic_add(lane):
        assert region.valid[pages[lane]] != INVALID
        done[lane] += 1

    operand = Operand(region, read_bytes=0.0, write_bytes=512.0)
    access = LaneAccess(pages, atomic_add)
    waiting = []
    for page in access.issue(lambda page: region.valid[page] == INVALID):
        waiting.append(LaneFault(wave, access, operand, page, waiting))
    missing = len(waiting)
    for fault in waiting:
        fault.send()
    for at, page in evictions:
        env.call_at(at, lambda page=page: region.unmap(page, page))
    env.run_to(1_000_000)
    assert done == [1] * len(pages)
    assert (wave.over_ps is not None) == (missing > 0)
    assert wave.dispatch.counters.sends >= missing


# -- programs ----------------------------------------------------------------------------------------------------------

RANDOM = {
    "scale": {"pattern": "random", "bytes_per_lane": "64B", "workgroups": 1, "workgroup": 64, "step": "4KiB"}
}


def test_the_lanes_of_one_instruction_fault_at_once():
    """One wavefront whose first instruction hits most of 16 granules: they are raised together, not one by one."""
    ran = run([launch(reads="x")], buffers={"x": "32MiB malloc"}, kernels=RANDOM)
    raised = ran.data.tables["faults"]["raised_ps"]
    first = [time for time in raised if time == raised.min()]
    assert len(first) > 8
    assert ran.faults["serviced"] == 16
    assert sum(ran.attribution.values()) == ran.makespan_ps


def test_a_stream_faults_page_by_page():
    spec = {"scale": {"workgroups": 1, "workgroup": 64, "step": "32MiB"}}
    ran = run([launch(reads="x")], buffers={"x": "32MiB malloc"}, kernels=spec)
    assert len(set(ran.data.tables["faults"]["raised_ps"])) == 16


def test_scattered_waves_and_a_cpu_that_pulls_pages_back():
    steps = {
        "gpu": [repeat(3, launch(reads="x"))],
        "cpu": [repeat(3, touch("x"))],
    }
    spec = {"scale": {"pattern": "random", "bytes_per_lane": "64B", "workgroups": 8, "step": "4KiB"}}
    ran = run(threads=steps, buffers={"x": "8MiB malloc"}, kernels=spec)
    assert ran.outcome == "completed"
    assert ran.faults["pending"] == 0
