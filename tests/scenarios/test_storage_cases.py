"""What people met with drives, file systems and bounce buffers: the shipped scenarios answer as they found."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import gpusim as gs

FOLDER = Path(__file__).parents[2] / "scenarios"


@cache
def result(name, record="summary", **sets):
    return gs.run(
        FOLDER / f"{name}.yaml",
        set={key.replace("__", "."): value for key, value in sets.items()},
        record=record,
    )


def rate(name, step, **sets):
    return result(name, **sets).metric(f"steps.{step}.bandwidth_gb_per_s")


# -- ST01: which path

FALLS_BACK = (
    "data_journal",
    "btrfs",
    "unaligned",
    "md_raid",
    "dm_crypt",
    "multipath",
    "loop",
    "lvm",
    "forced",
)


def paths_of(process, **sets):
    table = result("which_path", **sets).tables["io"]
    return set(table.loc[table["process"] == process, "path"].astype(str))


@pytest.mark.parametrize("process", ["plain", "xfs"])
def test_aligned_reads_of_ext4_and_xfs_on_a_drive_go_directly(process):
    assert paths_of(process) == {"fastpath"}


@pytest.mark.parametrize("process", FALLS_BACK)
def test_what_the_fast_path_cannot_do_falls_back(process):
    assert paths_of(process) == {"fallback"}


def test_without_the_fallback_it_fails_instead():
    ends = {process["name"]: process for process in result("which_path").summary["processes"]}
    assert "ENODEV" in ends["strict"]["error"]
    assert "hipFileInternalError" in ends["neither"]["error"]
    assert all(
        process["error"] is None for name, process in ends.items() if name not in ("strict", "neither")
    )


# -- ST05: drive-bound, direct = bounce


def test_a_drive_bound_program_gains_nothing_from_the_direct_path():
    direct, bounce, host = (rate("direct_or_bounce", step) for step in ("direct", "bounce", "host_only"))
    assert direct / bounce == pytest.approx(1.007, abs=0.02)
    assert direct / host == pytest.approx(1.02, abs=0.03)
    assert result("direct_or_bounce").summary["io"]["fastpath"]["read"]["limited_by"] == "drive"


# -- ST07: one GPU is held by its link, four by the drives


def test_more_gpus_add_up_until_the_drives_are_full():
    one = rate("gpus_and_drives", "one_read")
    four = sum(rate("gpus_and_drives", f"all_read[{rank}]") for rank in range(4))
    assert one == pytest.approx(24.3 * 1.0737, rel=0.05)
    assert four == pytest.approx(min(4 * one, 53.0 * 1.0737), rel=0.05)
    assert four / one == pytest.approx(2.18, rel=0.10)


def test_each_gpu_writes_less_when_all_four_do_and_the_bounce_buffer_at_least_halves_writes():
    one = rate("gpus_and_drives", "one_write")
    each = sum(rate("gpus_and_drives", f"all_write[{rank}]") for rank in range(4)) / 4
    assert one == pytest.approx(24 * 1.0737, rel=0.08)
    assert each == pytest.approx(9.8 * 1.0737, rel=0.08)
    assert rate("gpus_and_drives", "compat_write") < 0.6 * one


# -- ST09: one request at a time


def test_one_small_write_at_a_time_gets_its_size_over_its_latency():
    ran = result("small_writes")
    latency = ran.summary["io"]["fastpath"]["write"]["latency_ns"]["mean"]
    assert rate("small_writes", "write") == pytest.approx(4096 / latency, rel=0.01)
    assert 264e3 < latency < 291e3
    assert rate("small_writes", "write", parameters__threads=8) == pytest.approx(
        8 * rate("small_writes", "write"), rel=0.05
    )


# -- ST13: threads


def test_threads_on_a_cached_file_add_up_until_memory_is_full():
    rates = {n: rate("cached_file_threads", "load", parameters__threads=n) for n in (1, 2, 4, 8, 16, 32, 64)}
    efficiency = {n: value / n / rates[1] for n, value in rates.items()}
    assert efficiency[2] > 0.95
    assert list(efficiency.values()) == sorted(efficiency.values(), reverse=True)
    assert rates[64] == pytest.approx(rates[32], rel=0.05)
    assert rates[32] == pytest.approx(rates[16], rel=0.10)
    assert efficiency[32] < 0.35


# -- ST14: the unit of copies


@pytest.mark.parametrize(("task", "copies"), [("1MB", 40), ("4MB", 10), ("16MB", 3), ("40MB", 3)])
def test_the_unit_of_copies_is_the_smaller_of_task_and_bounce_buffer(task, copies):
    """40 MB in all: 16 MB fit into the 16 MiB of the bounce buffer, 40 MB do not."""
    spans = result("bounce_chunks", record="spans", parameters__task=task).tables["spans"]
    assert (spans["kind"].astype(str).str.lower() == "page_cache").sum() == copies


# -- KV01: one call for many small copies


def test_one_call_for_many_copies_helps_small_blocks_only():
    ran = result("kv_blocks")
    steps = {step["name"]: step for step in ran.summary["steps"] if step["kind"] == "memcpy_batch"}

    def gain(size):
        loop = [step for step in ran.summary["steps"] if step["name"] == f"one_{size}"]
        whole = max(step["end_ns"] for step in loop) - min(step["start_ns"] for step in loop)
        return whole / steps[f"batch_{size}"]["duration_ns"]

    assert gain("4k") == pytest.approx(2.13, rel=0.05)
    assert gain("8k") == pytest.approx(2.1, rel=0.05)
    assert gain("32k") == pytest.approx(1.0, rel=0.01)
    assert gain("128k") == pytest.approx(1.0, rel=0.01)


# -- file traffic beside kernels and migrations


def test_a_checkpoint_and_a_training_step_leave_each_other_alone():
    """Drives limit the one and HBM the other; what migrates takes the other direction of the link."""
    assert rate("checkpoint", "save") == pytest.approx(rate("checkpoint", "save_alone"), rel=0.02)
    assert rate("checkpoint", "step") == pytest.approx(rate("checkpoint", "step_alone"), rel=0.02)
    assert result("checkpoint").summary["io"]["fastpath"]["write"]["limited_by"] == "drive"


def test_small_blocks_come_as_fast_beside_a_kernel_and_a_neighbour_that_faults():
    assert rate("kv_tier", "fetch") == pytest.approx(rate("kv_tier", "alone"), rel=0.05)
    assert result("kv_tier").metric("faults.serviced") == 32


# -- Little's law, and shares over time

IO_SCENARIOS = (
    "direct_or_bounce",
    "gpus_and_drives",
    "small_writes",
    "cached_file_threads",
    "bounce_chunks",
    "which_path",
    "ways_to_load_weights",
    "checkpoint",
    "kv_tier",
    "validation/hipfile_16drives",
    "validation/drive_h200",
    "validation/hipfile_7drives",
    "validation/bounce_h200",
)


@pytest.mark.parametrize("name", IO_SCENARIOS)
def test_littles_law_holds_on_every_path(name):
    """Requests in flight, looked at in many instants, against rate times mean latency of the summary."""
    ran = result(name, record="spans" if name.endswith("bounce_h200") else "summary")
    table = ran.tables["io"]
    checked = 0
    for (path, way), rows in table.groupby(["path", "direction"], observed=True):
        start, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
        first, last = start.min(), end.max()
        instants = np.linspace(first, last, 40_001)[:-1] + (last - first) / 80_002
        begun = np.searchsorted(np.sort(start), instants, side="right")
        weight = rows["count"].to_numpy()
        if (weight > 1).any():
            continue  # binned rows have lost their instants
        inside = (begun - np.searchsorted(np.sort(end), instants, side="right")).mean()
        block = ran.summary["io"][path][way]
        rate_per_ns = block["requests"] / (last - first)
        assert inside == pytest.approx(rate_per_ns * block["latency_ns"]["mean"], rel=0.01)
        assert inside == pytest.approx(block["in_flight"], rel=0.01)
        checked += 1
    assert checked


def test_three_ways_to_load_weights_share_one_link():
    ran = result("ways_to_load_weights")
    moved = ran.movers()
    total = moved.groupby("mover")["bytes"].sum()
    assert {name.split()[1] for name in total.index} == {"fastpath", "fallback", "migration"}
    assert total.sum() == pytest.approx(ran.metric("links.gpu[0].pcie.h2d.bytes"), rel=0.001)
    shares = moved.pivot(index="start_ns", columns="mover", values="share")
    together = shares[(shares > 0.01).sum(axis=1) == 3]
    assert len(together) >= 4
    assert together.sum(axis=1).to_numpy() == pytest.approx(1)
    assert (together["fast fastpath read"][1:-1] > 0.5).all()  # the first and the last are cut
    assert ran.metric("steps.bounced.bandwidth_gb_per_s") < 8
