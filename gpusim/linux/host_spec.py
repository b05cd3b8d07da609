"""What a CPU profile says: memory, one thread's rates, and what Linux pays per page."""

from __future__ import annotations

from pydantic import Field

from gpusim.hardware.coherence import LineCosts
from gpusim.linux.io_costs import IoCosts
from gpusim.linux.library_costs import LibraryCosts
from gpusim.spec import Duration, Rate, Size, Spec


class PageCosts(Spec):
    """CPU work per 4 KiB page. Each is paid where its mechanism runs, never folded into another."""

    fault: Duration = Field(description="a CPU thread's page fault: trap, VMA look-up, return")
    alloc: Duration = Field(description="allocate a host page and insert it into the CPU page table")
    zero: Duration = Field(description="clear a host page")
    free: Duration = Field(description="unmap and free a host page")
    hmm_walk: Duration = Field(description="hmm_range_fault over a page that exists")
    dma_map: Duration = Field(description="dma_map_page and its unmap")
    migrate_setup: Duration = Field(description="migrate_vma_setup: collect, isolate and unmap a page")
    migrate_finish: Duration = Field(
        description="migrate_vma_pages and finalize: replace the entry, drop references"
    )
    device_page: Duration = Field(description="take a ZONE_DEVICE page and initialise its struct page")


class HugePageCosts(Spec):
    """CPU work for one 2 MiB page of transparent huge pages."""

    alloc: Duration = Field(description="allocate a huge page and insert it into the CPU page table")
    zero: Duration = Field(description="clear a huge page")
    hmm_walk: Duration = Field(description="hmm_range_fault over a huge page that exists: fills 512 entries")


class RegistrationCosts(Spec):
    """CPU work of pinning memory for DMA, per 4 KiB page, beside dma_map and the GPU's page-table entry."""

    pin: Duration = Field(description="get_user_pages, in base pages")
    pin_huge: Duration = Field(description="the same inside huge pages, whose references are taken together")


class SwapSpec(Spec):
    """The swap device: pages are written one after another, and read in clusters on the fault path."""

    size: Size = Field(gt=0, description="room on the device")
    write: Rate = Field(gt=0, description="bytes written per second")
    read: Rate = Field(gt=0, description="bytes read per second")
    latency: Duration = Field(description="one read of a cluster, before its first byte")
    cluster: Size = Field(ge=4096, description="bytes that one read brings in (vm.page-cluster)")


class HostSpec(Spec):
    """CPU and memory of a node."""

    cores: int = Field(gt=0, description="physical cores")
    memory: Size = Field(gt=0, description="RAM")
    bandwidth: Rate = Field(gt=0, description="memory bandwidth of all cores together")
    thread_bandwidth: Rate = Field(gt=0, description="memory bandwidth of one thread that streams")
    copy_bandwidth: Rate = Field(gt=0, description="bytes copied per second by one thread (memcpy)")
    interrupt: Duration = Field(
        description="CPU time of one interrupt vector: hard IRQ and copy to the soft ring"
    )
    pages: PageCosts
    io: IoCosts | None = Field(default=None, description="file I/O; without it there are no files")
    huge: HugePageCosts | None = Field(default=None, description="without it the node has no huge pages")
    registration: RegistrationCosts | None = Field(
        default=None, description="without it nothing can be registered"
    )
    atomics: LineCosts | None = Field(default=None, description="atomics of a thread; none: not known")
    swap: SwapSpec | None = Field(default=None, description="without it the node has no swap")
    hipfile: LibraryCosts | None = Field(default=None, description="calls of hipFile; none: not known")
