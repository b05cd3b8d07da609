"""The kinds of span: what a stretch of simulated time was spent on.

`engine/` sees small integers only; this file gives them names, labels and definitions.
"""

from __future__ import annotations

from enum import IntEnum
from html import escape
from typing import cast


class _Shown:
    """Members in a notebook: an enum itself may not define this."""

    def _repr_html_(self) -> str:
        kind = cast("Kind", self)
        return f"<b>{escape(LABELS[kind])}</b> <code>{kind.name.lower()}</code>: {escape(DEFINITIONS[kind])}"


class Kind(_Shown, IntEnum):
    """What a span of simulated time was spent on. The order is the order in reports."""

    COMPUTE = 0
    HBM = 1
    ZERO_COPY_LINK = 2
    TRANSLATION = 3
    LAUNCH = 4
    FAULT_DELIVERY = 5
    FAULT_QUEUE = 6
    DRIVER_FIXED = 7
    PAGE_ALLOC = 8
    PAGE_ZERO = 9
    DEVICE_PAGE = 10
    DMA_MAP = 11
    HMM_WALK = 12
    PTE_WRITE = 13
    BO_CLEAR = 14
    SDMA_COPY = 15
    TLB_FLUSH = 16
    RECENT_SKIP = 17
    RESEND = 18
    DUPLICATES = 19
    LOCK_WAIT = 20
    COPY_SETUP = 21
    BOUNCE_COPY = 22
    HOST_MEMORY = 23
    HOST_ALLOC = 24
    SYNC = 25
    SLEEP = 26
    QUEUES_STOPPED = 27
    WAVE_SLOTS = 28
    EVICTION = 29
    DRIVE = 30
    PAGE_CACHE = 31
    FILE_SYSTEM = 32
    WRITEBACK = 33
    SWAP_IO = 34
    PAGE_COPY = 35
    PIN = 36
    IO_SUBMIT = 37
    IO_LOCK = 38
    IO_PIN = 39
    BOUNCE_MAP = 40
    CACHE_DRAIN = 41
    HOST_FUNCTION = 42
    IO_QUEUE = 43
    CONTENTION = 44
    CORE_WAIT = 45


LABELS: dict[Kind, str] = {
    Kind.COMPUTE: "compute",
    Kind.HBM: "HBM",
    Kind.ZERO_COPY_LINK: "zero-copy link",
    Kind.TRANSLATION: "translation",
    Kind.LAUNCH: "kernel launch",
    Kind.FAULT_DELIVERY: "fault delivery",
    Kind.FAULT_QUEUE: "fault queue",
    Kind.DRIVER_FIXED: "driver fixed cost",
    Kind.PAGE_ALLOC: "page allocation",
    Kind.PAGE_ZERO: "page zeroing",
    Kind.DEVICE_PAGE: "device page set-up",
    Kind.DMA_MAP: "dma_map",
    Kind.HMM_WALK: "HMM walk",
    Kind.PTE_WRITE: "PTE write",
    Kind.BO_CLEAR: "BO clear",
    Kind.SDMA_COPY: "SDMA copy",
    Kind.TLB_FLUSH: "TLB flush",
    Kind.RECENT_SKIP: "2 ms skip",
    Kind.RESEND: "re-send",
    Kind.DUPLICATES: "duplicates thrown away",
    Kind.LOCK_WAIT: "lock wait",
    Kind.COPY_SETUP: "copy set-up",
    Kind.BOUNCE_COPY: "bounce copy",
    Kind.HOST_MEMORY: "host memory access",
    Kind.HOST_ALLOC: "allocation call",
    Kind.SYNC: "sync",
    Kind.SLEEP: "sleep",
    Kind.QUEUES_STOPPED: "queues stopped",
    Kind.WAVE_SLOTS: "wavefront slots",
    Kind.EVICTION: "eviction",
    Kind.DRIVE: "drive",
    Kind.PAGE_CACHE: "page cache",
    Kind.FILE_SYSTEM: "file system",
    Kind.WRITEBACK: "writeback",
    Kind.SWAP_IO: "swap I/O",
    Kind.PAGE_COPY: "page copy",
    Kind.PIN: "pinning",
    Kind.IO_SUBMIT: "I/O submission",
    Kind.IO_LOCK: "pin lock wait",
    Kind.IO_PIN: "pin and unpin",
    Kind.BOUNCE_MAP: "bounce buffer pages",
    Kind.CACHE_DRAIN: "cache drain",
    Kind.HOST_FUNCTION: "host function",
    Kind.IO_QUEUE: "I/O pool queue",
    Kind.CONTENTION: "contention on lines",
    Kind.CORE_WAIT: "wait for a core",
}

DEFINITIONS: dict[Kind, str] = {
    Kind.COMPUTE: "A wavefront runs at its own rate: bytes in flight over latency, or a given contention-free time.",
    Kind.HBM: "A wavefront gets less than its own rate because the GPU's memory bandwidth is shared.",
    Kind.ZERO_COPY_LINK: "A wavefront reads or writes memory that lies across a PCIe or xGMI link.",
    Kind.TRANSLATION: "A wavefront waits for UTCL1 misses and page-table walks.",
    Kind.LAUNCH: "From the launch call to the first wavefront of the kernel.",
    Kind.FAULT_DELIVERY: "A retry fault travels: UTCL2, interrupt ring, soft ring, start of the worker.",
    Kind.FAULT_QUEUE: "A retry fault waits in the ring behind vectors of other faults.",
    Kind.DRIVER_FIXED: "Driver work that does not depend on the number of pages: locks, look-ups, set-up, events.",
    Kind.PAGE_ALLOC: "The CPU allocates host pages.",
    Kind.PAGE_ZERO: "The CPU clears newly allocated host pages.",
    Kind.DEVICE_PAGE: "migrate_vma work per page: device page entries, unmap, replace, finalize.",
    Kind.DMA_MAP: "The driver maps host pages for DMA.",
    Kind.HMM_WALK: "hmm_range_fault walks the CPU page tables.",
    Kind.PTE_WRITE: "The driver writes GPU page-table entries.",
    Kind.BO_CLEAR: "SDMA clears a newly allocated buffer object.",
    Kind.SDMA_COPY: "SDMA copies data over a link or inside VRAM.",
    Kind.TLB_FLUSH: "The driver waits for a heavyweight TLB flush after an unmap.",
    Kind.RECENT_SKIP: "The driver drops faults of a range that was restored less than 2 ms ago.",
    Kind.RESEND: "The PTE is valid, but the hardware has not yet re-sent the access.",
    Kind.DUPLICATES: "The fault worker throws away vectors of pages that are already mapped.",
    Kind.LOCK_WAIT: "A host thread or the worker waits for the process's SVM mutex, or for a GPU's GART windows.",
    Kind.COPY_SETUP: "The fixed part of a copy: runtime call, packet, doorbell, completion signal.",
    Kind.BOUNCE_COPY: "The CPU copies between pageable memory and a pinned staging buffer.",
    Kind.HOST_MEMORY: "A host thread reads or writes memory.",
    Kind.HOST_ALLOC: "An allocation or free call: VA reservation, registration, VRAM allocation.",
    Kind.SYNC: "A host thread returns from a wait on the GPU.",
    Kind.SLEEP: "A host thread sleeps because the scenario says so.",
    Kind.QUEUES_STOPPED: "XNACK off: an unmap stops the process's queues until the restore worker has mapped again.",
    Kind.WAVE_SLOTS: "A kernel runs fewer wavefronts than it could, because other kernels hold the slots.",
    Kind.EVICTION: "VRAM is full: an allocation waits until other SVM ranges have been moved out to RAM.",
    Kind.DRIVE: "A request at a drive: its latency, its queue, its media, and the way of its data over the fabric.",
    Kind.PAGE_CACHE: "The CPU copies between the page cache and a buffer, adds pages to the cache, or maps them.",
    Kind.FILE_SYSTEM: "CPU work of a file system call: entry, look-up, block layer, journal, completion.",
    Kind.WRITEBACK: "A call waits for dirty pages to reach the drive, for a journal commit or for a flush.",
    Kind.SWAP_IO: "Pages are written to or read from the swap device.",
    Kind.PAGE_COPY: "The CPU copies host pages: copy-on-write, collapse into huge pages, compaction.",
    Kind.PIN: "get_user_pages pins host pages for DMA.",
    Kind.IO_SUBMIT: "The CPU's fixed part of a file request: hipFile, HIP, ROCr, the ioctl, the peer-to-peer check.",
    Kind.IO_LOCK: "A request waits for the lock under which the driver pins and unpins GPU buffers.",
    Kind.IO_PIN: "The driver pins the GPU buffer of a request, lists its pages, and unpins it.",
    Kind.BOUNCE_MAP: "The pages of a call's bounce buffer: mmap, a page fault each, and munmap.",
    Kind.CACHE_DRAIN: "A copy waits for lines that a CPU core has just written and still holds in its private cache.",
    Kind.HOST_FUNCTION: "HIP runs a host function of a stream: all of a process wait for one thread.",
    Kind.IO_QUEUE: "A request waits for a free thread of hipFile's pool.",
    Kind.CONTENTION: "Atomics wait for each other: only one at a time is done on a cache line.",
    Kind.CORE_WAIT: "More threads and workers can run than there are CPU cores: work takes longer by what others get.",
}

#: what a CPU core works on, where time is spent on it in a stretch of fixed length
ON_CORE: frozenset[Kind] = frozenset(
    {
        Kind.DRIVER_FIXED,
        Kind.PAGE_ALLOC,
        Kind.PAGE_ZERO,
        Kind.DEVICE_PAGE,
        Kind.DMA_MAP,
        Kind.HMM_WALK,
        Kind.PTE_WRITE,
        Kind.TLB_FLUSH,
        Kind.EVICTION,
        Kind.COPY_SETUP,
        Kind.HOST_ALLOC,
        Kind.PAGE_CACHE,
        Kind.FILE_SYSTEM,
        Kind.PAGE_COPY,
        Kind.PIN,
        Kind.IO_SUBMIT,
        Kind.IO_PIN,
        Kind.BOUNCE_MAP,
        Kind.HOST_FUNCTION,
    }
)
