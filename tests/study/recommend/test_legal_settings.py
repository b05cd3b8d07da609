"""A setting that machine or program cannot have is never proposed, nor one that dies recommended."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusim as gs
from gpusim.errors import InputError
from gpusim.machine.visible import visible_devices
from gpusim.scenario.resolve import resolve
from gpusim.scenario.words import DEVICE_ALLOCATORS, Allocator
from gpusim.study.recommend.discover import discover
from gpusim.workload.steps.host_touch import HostTouch
from gpusim.workload.steps.launch import Launch

SCENARIOS = sorted((Path(__file__).parents[3] / "scenarios").glob("*.yaml"))
MIB = 1 << 20


@pytest.fixture(scope="module")
def spaces():
    """Every shipped scenario with its knobs."""
    loaded = [gs.load(file) for file in SCENARIOS]
    return [(scenario, discover(scenario)) for scenario in loaded]


def steps_of(process):
    def walk(steps):
        for step in steps:
            if step.when:
                yield step
                yield from walk(getattr(step.args, "steps", ()))
                for branch in getattr(step.args, "branches", ()):
                    yield from walk(branch)

    for steps in process.threads.values():
        yield from walk(steps)


def legal(scenario, before):
    """The rules, checked on the scenario that comes out."""
    gpus = resolve(scenario).gpus
    for process, was in zip(scenario.processes, before.processes, strict=True):
        seen = visible_devices(gpus, process.env)
        xnack = process.env.get("HSA_XNACK")
        if xnack == "1" and was.env.get("HSA_XNACK") != "1":
            assert seen
            assert all(gpu["xnack"] == "per_process" for gpu in seen)
        touched = {s.args.buffer for s in steps_of(process) if isinstance(s.args, HostTouch)}
        for name, buffer in process.buffers.items():
            if buffer.allocator is was.buffers[name].allocator:
                continue
            assert not (buffer.allocator in DEVICE_ALLOCATORS and name in touched)
            launched = any(
                isinstance(s.args, Launch) and name in s.args.buffers().values() for s in steps_of(process)
            )
            if buffer.allocator is Allocator.MALLOC and launched:
                assert xnack == "1"
            if buffer.allocator is Allocator.HIP_MALLOC:
                assert buffer.size <= max(gs.quantity.parse_size(gpu["hbm"]["size"]) for gpu in seen)
        for step in steps_of(process):
            if step.verb in ("prefetch", "advise"):
                own = was.buffers[step.args.buffer].allocator
                now = process.buffers[step.args.buffer].allocator
                assert now is own or now in (Allocator.MALLOC, Allocator.HIP_MALLOC_MANAGED)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_draws_are_legal_and_load(spaces, data):
    scenario, space = data.draw(st.sampled_from([pair for pair in spaces if pair[1].knobs]))
    drawn = [data.draw(st.sampled_from(knob.labels), label=knob.name) for knob in space.knobs]
    settled = space.settle(drawn)
    if settled is None or settled == space.own:
        return
    assert space.settle(settled) == settled
    legal(scenario.with_(**space.changes(settled), sweep=None, expect=[]), scenario)


def test_every_shipped_scenario_keeps_its_own_settings_among_the_legal(spaces):
    for scenario, space in spaces:
        assert space.settle(space.own) == space.own
        assert space.changes(space.own) == {}, scenario.name


def test_a_machine_without_retry_faults_is_never_told_to_use_xnack(make):
    scenario = make(
        """
buffers: {x: {size: 8MiB, allocator: hipMallocManaged}}
threads: {main: [{host_touch: {buffer: x}}, {name: scale, launch: {kernel: scale, reads: [x], wait: true}}]}
""",
        node="radeonvii-pcie3",
    )
    found = gs.recommend(scenario)
    assert "XNACK of app" not in found.knobs
    assert "noretry" in found.left_alone["XNACK of app"]
    assert "malloc" not in found.knobs["allocator of app.x"]
    with pytest.raises(InputError, match="this machine cannot have it"):
        gs.recommend(scenario, over={"processes.app.env.HSA_XNACK": ["1"]})


def test_a_kernel_that_is_built_for_one_mode_leaves_no_choice(managed):
    scenario = managed.with_(**{"kernels.scale.xnack": "on"})
    with pytest.raises(InputError, match="built for XNACK on only"):
        gs.recommend(scenario, only=["xnack"])


def test_what_is_larger_than_the_vram_is_not_put_there(make):
    scenario = make("""
env: {HSA_XNACK: "1"}
buffers: {x: {size: 16MiB, allocator: malloc}}
threads: {main: [{name: scale, launch: {kernel: scale, writes: [x], wait: true}}]}
""").with_(overrides={"gpu.vram": "12MiB"})
    assert "hipMalloc" not in gs.recommend(scenario, only=["allocator"]).knobs["allocator of app.x"]


def test_two_buffers_that_fit_one_by_one_are_not_both_put_into_vram(make):
    scenario = make("""
env: {HSA_XNACK: "1"}
buffers: {x: {size: 8MiB, allocator: malloc}, y: {size: 8MiB, allocator: malloc}}
threads: {main: [{name: scale, launch: {kernel: scale, reads: [x], writes: [y], wait: true}}]}
""").with_(overrides={"gpu.vram": "12MiB"})
    space = discover(scenario, only=["allocator"])
    assert space.settle(("hipMalloc", "hipHostMalloc")) is not None
    assert space.settle(("hipMalloc", "hipMalloc")) is None


def test_a_program_that_dies_is_told_how_it_lives(make):
    scenario = make("""
env: {HSA_XNACK: "0"}
buffers: {x: {size: 4MiB, allocator: malloc}}
threads: {main: [{host_touch: {buffer: x}}, {name: scale, launch: {kernel: scale, reads: [x], wait: true}}]}
""")
    found = gs.recommend(scenario, only=["xnack"])
    assert found.own.outcome == "vm_fault"
    assert found.best.changed == {"XNACK of app": "on"}
    assert found.gain is None
    assert [one.outcome for one in found.failed] == ["vm_fault"]
    assert found.recommended().processes[0].env["HSA_XNACK"] == "1"


def test_nothing_that_dies_is_ranked(make):
    """hipHostMalloc of more than KFD lets programs pin, and 12 of 16 MiB in a VRAM that a neighbour fills."""
    scenario = make("""
env: {HSA_XNACK: "1"}
buffers: {x: {size: 8MiB, allocator: malloc}, y: {size: 8MiB, allocator: hsa_pool}}
threads: {main: [{name: scale, launch: {kernel: scale, reads: [y], writes: [x], wait: true}}]}
""").with_(overrides={"gpu.vram": "12MiB"})
    found = gs.recommend(scenario, only=["allocator"])
    assert {one.outcome for one in found.failed} == {"out_of_memory"}
    assert all(one.outcome == "completed" for one in found.ranking)
    assert found.best.settings["allocator of app.x"] != "hipMalloc"


def test_where_nothing_completes_nothing_is_recommended(make):
    scenario = make("""
buffers: {x: {size: 4MiB, allocator: hipMalloc}}
threads: {main: [{name: scale, launch: {kernel: scale, reads: [x], wait: true}}]}
""").with_(**{"limits.simulated_time": "1us"})
    found = gs.recommend(scenario, only=["xnack"])
    assert found.best is None
    assert found.gain is None
    assert "None of" in found._repr_html_()
    with pytest.raises(ValueError, match="completed"):
        found.recommended()


def test_direct_io_is_offered_only_where_files_and_blocks_allow_it(make):
    body = """
buffers: {w: {size: 8MiB, allocator: hipMalloc}}
files: {f: {size: 8MiB, filesystem: xfs, drive: nvme0, supports_o_direct: false}}
threads: {main: [{name: load, file_read: {file: f, buffer: w, io_size: 1MiB, api: posix}}]}
"""
    scenario = make(body, node="mi300x-7nvme")
    labels = {knob.name: knob.labels for knob in discover(scenario).knobs}
    assert not any("O_DIRECT" in label for label in labels["path of app.load"])
    supported = scenario.with_(**{"processes.app.files.f.supports_o_direct": True})
    labels = {knob.name: knob.labels for knob in discover(supported).knobs}
    assert any("O_DIRECT" in label for label in labels["path of app.load"])
    forbidden = scenario.with_(**{"processes.app.env.HIPFILE_ALLOW_COMPAT_MODE": "false"})
    assert "ALLOW_COMPAT" in discover(forbidden).left_alone["hipFile of app"]


def test_a_driver_that_migrates_whole_ranges_has_no_granularity(managed):
    found = discover(managed.with_(**{"driver.preset": "kfd-6.3"}))
    assert "default granularity" not in [knob.name for knob in found.knobs]
    assert "range" in found.left_alone["granularity"]
