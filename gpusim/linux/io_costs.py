"""What a CPU profile says about file I/O: system calls, the page cache and its writeback."""

from __future__ import annotations

from pydantic import Field

from gpusim.spec import Duration, Fraction, Rate, Size, Spec


class MappedFileCosts(Spec):
    """CPU work per page of files that programs map."""

    map: Duration = Field(description="enter a page of the cache into a CPU page table, or take it out")
    make_writable: Duration = Field(
        description="the first store to a clean page of a shared mapping: page_mkwrite, mark it dirty"
    )
    fault_around: Size = Field(ge=4096, description="what one fault maps, as far as it is in the page cache")


class DirtyAge(Spec):
    """How long written data may stay in memory alone."""

    expire: Duration = Field(gt=0, description="a file that has been dirty for so long is written out")
    wakeup: Duration = Field(
        gt=0, description="how often the flusher looks for such files while there are dirty ones"
    )


class IoCosts(Spec):
    """CPU time and rates of file I/O in the kernel."""

    syscall: Duration = Field(description="pread or pwrite without its data: entry, VFS, file system look-up")
    direct: Duration = Field(
        description="added by direct I/O: map the pages, build and submit the requests, complete, wake up"
    )
    cache_read: Rate = Field(
        gt=0, description="one thread copies out of the page cache, look-up of pages included"
    )
    cache_write: Rate = Field(gt=0, description="one thread copies into pages of the cache")
    cache_page: Duration = Field(description="a new page of the cache: allocate, insert, account")
    cache_bandwidth: Rate = Field(gt=0, description="all threads together copy in and out of the page cache")
    readahead: Size = Field(gt=0, description="window of readahead (read_ahead_kb)")
    largest_request: Size = Field(
        gt=0, description="most that one request of the page cache reads (the device's optimal I/O size)"
    )
    background_ratio: Fraction = Field(
        gt=0, le=1, description="share of free memory that may be dirty before writeback begins"
    )
    dirty_ratio: Fraction = Field(
        gt=0, le=1, description="share of free memory that may be dirty before writers wait"
    )
    dirty_age: DirtyAge | None = Field(default=None, description="without it no page is written for its age")
    writeback: Size = Field(gt=0, description="bytes that one round of writeback sends to a device at once")
    journal: Duration = Field(description="CPU time of a journal commit, without its writes")
    journal_size: Size = Field(gt=0, description="bytes that a commit writes to the journal")
    mapped: MappedFileCosts | None = Field(default=None, description="without it no file can be mapped")
