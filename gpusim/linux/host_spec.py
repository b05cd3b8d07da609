"""What a CPU profile says: memory, one thread's rates, and what Linux pays per page."""

from __future__ import annotations

from pydantic import Field

from gpusim.linux.io_costs import IoCosts
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
