"""The translation of CPU addresses by ATS and PRI, as an APU with an IOMMU has it (`apu.ats` of a GPU profile)."""

from __future__ import annotations

from pydantic import Field

from gpusim.spec import Duration, Fraction, Spec


class AtsSpec(Spec):
    """The GPU's address translation cache, the requests it may have outstanding, and the IOMMU behind it."""

    entries_4k: int = Field(gt=0, description="ATC array for 4 KiB translations; LRU")
    entries_32k: int = Field(gt=0, description="ATC array for 32 KiB translations; LRU")
    entries_2m: int = Field(gt=0, description="ATC array for 2 MiB translations; LRU")
    outstanding: int = Field(gt=0, description="ATS requests under way at once")
    request: Duration = Field(description="an ATS request to the IOMMU and its answer, without the walk")
    walk: Duration = Field(description="the IOMMU walks the CPU page table")
    contiguous: Fraction = Field(
        description="share of 32 KiB blocks of base pages that are contiguous in memory"
    )
    page_requests: int = Field(gt=0, description="PRI requests outstanding: the device's credits")
    message: Duration = Field(description="a page request message, until it stands in the PPR log")
    log_entries: int = Field(gt=0, description="PPR log of the IOMMU; what finds it full is lost")
    poll: Duration = Field(description="the IOMMU thread reads one entry of the log and queues its work")
    work: Duration = Field(
        description="one work item: scheduling, look-up of the process, mmap lock, VMA checks, fault"
    )
    workers: int = Field(gt=0, description="work items under way at once: the queue is bound to one CPU")
    complete: Duration = Field(description="from COMPLETE_PPR to the repeated ATS request of the device")
    invalidate: Duration = Field(description="one invalidation: command to the IOMMU, answer of the ATC")
