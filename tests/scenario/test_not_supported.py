"""Legal input that this version does not simulate is read in full, and answered with one clear sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpusim.errors import InputError, Problem
from gpusim.scenario import loader, not_supported
from gpusim.workload.steps import STEPS

Spoil = Callable[..., list[Problem]]

STEP = "host_touch: {buffer: x, access: write}"
BUFFER = "x: {size: 4GiB, allocator: hipMallocManaged}"
NESTED = "fork: {steps: [{host_touch: {buffer: x}}]}"
PAGE = "docs/reference/not-supported.md"


#: verbs of the language of version 1; later versions of gpusim may know more
VERBS = """
    host_touch launch memcpy memcpy_batch memset prefetch advise svm_attributes alloc free munmap mprotect fork
    host_register record wait synchronize file_register buffer_register file_read file_write file_batch drop_caches
    swap_out collapse compact set_xnack barrier repeat parallel sleep kill
"""


def test_every_verb_of_the_language_is_simulated() -> None:
    assert set(VERBS.split()) <= set(STEPS)


@pytest.mark.parametrize("verb", ["file_read", "file_write", "file_batch", "file_register"])
def test_file_steps_want_a_file_of_the_process(right: str, verb: str) -> None:
    arguments = {
        "file_register": "{file: f}",
        "file_batch": "{operation: read, file: f, buffer: w, io_size: 1MiB, entries: 5}",
    }.get(verb, "{file: f, buffer: w, io_size: 1MiB, api: async, threads: 4}")
    with pytest.raises(InputError) as refusal:
        loader.loads(right.replace(STEP, f"{verb}: {arguments}"))
    told = [problem.message for problem in refusal.value.problems]
    assert told == ["'f' is no file of the process"]


def test_what_is_simulated_can_be_switched(right: str) -> None:
    scenario = loader.loads(right.replace("preset: kfd-6.12", "preset: kfd-6.12, recent_skip: off"))
    assert loader.resolve(scenario).driver["switches"]["recent_skip"] == "off"


def test_a_default_said_aloud_is_no_use(right: str) -> None:
    said = "seed: 7\npolicy: {eviction: driver}\nruntime: {}\nfaults: []"
    assert loader.loads(right.replace("seed: 7", said)) == loader.loads(right)


def test_arguments_of_later_are_checked_all_the_same(spoil: Spoil) -> None:
    problems = spoil((STEP, "advise: {buffer: x, advice: set_read_mostley, devise: gpu0}"))
    told = {problem.message: problem.nearest for problem in problems}
    assert told["not one of the legal values"] == "set_read_mostly"
    assert told["unknown key 'devise'"] == "device"


def test_nothing_of_the_language_is_left() -> None:
    assert list(not_supported.features()) == []


THE_LANGUAGE = """\
version: 1
name: managed-first-touch
question: How fast does a kernel stream managed memory that the CPU has written?
system: {node: mi210-pcie4, gpus: 1}
driver: {preset: kfd-6.12}
overrides: {gpu.vram: 32GiB, driver.svm.default_granularity: 2MiB}
parameters: {prefetch: false}
limits: {simulated_time: 60s}
kernels:
  scale: {pattern: stream, mapping: linear, bytes_per_lane: 8B, workgroup: 256, xnack: any}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: 4GiB, allocator: hipMallocManaged}
      w: {size: 8GiB, allocator: hipMalloc, gpu: gpu0}
    files:
      weights: {size: 8GiB, filesystem: xfs, drive: nvme0, cached: 0%}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - {name: move, prefetch: {buffer: x, to: gpu0}, when: "${prefetch}"}
        - {name: scale, launch: {kernel: scale, reads: [x], writes: [x], gpu: gpu0, wait: true}}
        - {name: load, file_read: {file: weights, buffer: w, io_size: 1MiB, api: sync, threads: 4}}
seed: 7
sweep: {over: {parameters.prefetch: [false, true], processes.app.env.HSA_XNACK: ["0", "1"]}, replications: 5}
expect:
  - {metric: steps.scale.duration_ns, value: 4.1s, tolerance: 20%, source: "2 ms rule", kind: predicted}
"""


def test_the_example_of_the_language_is_read_whole() -> None:
    scenario = loader.loads(THE_LANGUAGE)
    assert [step.verb for step in scenario.processes[0].threads["main"]][-1] == "file_read"
