"""What holds at the end of any run, whatever the program did: conservation, and books that agree."""

from __future__ import annotations

from typing import Any

from gpusim.hardware.gpuvm import LOCAL, PEER, host_state
from gpusim.linux.address_space import FILE, FILE_WRITE, RAM, VRAM, VmaKind
from gpusim.machine.build import Machine
from tests.programs import Ran


def check(ran: Ran) -> None:
    """Everything that can be checked of a run made by `run_inside`."""
    machine = ran.machine
    assert machine is not None
    pages_are_in_one_place(machine)
    page_tables_tell_where_pages_are(machine)
    mapped_pages_of_files_are_in_memory(machine)
    kfd_counts_what_is_pinned(machine)
    counters_are_counts(ran)
    for step in ran.data.steps:
        if step.attribution is not None:
            assert sum(step.attribution.values()) == step.end_ps - step.start_ps, step.path
    if ran.outcome == "completed":
        nobody_waits(machine)
        assert sum(ran.attribution.values()) == ran.makespan_ps
    if "spans" in ran.data.tables:
        spans_are_in_order(ran.data.tables["spans"])
        if ran.outcome == "completed":
            spans_walk_back_to_time_zero(ran)


def pages_are_in_one_place(machine: Machine) -> None:
    """Host memory and VRAM hold what the buffers' pages say, and no more than there is."""
    node = machine.hardware.node
    in_ram, in_vram = 0, [0] * len(node.devices)
    for process in machine.processes:
        if process.dead:
            continue
        kfd = process.hip.kfd
        for vma in kfd.mm:
            if vma.kind is VmaKind.PINNED:
                in_ram += vma.pages
            elif vma.kind is VmaKind.DEVICE:
                in_vram[process.hip.allocation(vma.name).gpu] += vma.pages
            else:
                in_ram += vma.where.count(RAM)
        ends = -1
        for svm in kfd.ranges:
            assert svm.first > ends, "ranges overlap"
            ends = svm.last
            vma = kfd.mm.find(svm.first)
            assert vma is not None, "a range without memory"
            assert svm.last <= vma.last, "a range beyond its memory"
            held = [vma.count(svm.first, svm.last, VRAM + gpu) for gpu in range(len(node.devices))]
            assert sum(held) == svm.vram_pages
            if svm.bo is not None:
                assert svm in svm.bo.ranges
                assert svm.bo in node.devices[svm.bo_on].vram.bos
                assert held[svm.bo_on] == svm.vram_pages, "pages in the VRAM of two GPUs"
            else:
                assert svm.vram_pages == 0, "pages in VRAM without a buffer object"
    assert node.host.used == in_ram
    assert node.host.peak <= node.host.pages
    for device, pages in zip(node.devices, in_vram, strict=True):
        assert device.vram.allocated == pages
        for bo in device.vram.bos:
            assert bo.ranges, "a buffer object without ranges"
            assert sum(svm.pages for svm in bo.ranges) <= bo.pages
        pages += sum(bo.pages for bo in device.vram.bos)  # noqa: PLW2901 - what hipMalloc holds, and they
        assert device.vram.used == pages
        assert device.vram.peak <= device.vram.pages


def kfd_counts_what_is_pinned(machine: Machine) -> None:
    """hipHostMalloc, registered memory, and ranges while XNACK is off, against KFD's limit; pins are in RAM."""
    counted = 0
    for process in machine.processes:
        if process.dead:
            continue
        kfd = process.hip.kfd
        counted += sum(vma.pages for vma in kfd.mm if vma.kind is VmaKind.PINNED)
        counted += sum(allocation.user_pages for allocation in process.hip.live)
        counted += 0 if kfd.xnack else sum(svm.pages for svm in kfd.ranges)
        for vma in kfd.mm:
            for first, last in vma.pins:
                places = vma.where[first - vma.first : last - vma.first + 1]
                assert set(places) <= {RAM, FILE, FILE_WRITE}, "a pinned page that has moved"
    assert machine.hardware.node.pinned.used == counted


def page_tables_tell_where_pages_are(machine: Machine) -> None:
    """A valid PTE points to where the page lies."""
    for process in machine.processes:
        if process.dead:
            continue
        kfd = process.hip.kfd
        for gpu, vm in kfd.vms.items():
            for region in vm.regions.values():
                vma = kfd.mm.find(region.first_page)
                assert vma is not None, "page tables over memory that is gone"
                if vma.kind in (VmaKind.ANONYMOUS, VmaKind.FILE):
                    others = [(PEER + other, VRAM + other) for other in kfd.vms if other != gpu]
                    in_host = (RAM, FILE, FILE_WRITE)
                    elsewhere = {host_state(0), host_state(1)} - {host_state(vma.memory_node)}
                    assert not any(state in region.valid for state in elsewhere), "of another NUMA node"
                    for state, *places in (
                        (LOCAL, VRAM + gpu),
                        (host_state(vma.memory_node), *in_host),
                        *others,
                    ):
                        stale = sum(
                            s == state and w not in places
                            for s, w in zip(region.valid, vma.where, strict=True)
                        )
                        assert stale == 0, f"{stale} stale entries of {region.name} on gpu[{gpu}]"


def mapped_pages_of_files_are_in_memory(machine: Machine) -> None:
    """Nobody maps a page of a file that the page cache has dropped, or may write to one that is not dirty."""
    io = machine.hardware.node.file_io
    for process in machine.processes:
        for vma in process.hip.kfd.mm:
            if vma.backing is None or vma.gone:
                continue
            inode = vma.backing.file.inode
            for page, place in enumerate(vma.where):
                if place in (FILE, FILE_WRITE):
                    assert io is not None
                    assert inode.memory_only or not io.cache.missing(inode, page, page), page
                if place == FILE_WRITE and io is not None and not inode.memory_only:
                    assert io.cache.is_dirty(inode, page, page), page
            for region in process.hip.kfd.regions_of(vma):
                if region.writable is not None:
                    assert not any(
                        writable and place == FILE
                        for writable, place, state in zip(
                            region.writable, vma.where, region.valid, strict=True
                        )
                        if state
                    )


def counters_are_counts(ran: Ran) -> None:
    for counts in ran.data.faults:
        assert all(isinstance(count, int) and count >= 0 for count in counts.counts.values()), counts
    assert ran.faults["serviced"] == len(ran.data.tables["faults"]["page"])


def nobody_waits(machine: Machine) -> None:
    """All waves have ended."""
    for process in machine.processes:
        for vm in process.hip.kfd.vms.values():
            for region in vm.regions.values():
                assert region.waiters() == 0, f"{region.waiters()} wait for {region.name}"


def spans_are_in_order(spans: dict[str, Any]) -> None:
    assert (spans["start_ps"] <= spans["end_ps"]).all()
    rows = len(spans["start_ps"])
    for link in ("cause", "queued_behind", "released_by"):
        assert (spans[link] <= rows).all()


def spans_walk_back_to_time_zero(ran: Ran) -> None:
    """From the last span of whoever ended last, `released_by` tiles the makespan, kind by kind."""
    assert ran.machine is not None
    spans = ran.data.tables["spans"]
    last = max(
        (process for process in ran.machine.processes if process.last_path is not None),
        key=lambda process: process.end_ps,
    )
    assert last.last_path is not None
    row, end = last.last_path.chain.row, ran.makespan_ps
    kinds: dict[int, int] = {}
    while row:
        start, stop = int(spans["start_ps"][row - 1]), int(spans["end_ps"][row - 1])
        assert stop == end, f"row {row} ends at {stop}, what it released began at {end}"
        kind = int(spans["kind"][row - 1])
        kinds[kind] = kinds.get(kind, 0) + stop - start
        end, row = start, int(spans["released_by"][row - 1])
    assert end == 0
    assert {kind: spent for kind, spent in kinds.items() if spent} == ran.attribution
