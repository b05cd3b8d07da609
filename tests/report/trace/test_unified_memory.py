"""The profile counts like the tool whose layout it has."""

from gpusim.report.trace.kfd import PAGE_FAULT, PAGE_MIGRATE, Record
from gpusim.report.trace.unified_memory import Machine, profile, text

MIB = 2**20
MACHINE = Machine(["gfx90a", "gfx90a"], "a-cpu")


def move(start_us, end_us, size, origin="host", target="gpu[0]", cause="PAGEFAULT_GPU"):
    gpu = target if origin == "host" else origin
    times = (1000.0 * start_us, 1000.0 * end_us)
    return Record(
        PAGE_MIGRATE,
        "",
        "",
        *times,
        1000,
        gpu=gpu,
        origin=origin,
        target=target,
        size_bytes=size,
        cause=cause,
    )


def fault(at_us):
    return Record(PAGE_FAULT, "", "", 1000.0 * at_us, 1000.0 * at_us + 500, 1000, gpu="gpu[0]")


MOVES = [
    move(0, 100, 2 * MIB),
    move(100, 500, 6 * MIB, cause="PREFETCH"),
    move(600, 610, 4096, "gpu[0]", "host", "PAGEFAULT_CPU"),
    move(700, 800, MIB, "gpu[1]", "gpu[0]", "TTM_EVICTION"),
]


def test_sizes_times_and_throughput_of_one_direction():
    made = profile([*MOVES, fault(0)], MACHINE, xnack=True)
    first = made["devices"][0]
    assert (first["device_id"], first["device_name"]) == (1, "gfx90a (via a-cpu)")
    assert first["migrations"]["host_to_device"] == {
        "count": 2,
        "avg_size_bytes": 4.0 * MIB,
        "min_size_bytes": 2 * MIB,
        "max_size_bytes": 6 * MIB,
        "total_size_bytes": 8 * MIB,
        "total_time_ns": 500_000,
        "migration_throughput_gbps": 8 * MIB / 500_000,
    }


def test_what_goes_from_gpu_to_gpu_is_counted_where_it_was():
    first, second = profile(MOVES, MACHINE, xnack=True)["devices"]
    assert first["migrations"]["device_to_device"]["count"] == 0
    assert second["migrations"]["device_to_device"]["count"] == 1
    assert second["device_id"] == 2


def test_each_migration_has_one_trigger():
    summary = profile([*MOVES, fault(1), fault(2)], MACHINE, xnack=True)["summary"]
    assert summary["migration_triggers"] == {
        "gpu_page_fault": 1,
        "cpu_page_fault": 1,
        "prefetch": 1,
        "ttm_eviction": 1,
        "unknown": 0,
    }
    assert summary["total_page_faults"] == 2


def test_without_migrations_the_profile_is_about_faults_only():
    made = profile([fault(1), fault(2)], MACHINE, xnack=True)
    assert made["devices"] == []
    assert text(made, 77) == "==77== Unified Memory profiling result:\n Total Page Faults: 2\n"


def test_the_text_has_the_columns_of_the_tool():
    lines = text(profile(MOVES[:3], MACHINE, xnack=True), 1000).splitlines()
    assert lines[1] == ' Device "gfx90a (via a-cpu) (1)"'
    assert lines[3] == (
        "        2  4.0000MB  2.0000MB  6.0000MB    8.0000MB   500.0000us      16.78 GB/s  Host To Device"
    )
    assert lines[4] == (
        "        1  4.0000KB  4.0000KB  4.0000KB    4.0000KB    10.0000us       0.41 GB/s  Device To Host"
    )
    assert lines[5:8] == ["", " Total Page Faults: 0", ""]
    assert lines[-1] == "   Prefetch:                1"
