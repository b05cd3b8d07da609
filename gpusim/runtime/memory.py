"""Allocation and free, by allocator, and a CPU thread's accesses to a buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gpusim.driver.kfd_process import KfdProcess
from gpusim.driver.migrate import Migration, Trigger
from gpusim.driver.svm_range import CPU, SvmRange, exclusively
from gpusim.engine.flows import Flow
from gpusim.engine.record import Chain
from gpusim.engine.stages import Do, Stages, Transfer
from gpusim.errors import SimulatedFailure
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpuvm import LOCAL, host_state
from gpusim.kinds import Kind
from gpusim.linux.address_space import SWAPPED, VRAM, Vma, VmaKind
from gpusim.runtime.allocation import (
    IN_VRAM,
    KEPT_IN_PLACE,
    MANAGED,
    OF_THE_HOST,
    Allocation,
    Allocator,
)
from gpusim.runtime.file_mappings import map_file
from gpusim.runtime.forking import Child
from gpusim.runtime.hip import Hip, Steps, Thread
from gpusim.runtime.mappings import check_rights, locked
from gpusim.spec import PAGE_BYTES

_TOUCH_CHUNK_PAGES = (32 << 20) // PAGE_BYTES  # GPU faults see a CPU thread's progress in pieces of this
_MAX_ALIGN = 1 << 30


def alloc(hip: Hip, thread: Thread, name: str) -> Steps:
    """Allocate a declared buffer. Raises SimulatedFailure when memory does not suffice."""
    if not hip.claim(name):
        raise SimulatedFailure("hip_error", f"buffer {name!r} of {hip.kfd.name} is allocated already")
    try:
        yield from thread.stages(_alloc_stages(hip, name))
    finally:
        hip.unclaim(name)


def _alloc_stages(hip: Hip, name: str) -> Stages:
    declared = hip.declared(name)
    node, kfd = hip.node, hip.kfd
    costs, pages_cost = node.driver.costs, node.host_spec.pages
    pages = -(-declared.size // PAGE_BYTES)
    allocator = declared.allocator
    kind = VmaKind.ANONYMOUS
    if allocator in IN_VRAM:
        kind = VmaKind.DEVICE
    elif allocator is Allocator.HIP_HOST_MALLOC:
        kind = VmaKind.PINNED
    elif allocator is Allocator.MMAP:
        kind = VmaKind.FILE
    gpu = CPU
    if allocator not in OF_THE_HOST:  # these work where the process sees no GPU
        gpu = hip.device(declared.gpu).gpu.index
    if kind is VmaKind.DEVICE:
        vram = node.devices[gpu].vram
        if not vram.reserve(pages):
            left = (vram.pages - vram.allocated) * PAGE_BYTES
            raise SimulatedFailure(
                "out_of_memory",
                f"hipErrorOutOfMemory: hipMalloc of {declared.size} bytes for {name!r} of {kfd.name}: "
                f"{left} of {vram.pages * PAGE_BYTES} bytes of VRAM can be allocated",
            )
        yield from node.devices[gpu].eviction.make_room(pages)
        if kfd.dead:
            vram.release(pages)
            return
        vram.take(pages)
    elif kind is VmaKind.PINNED:
        limit = node.pinned
        limit.charge(pages, f"hipHostMalloc of {declared.size} bytes for {name!r} of {kfd.name}")
        try:
            node.host.take(pages, f"hipHostMalloc of {name!r}", declared.numa)
        except SimulatedFailure:
            limit.release(pages)
            raise
    in_place = allocator in KEPT_IN_PLACE
    vma = kfd.mm.map(name, pages, kind, _alignment(declared.size, declared.align), in_place=in_place)
    vma.wants_huge = declared.huge_pages and kind is VmaKind.ANONYMOUS
    if kind is not VmaKind.DEVICE:
        vma.numa = declared.numa
    if kind is VmaKind.FILE:
        map_file(hip, vma, declared)
    allocation = Allocation(name, declared.size, allocator, gpu, vma)
    hip.hold(allocation)
    if kind is VmaKind.DEVICE:
        yield Kind.HOST_ALLOC, costs.vram_alloc
        kfd.region(vma, gpu).map(0, pages - 1, LOCAL, hip.env.now)
    elif kind is VmaKind.PINNED:
        yield Kind.HOST_ALLOC, costs.ioctl
        yield Kind.PAGE_ALLOC, pages * pages_cost.alloc
        yield Kind.PAGE_ZERO, node.paging.by_thread(vma, pages * pages_cost.zero)
        yield Kind.DMA_MAP, pages * pages_cost.dma_map
        yield from hip.device(declared.gpu).tables.stages(pages)
        for other in hip.visible:
            kfd.region(vma, other.gpu.index).map(0, pages - 1, host_state(vma.memory_node), hip.env.now)
    elif allocator in MANAGED:
        try:
            yield from _register(hip, vma)
        except SimulatedFailure:
            for svm in kfd.ranges.within(vma.first, vma.last):
                kfd.remove_range(svm)
            kfd.mm.unmap(vma)
            hip.let_go(allocation)
            raise
    else:
        yield Kind.HOST_ALLOC, costs.ioctl
    if declared.madvise:
        yield Kind.HOST_ALLOC, costs.ioctl
    yield Do(lambda: hip.add(allocation))


def _alignment(size: int, align: int | None) -> int:
    """Page alignment of a buffer: as asked, else a power of two up to 1 GiB that makes large buffers whole ranges."""
    wanted = align or min(_MAX_ALIGN, max(2 << 20, 1 << (size - 1).bit_length()))
    return max(1, wanted // PAGE_BYTES)


def _register(hip: Hip, vma: Vma) -> Stages:
    """hipMallocManaged: SET_ATTR over the whole buffer; with XNACK off it is mapped to every GPU at once."""
    node, kfd = hip.node, hip.kfd
    costs = node.driver.costs
    granule = node.driver.svm.default_granularity // PAGE_BYTES
    yield Kind.HOST_ALLOC, costs.ioctl
    made = kfd.cover(vma.first, vma.last, granule_pages=granule, most_pages=node.range_pages)
    for svm in made:  # hipMallocManaged gives all devices of the process access
        svm.set_attributes(replace(svm.attributes, access=kfd.gpus))
    yield Kind.HOST_ALLOC, len(made) * costs.range_create
    if kfd.xnack:
        return
    what = f"hipMallocManaged of {vma.name!r} with XNACK off"
    yield from node.paging.fault_in(vma, vma.first, vma.last, what, write=True, trap=False)
    yield Kind.HMM_WALK, node.paging.hmm_walk_ps(vma, vma.first, vma.last)
    yield from hip.visible[0].tables.stages(vma.pages)
    for device in hip.visible:
        kfd.region(vma, device.gpu.index).map(0, vma.pages - 1, host_state(vma.memory_node), hip.env.now)
    for svm in kfd.ranges.within(vma.first, vma.last):
        svm.mapped = True


def free(hip: Hip, thread: Thread, name: str) -> Steps:
    """Free a buffer: hipFree waits for the device's streams, as HIP does; free() does not."""
    allocation = hip.allocation(name)
    hip.forget(name)  # before any wait: no other thread can free it again
    if allocation.allocator not in OF_THE_HOST:
        for operation in hip.outstanding(None):
            yield from thread.wait_for(operation)
    stages = _free_stages(hip, allocation)
    yield from locked(hip, thread, stages) if allocation.is_svm else thread.stages(stages)


def _free_stages(hip: Hip, allocation: Allocation) -> Stages:
    node, kfd, vma = hip.node, hip.kfd, allocation.vma
    costs, cost = node.driver.costs, node.host_spec.pages
    if vma.gone:
        return
    if vma.kind is VmaKind.DEVICE:
        yield Kind.HOST_ALLOC, costs.vram_free
        node.devices[allocation.gpu].vram.give_back(vma.pages)
    elif vma.kind is VmaKind.PINNED:
        yield Kind.HOST_ALLOC, costs.ioctl + vma.pages * cost.free
        node.host.give_back(vma.pages, vma.numa)
        node.pinned.release(vma.pages)
    else:
        ranges = kfd.ranges.within(vma.first, vma.last)
        for svm in ranges:  # an eviction may be at work on one
            if svm.busy:
                yield Transfer(Kind.LOCK_WAIT, svm.acquire)
            svm.busy = True
        if kfd.dead:
            return
        kfd.about_to_unmap()
        free_ps = node.paging.free_ps(vma, vma.first, vma.last)
        mapped = any(region.unmap(0, vma.pages - 1) for region in kfd.regions_of(vma))
        yield Kind.HOST_ALLOC, costs.ioctl + free_ps
        if mapped:
            yield Kind.TLB_FLUSH, costs.tlb_flush
        node.host.give_back(vma.leave_ram(vma.first, vma.last), vma.numa)
        node.paging.forget_swapped(vma.where.count(SWAPPED))
        if vma.backing is not None:
            vma.backing.close()
        for svm in ranges:
            if svm.bo_on != CPU:
                node.devices[svm.bo_on].migration.drop_bo(svm)
            kfd.remove_range(svm)
            svm.abandon()
        node.pinned.release(allocation.user_pages)
    kfd.drop_regions(vma)
    kfd.mm.unmap(vma)
    hip.let_go(allocation)


def host_touch(
    hip: Hip, thread: Thread, allocation: Allocation, first: int, size: int, *, write: bool
) -> Steps:
    """A CPU thread goes through a part of a buffer: populates it, streams it, pulls it back from VRAM."""
    if allocation.allocator in IN_VRAM:
        yield from thread.stages(_through_bar(hip, hip.node.devices[allocation.gpu].gpu, size, write=write))
        return
    start, end = allocation.pages(first, size)
    while start <= end:
        last = min(end, start - start % _TOUCH_CHUNK_PAGES + _TOUCH_CHUNK_PAGES - 1)
        length = min(size, (last - start + 1) * PAGE_BYTES)
        size -= length
        if allocation.is_svm:
            check_rights(hip, allocation.vma, start, last, write=write)
            yield from thread.stages(bring_back(hip, thread.chain, allocation.vma, start, last))
            what = f"{hip.kfd.name}: CPU touch of {allocation.name!r}"
            fault_in = hip.node.paging.fault_in
            yield from thread.stages(fault_in(allocation.vma, start, last, what, write=write, trap=True))
            for gpu, pages in _coherent(hip, allocation.vma, start, last):
                part = min(length, pages * PAGE_BYTES)
                length -= part
                yield from thread.stages(_through_bar(hip, gpu, part, write=write))
        if length:
            yield from thread.stages(_stream_stages(hip, allocation.vma, length, write=write))
        start = last + 1


def child_touch(
    child: Child, thread: Thread, allocation: Allocation, first: int, size: int, *, write: bool
) -> Steps:
    """The same by a forked child."""
    start, end = allocation.pages(first, size)
    check_rights(child.hip, allocation.vma, start, end, write=write)

    def back(vma: Vma, low: int, high: int) -> Steps:
        yield from thread.stages(bring_back(child.hip, thread.chain, vma, low, high))

    yield from child.touch(thread, allocation, start, end, write=write, bring_back=back)
    yield from thread.stages(_stream_stages(child.hip, allocation.vma, size, write=write))


def _stream_stages(hip: Hip, vma: Vma, size: int, *, write: bool) -> Stages:
    def start(done: Callable[[], None]) -> None:
        enter = partial(hip.node.host_memory.enter, size, numa=vma.memory_node, write=write)
        streamed.on(hip.flights.fly(enter, lambda _: done()))

    streamed = Transfer(Kind.HOST_MEMORY, start)
    yield streamed


def bring_back(hip: Hip, chain: Chain, vma: Vma, first: int, last: int) -> Stages:
    """CPU faults on device-private pages: one granule each, under the process's SVM mutex (`kfd_svm.md` 3.3).

    Where the CPU caches VRAM (xGMI) there are no such faults.
    """
    kfd = hip.kfd
    for device in hip.node.devices:
        if device.gpu.link.coherent:
            continue
        place = VRAM + device.gpu.index
        at = vma.where.find(place, first - vma.first, last - vma.first + 1)
        while at >= 0:
            page = vma.first + at
            mine = [False]

            def trap(done: Callable[[], None], page: int = page, mine: list[bool] = mine) -> None:
                mine[0] = (
                    page not in vma.held
                )  # one thread has the page, others on it come again when it has gone
                vma.held.add(page)
                kfd.lock.acquire(kfd.number + 1, done)

            yield _behind(kfd, trap)
            svm = kfd.ranges.find(page)
            if svm is not None and vma.where[at] == place:
                yield from _cpu_fault(hip, device.migration, vma, page, svm, mine=mine[0])
            elif mine[0]:
                vma.held.discard(page)
            yield Do(lambda: _unlock(kfd, chain))
            at = vma.where.find(place, page - vma.first, last - vma.first + 1)


def _behind(kfd: KfdProcess, start: Callable[[Callable[[], None]], None]) -> Transfer:
    """A wait for the SVM mutex, which ends with the path of whoever had it last."""

    def begin(granted: Callable[[], None]) -> None:
        def mine() -> None:
            if kfd.lock_path is not None:
                wait.behind = kfd.lock_path[1]
            granted()

        start(mine)

    wait = Transfer(Kind.LOCK_WAIT, begin)
    return wait


def _unlock(kfd: KfdProcess, chain: Chain) -> None:
    kfd.lock_path = chain.snapshot()
    kfd.lock.release()


def _through_bar(hip: Hip, gpu: Gpu, size: int, *, write: bool) -> Stages:
    """A CPU thread loads or stores VRAM across the link: uncached, but for stores that combine."""
    link = gpu.link
    way, rate = (gpu.h2d, link.cpu_write) if write else (gpu.d2h, link.cpu_read)

    def start(done: Callable[[], None]) -> None:
        cores = hip.node.cores

        def move(ended: Callable[[Flow], None]) -> Flow:
            return gpu.network.transfer(way, size, cap_bytes_per_s=rate, done=ended)

        flight = hip.flights.fly(move if cores is None else partial(cores.move, move), lambda _: done())
        crossed.on(flight)

    crossed = Transfer(Kind.HOST_MEMORY, start)
    yield crossed


def _coherent(hip: Hip, vma: Vma, first: int, last: int) -> list[tuple[Gpu, int]]:
    """(GPU, pages) of what lies in VRAM that the CPU caches: it is reached where it is."""
    devices = [device.gpu for device in hip.node.devices if device.gpu.link.coherent]
    counts = [(gpu, vma.count(first, last, VRAM + gpu.index)) for gpu in devices]
    return [(gpu, pages) for gpu, pages in counts if pages]


def _cpu_fault(hip: Hip, migration: Migration, vma: Vma, page: int, svm: SvmRange, *, mine: bool) -> Stages:
    """The granule around a page; the thread that has the page can move it."""
    yield Kind.DRIVER_FIXED, hip.node.host_spec.pages.fault

    def back() -> Stages:
        if mine:
            vma.held.discard(page)
        yield from migration.to_ram(hip.kfd, vma, svm, *svm.granule(page), Trigger.PAGEFAULT_CPU)

    yield from exclusively(svm, back())
