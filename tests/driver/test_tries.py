"""Pages that a CPU thread has faulted on cannot be moved by others: second and third tries (`kfd_svm.md` 2.3, 3.4)."""

from collections import Counter

from gpusim.driver.events import SmiEvent
from gpusim.linux.address_space import RAM, VRAM
from tests.machine.invariants import check
from tests.programs import (
    barrier,
    launch,
    parallel,
    prefetch,
    process,
    run_inside,
    scenario,
    sleep,
    touch,
    vram,
)

RANGE = 2048  # pages of buffer b


def two_gpus_and_a_thread(*, node="mi210-pcie4", thread=True):
    """gpu1's fault holds the SVM mutex while gpu2 faults on b, and then a CPU thread does; b lies in gpu0."""
    branches = [
        [launch(writes="a", gpu="gpu1", stream="one")],
        [sleep("3ms"), launch(writes="b", gpu="gpu2", stream="two", name="second")],
    ]
    if thread:
        branches.append([sleep("5ms"), touch("b", size="4KiB", offset="1MiB", name="cpu")])
    buffers = {"a": "64MiB hipMallocManaged", "b": "8MiB hipMallocManaged"}
    steps = [prefetch("a"), prefetch("b"), parallel(*branches)]
    ran = run_inside(scenario(steps, buffers=buffers, node=node, gpus=3))
    check(ran)
    return ran


def moves_of_b(ran):
    """(event, pages) of what KFD tells of moves of b, or of parts of it, out of gpu0 for faults of GPUs."""
    events = ran.machine.hardware.events
    found = []
    for row in sorted(tuple(row) for row in _rows(events)):
        event, _, _, _page, pages, origin, target, _, trigger = row
        if (
            event in (SmiEvent.MIGRATE_START, SmiEvent.MIGRATE_END)
            and origin == 0
            and target < 0
            and trigger == 1
        ):
            found.append((SmiEvent(event).name, pages))
    return Counter(found)


def _rows(events):
    numbers = events._rows
    return [numbers[at : at + events.WIDTH] for at in range(0, len(numbers), events.WIDTH)]


def test_a_move_to_another_gpu_is_given_up_after_three_tries():
    """The thread waits for the mutex that the restore holds, with its page in hand: -EDEADLK."""
    ran = two_gpus_and_a_thread()
    counters = ran.process("app").kfd
    assert counters["migrate_retries"] == 2
    assert counters["migrate_deadlocks"] == 1
    assert "-EDEADLK" in " ".join(ran.machine.processes[0].hip.kfd.remarks)


def test_each_try_is_told():
    """Three of the whole range, and the granule that the fall-back to RAM finds empty but for the page."""
    told = moves_of_b(two_gpus_and_a_thread())
    assert told["MIGRATE_START", RANGE] == told["MIGRATE_END", RANGE] == 3
    assert told["MIGRATE_START", 512] == told["MIGRATE_END", 512] == 1


def test_all_but_the_page_have_gone_and_the_thread_brings_it_itself():
    rows = two_gpus_and_a_thread().data.tables["migrations"]
    out = [
        (trigger, int(pages))
        for origin, trigger, pages in zip(rows["from"], rows["trigger"], rows["pages"], strict=True)
        if origin == "gpu[0]"
    ]
    assert ("PAGEFAULT_GPU", RANGE - 1) in out
    assert ("PAGEFAULT_CPU", 1) in out


def test_in_a_hive_the_page_is_mapped_where_it_is():
    """HMM gives a page of another GPU of the hive; the fault succeeds, and the granule stays in RAM."""
    apart, hive = (
        two_gpus_and_a_thread(node=node).process("app").kfd for node in ("mi210-pcie4", "mi210-xgmi")
    )
    assert hive["migrate_deadlocks"] == 1
    assert hive["page_in"] == apart["page_in"] - 512


def test_without_the_thread_one_try_does():
    assert set(two_gpus_and_a_thread(thread=False).process("app").kfd) == {"faults", "page_in", "page_out"}


def test_an_eviction_tries_three_times_too():
    """Another process needs the VRAM of x, whose first page a thread of its owner has faulted on."""
    owner = process(
        name="owner",
        buffers={"x": "32MiB hipMallocManaged", "z": "40MiB hipMallocManaged"},
        threads={
            "gpu": [prefetch("x"), barrier(), prefetch("z", wait=False)],
            "cpu": [barrier(), sleep("100us"), touch("x", size="4KiB", name="cpu")],
        },
    )
    other = process([sleep("3ms"), launch(writes="y")], name="other", buffers={"y": "64MiB hipMallocManaged"})
    ran = run_inside(scenario(processes=[owner, other], overrides={"gpu.vram": "80MiB"}))
    check(ran)
    first, _ = ran.machine.processes
    counters = first.data()
    assert counters.outcome == "completed"
    assert ran.process("owner").kfd["migrate_retries"] == 2
    assert any("failed in three tries" in remark for remark in first.hip.kfd.remarks)
    x = first.hip.allocation("x").vma
    assert x.where[0] == RAM
    assert vram(ran.machine).used <= vram(ran.machine).pages
    assert x.count(x.first, x.last, VRAM) < x.pages
