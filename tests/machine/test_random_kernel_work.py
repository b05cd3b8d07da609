"""Random programs whose memory the kernel works on as well: forks, munmap, compaction, atomics, too few cores."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.machine.invariants import check
from tests.machine.random_programs import programs
from tests.machine.test_random_programs import BIG, ENDS, play
from tests.programs import launch, memcpy, prefetch, process, run_inside, scenario, sleep, touch

FATAL = (*ENDS, "vm_fault", "sigbus", "livelock")
PARTS = [("0B", "1MiB"), ("0B", "4MiB"), ("1MiB", "2MiB"), ("2MiB", "2MiB"), ("3MiB", "1MiB")]


def on(verb, part, **args):
    return {verb: {"buffer": "x", "offset": part[0], "size": part[1], **args}}


def fork(inner):
    return {"fork": {"wait": inner % 2 == 0, "steps": [CHILD[inner % len(CHILD)], sleep("2ms")]}}


CHILD = [touch("x"), touch("x", "read"), sleep("3ms")]
STEPS = [
    lambda n: touch("x", offset=PARTS[n % 5][0], size=PARTS[n % 5][1]),
    lambda n: touch("x", "read"),
    lambda n: launch(writes="x", gpu=f"gpu{n % 2}", stream=f"s{n % 3}", wait=n % 2 == 0),
    lambda n: prefetch("x", to=("gpu0", "gpu1", "cpu")[n % 3], stream=f"s{n % 2}", wait=n % 2 == 0),
    fork,
    fork,
    lambda n: {"compact": {}},
    lambda n: on("swap_out", PARTS[n % 5]),
    lambda n: on("collapse", PARTS[n % 5]),
    lambda n: memcpy("d", "x", is_async=n % 2 == 0),
    lambda n: {"host_touch": {"buffer": "x", "access": "atomic", "times": 1 + n % 3}},
    lambda n: sleep(f"{1 + n % 900}us"),
    lambda n: on("munmap", PARTS[n % 5]),
    lambda n: on("mprotect", PARTS[n % 5], protection=("read", "read_write")[n % 2]),
    lambda n: on("host_register", PARTS[n % 5]),
    lambda n: on("host_register", PARTS[n % 5]),
    lambda n: on("host_unregister", PARTS[n % 5]),
]
_step = st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 29))
_threads = st.lists(st.lists(_step, min_size=1, max_size=6), min_size=1, max_size=3)


@settings(BIG, max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    _threads,
    st.sampled_from(["malloc", "hipMallocManaged", "heap"]),
    st.booleans(),
    st.sampled_from([1, 2, 32]),
    st.sampled_from(["", "0"]),
)
def test_whatever_the_kernel_does_meanwhile_the_books_agree(threads, allocator, xnack, cores, locks):
    program = process(
        threads={
            f"t{n}": [STEPS[kind](code) | {"name": f"s{n}_{at}"} for at, (kind, code) in enumerate(steps)]
            for n, steps in enumerate(threads)
        },
        buffers={"x": f"4MiB {allocator}", "d": "4MiB hipMalloc"},
        xnack=xnack,
        env={"GPU_PINNED_MIN_XFER_SIZE": locks} if locks else None,
        on_error="continue",  # a call that is refused is not the end of it
    )
    overrides = {"cpu.cores": cores, "gpu.vram": "64MiB"}
    ran = run_inside(scenario(processes=[program], gpus=2, overrides=overrides, limit="20s"))
    assert ran.outcome in FATAL, ran.data.processes
    if ran.outcome == "completed":
        check(ran)
        assert ran.machine.hardware.cores is None or ran.machine.hardware.cores.runnable == 0


@settings(BIG, max_examples=15)
@given(programs(gpus=2), st.sampled_from(["summary", "spans"]))
def test_programs_on_one_core_end_well(program, record):
    ran = play(program | {"overrides": {"cpu.cores": 1}}, record)
    if ran is not None:
        assert ran.outcome in ENDS, ran.data.processes
        check(ran)
