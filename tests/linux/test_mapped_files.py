"""mmap of a file: faults bring in the page cache, GPUs read it where it is, stores go to the file or make copies."""

import pytest

from gpusim.errors import InputError
from gpusim.kinds import Kind
from tests.machine import invariants
from tests.programs import (
    MIB,
    Ran,
    free,
    host_spec,
    launch,
    memcpy,
    prefetch,
    process,
    run_inside,
    scenario,
    sleep,
    touch,
    vram,
)

SIZE = 64 * MIB
PAGES = SIZE // 4096
COLD = {"w": "64MiB 0%"}
WARM = {"w": "64MiB 100%"}
READ = {"x": "64MiB mmap w"}
SHARED = {"x": "64MiB mmap w shared"}
PRIVATE = {"x": "64MiB mmap w private"}
DRIVE = "nvme0.read"


def ran(*steps, files=None, buffers=None, **keys) -> Ran:
    done = run_inside(
        scenario(list(steps), files=files or WARM, buffers=buffers or READ, **keys), record="spans"
    )
    invariants.check(done)
    return done


def on(verb: str, **arguments):
    return {verb: {"buffer": "x", **arguments}}


def drop():
    return {"drop_caches": {}}


def cache(done: Ran):
    return done.machine.hardware.storage.file_io.cache


def where(done: Ran, place: int) -> int:
    (vma,) = [vma for vma in done.machine.processes[0].hip.kfd.mm if vma.name == "x"]
    return vma.where.count(place)


NOWHERE, RAM, FILE, FILE_WRITE = 0, 1, 253, 254


class TestCpu:
    def test_cached_pages_are_mapped_16_at_a_time_and_read(self):
        done = ran(touch("x", "read"))
        costs, host = host_spec().io.mapped, host_spec()
        mapping = PAGES * costs.map + PAGES // 16 * host.pages.fault
        assert done.duration("host_touch") == pytest.approx(
            mapping / 1e12 + SIZE / host.thread_bandwidth, rel=1e-6
        )
        assert done.carried(DRIVE) == 0
        assert done.machine.hardware.node.host.used == 0, "the page cache is no memory of the process"

    def test_what_is_not_cached_comes_from_the_drive_once(self):
        done = ran(touch("x", "read", name="cold"), touch("x", "read", name="again"), files=COLD)
        assert done.carried(DRIVE) == SIZE
        assert done.duration("cold") > 3 * done.duration("again")
        assert done.attribution[Kind.DRIVE] > 0

    def test_a_lone_page_reads_a_window_around_itself(self):
        done = ran(touch("x", "read", offset="32MiB", size="4KiB"), files=COLD)
        assert done.carried(DRIVE) == host_spec().io.readahead
        assert where(done, FILE) == 1

    def test_half_of_a_file_that_is_cached_is_not_read(self):
        assert ran(touch("x", "read"), files={"w": "64MiB 50%"}).carried(DRIVE) == SIZE // 2

    def test_ranks_share_the_page_cache(self):
        app = process([touch("x", "read")], buffers=READ, files=COLD, count=2)
        done = run_inside(scenario(processes=[app]))
        assert SIZE <= done.carried(DRIVE) <= 2 * SIZE
        assert cache(done).pages == PAGES

    def test_a_file_on_tmpfs_has_no_drive(self):
        app = process([touch("x", "read")], buffers=READ)
        app["files"] = {"w": {"size": "64MiB", "filesystem": "tmpfs", "drive": "nvme0"}}
        assert run_inside(scenario(processes=[app])).carried(DRIVE) == 0


class TestGpu:
    def test_pages_stay_in_the_page_cache_and_the_gpu_reads_across_the_link(self):
        done = ran(launch(reads="x"))
        assert done.outcome == "completed"
        assert done.faults["serviced"] == 32
        assert done.migrated("host_to_device") == 0
        assert done.link_bytes("h2d") == pytest.approx(SIZE, rel=0.01)
        assert vram(done.machine).used == 0
        assert vram(done.machine).peak == 512, "the buffer object that a migration begins with"

    def test_the_drive_is_on_the_fault_path(self):
        cold, warm = ran(launch(reads="x"), files=COLD), ran(launch(reads="x"))
        assert cold.carried(DRIVE) == SIZE
        assert cold.duration("scale") > 2 * warm.duration("scale")
        assert sum(cold.data.tables["faults"]["drive_ps"]) > 0

    def test_the_second_kernel_finds_its_pages_mapped(self):
        done = ran(launch(reads="x", name="first"), launch(reads="x", name="second"), files=COLD)
        assert done.faults["serviced"] == 32
        assert done.duration("second") < done.duration("first") / 3

    def test_pages_that_the_cpu_has_mapped_are_copied_in_vain(self):
        """migrate_vma collects them, the driver copies, and Linux refuses: only anonymous memory may move."""
        done = ran(touch("x", "read"), launch(reads="x"))
        assert done.migrated("host_to_device") == 0
        assert done.link_bytes("h2d") == pytest.approx(2 * SIZE, rel=0.01)
        untouched = ran(launch(reads="x"))
        assert done.duration("scale") > 1.2 * untouched.duration("scale")

    def test_prefetch_reads_the_file_and_maps_it(self):
        done = ran(prefetch("x"), launch(reads="x"), files=COLD)
        assert done.faults["serviced"] == 0
        assert done.carried(DRIVE) == SIZE
        assert vram(done.machine).used == 0

    def test_a_node_without_numbers_for_files_maps_none(self):
        app = process([launch(reads="x")], buffers=READ, files=WARM)
        with pytest.raises(InputError, match="no numbers for mapped files"):
            scenario(processes=[app], node="mi300a")

    def test_without_xnack_it_is_a_memory_access_fault(self):
        assert ran(launch(reads="x"), xnack=False).outcome == "vm_fault"

    def test_hmm_that_may_not_sleep_faults_again_while_the_drive_reads(self):
        driver = {"hmm": "non_blocking"}
        cold = ran(launch(reads="x"), files=COLD, driver=driver)
        assert cold.outcome == "completed"
        assert cold.carried(DRIVE) >= SIZE
        assert cold.faults["serviced"] == 32


class TestStores:
    def test_a_read_only_mapping_takes_none(self):
        done = ran(touch("x", "write"))
        assert done.outcome == "sigbus"
        assert "SIGSEGV: write to" in done.process("app").error
        assert "it is protected" in done.process("app").error

    def test_a_kernel_that_writes_a_read_only_mapping_is_killed(self):
        assert ran(launch(writes="x")).outcome == "vm_fault"

    def test_shared_stores_make_pages_dirty_one_fault_each(self):
        done = ran(touch("x"), buffers=SHARED)
        assert cache(done).dirty == PAGES
        assert where(done, FILE_WRITE) == PAGES
        costs = host_spec()
        assert done.attribution[Kind.PAGE_CACHE] >= PAGES * (
            costs.pages.fault + costs.io.mapped.make_writable
        )

    def test_a_gpu_that_only_reads_makes_a_writable_shared_mapping_dirty(self):
        """HMM asks for write access wherever the VMA allows it."""
        assert cache(ran(launch(reads="x"), buffers=SHARED)).dirty == PAGES
        assert cache(ran(launch(reads="x"), buffers=READ)).dirty == 0

    def test_writeback_takes_mappings_away_and_stores_fault_again(self):
        """Little memory: writing 128 MiB makes the flusher run, and who writes again faults again."""
        small = {"cpu.memory": "640MiB", "gpu.vram": "1GiB"}
        room = {"gpu.vram": "1GiB"}
        twice = [launch(writes="x", name="one"), sleep("1s"), launch(writes="x", name="two")]
        done = ran(*twice, buffers={"x": "128MiB mmap w shared"}, files={"w": "128MiB 100%"}, overrides=small)
        assert done.outcome == "completed"
        assert done.faults["serviced"] > 64
        assert done.carried("nvme0.write") > 64 * MIB
        roomy = ran(*twice, buffers={"x": "128MiB mmap w shared"}, files={"w": "128MiB 100%"}, overrides=room)
        assert roomy.faults["serviced"] == 64

    def test_private_stores_make_copies_and_leave_the_file_alone(self):
        done = ran(touch("x"), buffers=PRIVATE)
        assert cache(done).dirty == 0
        assert where(done, RAM) == PAGES
        assert done.machine.hardware.node.host.used == PAGES
        assert done.attribution[Kind.PAGE_COPY] > 0

    def test_private_copies_are_anonymous_and_migrate(self):
        done = ran(touch("x", size="32MiB"), prefetch("x"), launch(reads="x"), buffers=PRIVATE)
        assert done.migrated("host_to_device") == 32 * MIB
        assert where(done, RAM) == PAGES // 2, "HMM broke the sharing of the rest"

    def test_a_private_mapping_can_be_protected(self):
        done = ran(on("mprotect", protection="read"), touch("x"), buffers=PRIVATE)
        assert done.outcome == "sigbus"


class TestEnds:
    def test_beyond_the_end_of_the_file_there_is_nothing(self):
        buffers = {"x": "128MiB mmap w"}
        done = ran(touch("x", "read"), buffers=buffers)
        assert done.outcome == "sigbus"
        assert "beyond the end of file 'w'" in done.process("app").error
        assert ran(launch(reads="x"), buffers=buffers).outcome == "vm_fault"

    def test_mapped_pages_stay_when_caches_are_dropped(self):
        assert cache(ran(touch("x", "read", size="32MiB"), drop())).pages == PAGES // 2

    def test_munmap_lets_them_go(self):
        done = ran(touch("x", "read"), on("munmap"), drop())
        assert cache(done).pages == 0
        assert where(done, NOWHERE) == PAGES

    def test_free_leaves_nothing_behind(self):
        done = ran(touch("x", "read"), launch(reads="x"), free("x"), drop())
        assert cache(done).pages == 0
        assert not list(done.machine.processes[0].hip.kfd.mm)

    def test_a_killed_process_lets_the_file_go(self):
        app = process([touch("x"), sleep("10s")], buffers=PRIVATE, files=WARM)
        boss = process([sleep("1s"), {"kill": {"process": "app"}}, drop()], name="boss")
        done = run_inside(scenario(processes=[app, boss]))
        invariants.check(done)
        assert done.machine.hardware.node.host.used == 0
        assert cache(done).pages == 0

    def test_a_file_larger_than_memory_loses_pages_as_it_goes(self):
        """384 MiB through 256 MiB of memory, twice: half of it at least has to come from the drive again."""
        done = ran(
            launch(reads="x", name="first"),
            launch(reads="x", name="second"),
            files={"w": "384MiB 0%"},
            buffers={"x": "384MiB mmap w"},
            overrides={"cpu.memory": "256MiB", "gpu.vram": "1GiB"},
        )
        assert done.outcome == "completed"
        assert done.faults["serviced"] > 192 + 50
        assert done.carried(DRIVE) > 500 * MIB
        assert done.attribution[Kind.DRIVE] > 0.5 * done.makespan_ps

    def test_a_forked_child_reads_the_file_too(self):
        done = ran({"fork": {"steps": [touch("x", "read", name="child")], "wait": True}}, touch("x", "read"))
        assert done.outcome == "completed"
        assert done.duration("child") > 0


class TestCopies:
    def test_a_copy_to_the_device_faults_pages_in_as_it_goes(self):
        buffers = READ | {"d": "64MiB hipMalloc"}
        cold, warm = (
            ran(memcpy("d", "x"), files=COLD, buffers=buffers),
            ran(memcpy("d", "x"), buffers=buffers),
        )
        assert cold.carried(DRIVE) == SIZE
        assert cold.link_bytes("h2d") == warm.link_bytes("h2d") == SIZE
        assert cold.duration("memcpy") > 1.5 * warm.duration("memcpy")

    def test_a_copy_into_a_shared_mapping_makes_it_dirty(self):
        done = ran(memcpy("x", "d"), buffers=SHARED | {"d": "64MiB hipMalloc"})
        assert cache(done).dirty == PAGES

    def test_a_copy_into_a_read_only_mapping_fails(self):
        assert ran(memcpy("x", "d"), buffers=READ | {"d": "64MiB hipMalloc"}).outcome == "sigbus"

    def test_registered_pages_are_pinned_in_the_page_cache(self):
        done = ran(on("host_register"), memcpy("d", "x"), drop(), buffers=READ | {"d": "64MiB hipMalloc"})
        assert cache(done).pages == PAGES
        assert done.attribution[Kind.PIN] > 0
        assert Kind.BOUNCE_COPY not in done.attribution


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        ("64MiB mmap", "allocator mmap needs 'file'"),
        ("64MiB mmap v", "'v' is no file of the process"),
        ("64MiB mmap w shard", "did you mean 'shared'"),
    ],
)
def test_mistakes(buffer, message):
    with pytest.raises(InputError, match=message):
        scenario([touch("x")], buffers={"x": buffer}, files=WARM)


def test_other_allocators_have_no_file_and_no_mapping():
    app = process([touch("x")], buffers={"x": "64MiB malloc"}, files=WARM)
    app["buffers"]["x"] |= {"file": "w", "mapping": "shared"}
    with pytest.raises(InputError) as refusal:
        scenario(processes=[app])
    assert len(refusal.value.problems) == 2


def test_huge_pages_are_for_anonymous_memory():
    app = process([touch("x")], buffers=READ, files=WARM)
    app["buffers"]["x"]["huge_pages"] = "always"
    with pytest.raises(InputError, match="allocator mmap would ignore this key"):
        scenario(processes=[app])
