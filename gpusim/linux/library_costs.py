"""CPU time of hipFile's and HIP's calls on a host, and what its caches do to copies: the `hipfile` of a CPU profile."""

from __future__ import annotations

from pydantic import Field

from gpusim.spec import Duration, Rate, Size, Spec


class LibraryCosts(Spec):
    """Costs of user space. Each is paid where its mechanism runs."""

    call: Duration = Field(description="one read or write: look-ups, scores, HIP, ROCr, thunk, and back")
    query: Duration = Field(
        description="ask HIP about a pointer; twice a request for a buffer not registered"
    )
    first_call: Duration = Field(description="hipInit on a thread's first fast-path request")
    register_file: Duration = Field(description="statx, fcntl, the mount table and the second descriptor")
    register_buffer: Duration = Field(description="check the range with HIP and keep it")
    map: Duration = Field(description="mmap and munmap of a bounce buffer, its pages apart")
    pool: Duration = Field(description="hand a request to a thread of the pool")
    host_function: Duration = Field(
        description="let HIP run a host function of a stream, without what it does"
    )
    copy_block: Rate = Field(gt=0, description="one block of a copy kernel, between VRAM and host memory")
    private_cache: Size = Field(description="bytes that a core has just written and holds in its own cache")
    dirty_drain: Rate = Field(gt=0, description="how fast a copy engine gets those bytes out of that cache")
