"""Scenarios whose best settings follow from a closed form: the search has to find them."""

import pytest

import gpusim as gs
from gpusim.scenario.resolve import resolve

MIB = 1 << 20


def best(scenario, *only, **more):
    found = gs.recommend(scenario, only=only, **more)
    return found, found.best


def number(scenario, path):
    """A number of the machine, in base units."""
    return resolve(scenario).parameters[path].value


def test_what_is_read_once_is_best_left_where_it_is(managed):
    """XNACK off: 8 MiB across the link once. On: four granules of one range, 2 ms apart."""
    found, chosen = best(managed, "xnack")
    assert chosen.changed == {"XNACK of app": "off"}
    assert chosen.how == ("--set processes.app.env.HSA_XNACK=0",)
    assert found.own.value - chosen.value > 3 * 2e6 - 8 * MIB / number(managed, "link.h2d") * 1e9


def test_what_is_read_often_is_best_migrated(managed):
    often = managed.with_(**{"kernels.scale.passes": 60, "processes.app.env.HSA_XNACK": "0"})
    found, chosen = best(often, "xnack")
    assert chosen.changed == {"XNACK of app": "on"}
    across = 60 * 8 * MIB / (number(often, "link.h2d") * number(often, "gpu.zero_copy.read_efficiency"))
    assert found.own.value == pytest.approx(across * 1e9, rel=0.2)
    assert chosen.value < 0.5 * found.own.value


def test_a_prefetch_spares_the_wait_between_granules(managed):
    """Four granules of one range: 2 ms between each two of them, or one copy."""
    _, chosen = best(managed, "prefetch")
    assert chosen.changed == {"prefetch of app.x": "before scale"}
    assert chosen.how == ("step {prefetch: {buffer: x, to: gpu0}} before processes.app.threads.main.scale",)
    assert chosen.difference.mean < -3 * 2e6


def test_a_prefetch_that_is_there_is_switched_off_where_it_only_costs(managed):
    """With all of it left in host memory, moving it for a single read costs more than reading it there."""
    step = {"prefetch": {"buffer": "x", "to": "gpu0"}}
    steps = managed.raw["processes"][0]["threads"]["main"]
    off = {"processes.app.env.HSA_XNACK": "0", "processes.app.threads.main": [steps[0], step, steps[1]]}
    _, chosen = best(managed.with_(**off), "prefetch")
    assert chosen.changed == {"prefetch step app.prefetch": "off"}


def test_one_fault_for_the_whole_buffer_beats_four(managed):
    """The larger the granule the fewer faults, each 2 ms after the last; beyond the buffer nothing changes."""
    found, chosen = best(managed, "granularity")
    assert found.knobs == {"default granularity": ("64KiB", "512KiB", "2MiB")}
    larger = managed.with_(**{"processes.app.buffers.x.size": "64MiB"})
    found, chosen = best(larger, "granularity")
    assert found.knobs["default granularity"][-1] == "16MiB"
    assert chosen.changed == {"default granularity": "16MiB"}
    saved = -chosen.difference.mean
    assert saved == pytest.approx((32 - 4) * 2e6, rel=0.15)


def test_advice_to_read_in_place_spares_the_migrations(managed):
    """The four granules still fault 2 ms apart, but no page is copied."""
    _, chosen = best(managed, "advice")
    (advice,) = chosen.changed.values()
    assert advice in ("accessed by gpu0", "preferred location cpu")
    assert chosen.difference.significant
    copies = 8 * MIB / number(managed, "link.h2d") * 1e9
    assert -2e6 < chosen.difference.mean < -copies
    assert chosen.value > 3 * 2e6


def test_memory_that_only_the_gpu_uses_is_best_in_vram(make):
    scenario = make("""
env: {HSA_XNACK: "1"}
buffers: {x: {size: 32MiB, allocator: malloc}}
threads: {main: [{name: scale, launch: {kernel: scale, writes: [x], wait: true}}]}
""")
    found, chosen = best(scenario, "allocator")
    assert chosen.changed == {"allocator of app.x": "hipMalloc"}
    assert set(found.knobs["allocator of app.x"]) == {
        "hipMallocManaged",
        "malloc",
        "hipHostMalloc",
        "hipMalloc",
    }
    assert chosen.value < 32 * MIB / number(scenario, "gpu.hbm.bandwidth") * 1e9 * 20


def test_copies_again_and_again_are_best_from_pinned_memory(make):
    """Pinning costs once; each copy then runs at the rate of the link."""
    scenario = make("""
buffers: {h: {size: 16MiB, allocator: malloc}, d: {size: 16MiB, allocator: hipMalloc}}
threads:
  main:
    - {name: fill, host_touch: {buffer: h}}
    - {repeat: {times: 50, steps: [{name: copy, memcpy: {dst: d, src: h}}]}}
""")
    found, chosen = best(scenario, "allocator")
    assert chosen.changed == {"allocator of app.h": "hipHostMalloc"}
    assert found.knobs == {"allocator of app.h": ("malloc", "hipHostMalloc")}
    assert "allocator of app.d" not in found.knobs


CACHED = """
buffers: {h: {size: 64MiB, allocator: malloc}}
files: {f: {size: 64MiB, filesystem: xfs, drive: nvme0, cached: 100%}}
threads:
  main:
    - {name: fill, host_touch: {buffer: h}}
    - {name: load, file_read: {file: f, buffer: h, io_size: 64KiB, api: posix}}
"""


def test_threads_help_up_to_what_memory_gives_all_of_them(make):
    """A thread copies at its own rate; more of them than share the whole bandwidth gain nothing."""
    scenario = make(CACHED, node="mi210-4nvme")
    found, chosen = best(scenario, "threads", metric="steps.load.duration_ns")
    rates = {one.settings["threads of app.load"]: 64 * MIB / one.value for one in found.ranking}
    assert rates["2"] == pytest.approx(2 * rates["1"], rel=0.1)
    most = max(rates.values())
    needed = next(count for count in rates_in_order(rates) if rates[str(count)] >= 0.99 * most)
    assert int(chosen.settings["threads of app.load"]) >= needed > 1
    assert found.simplest.settings["threads of app.load"] == str(needed)


def rates_in_order(rates):
    return sorted(map(int, rates))


def test_larger_blocks_pay_the_fixed_cost_of_a_call_less_often(make):
    scenario = make(CACHED, node="mi210-4nvme")
    found, chosen = best(scenario, "io_size", metric="steps.load.duration_ns")
    assert chosen.settings["io_size of app.load"] != "64KiB"
    calls = {"64KiB": 1024, "256KiB": 256}
    saved = found.own.value - next(
        one.value for one in found.ranking if one.settings["io_size of app.load"] == "256KiB"
    )
    fixed = saved / (calls["64KiB"] - calls["256KiB"])
    assert 500 < fixed < 10_000  # ns of one call, measured 2.1 us


def test_one_thread_reads_faster_without_a_copy_in_between(make):
    """Each block comes from the drive, and with a host buffer goes through a copy after that."""
    scenario = make(
        """
buffers: {w: {size: 64MiB, allocator: hipMalloc}}
files: {f: {size: 1GiB, filesystem: xfs, drive: nvme0}}
threads: {main: [{name: load, file_read: {file: f, buffer: w, io_size: 1MiB, api: posix, order: random}}]}
""",
        node="mi300x-7nvme",
    )
    found, chosen = best(scenario, "route")
    assert chosen.settings["path of app.load"] == "hipFile"
    assert chosen.settings["hipFile of app"] == "fast path"
    bounced = next(one for one in found.ranking if one.settings["hipFile of app"] == "fallback")
    assert bounced.value > chosen.value


def test_a_rate_is_maximised_and_the_goal_can_be_said(managed):
    found = gs.recommend(managed, only=["xnack"], metric="steps.scale.bandwidth_gb_per_s")
    assert found.goal == "max"
    assert found.best.value >= found.own.value
    slowest = gs.recommend(managed, only=["xnack"], goal="max")
    assert slowest.best.changed == {}
    assert slowest.best.value >= max(one.value for one in slowest.ranking)
