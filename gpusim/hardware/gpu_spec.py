"""What a GPU profile says about one device: the data of `profiles/gpus/*.yaml`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from gpusim.hardware.ats_spec import AtsSpec
from gpusim.spec import Duration, Fraction, Rate, Size, Spec


class XnackSupport(StrEnum):
    """How XNACK can be had (`kfd_svm.md` 1.8)."""

    PER_PROCESS = "per_process"  # MI200, MI300: HSA_XNACK decides
    BOOT = "boot"  # Vega, MI100: follows the module parameter amdgpu.noretry
    NEVER = "never"


class ComputeSpec(Spec):
    """Compute units and what one wavefront can have in flight."""

    compute_units: int = Field(gt=0, le=4096, description="active compute units")
    xcds: int = Field(default=1, gt=0, description="accelerator dies, each with a UTCL2 of its own")
    simds: int = Field(default=4, gt=0, description="SIMDs of a compute unit")
    waves_per_simd: int = Field(gt=0, description="wavefront slots of a SIMD")
    vgprs: int = Field(gt=0, description="vector registers of a SIMD lane, shared by its wavefronts")
    vgpr_granule: int = Field(
        default=8, gt=0, description="vector registers are handed out in multiples of this"
    )
    lanes: int = Field(default=64, gt=0, description="lanes of a wavefront")
    fp64: float = Field(gt=0, description="FP64 vector operations per second")
    bytes_in_flight: Size = Field(gt=0, description="bytes one wavefront keeps outstanding of one array")
    xnack_slowdown: float = Field(
        ge=1, description="time of a kernel without faults under XNACK over its time without"
    )
    xnack_vgprs: int = Field(
        default=0,
        ge=0,
        description="vector registers of a lane that XNACK takes from each kernel; not confirmed, hence 0",
    )
    launch: Duration = Field(description="from the launch call to the first wavefront")
    completion: Duration = Field(description="from the last wavefront to the thread that waits")

    @property
    def slots(self) -> int:
        """Wavefronts in flight at most."""
        return self.compute_units * self.simds * self.waves_per_simd

    def slots_with(self, vgprs: int | None, *, xnack: bool = False) -> int:
        """Wavefronts in flight of a kernel that needs `vgprs` registers a lane; None: as many as leave all slots."""
        extra = self.xnack_vgprs if xnack else 0
        if vgprs is None:
            if not extra:
                return self.slots
            vgprs = self.vgprs // self.waves_per_simd
        granted = -(-(vgprs + extra) // self.vgpr_granule) * self.vgpr_granule
        per_simd = min(self.waves_per_simd, max(1, self.vgprs // granted))
        return self.compute_units * self.simds * per_simd


class Replacement(StrEnum):
    """Which line of a full set a cache gives up."""

    LRU = "lru"
    NOT_RECENT = "not_recent"  # any of those not used since the last time that all had been
    RANDOM = "random"


class Indexing(StrEnum):
    """How lines are spread over the sets of a cache."""

    EVEN = "even"  # contiguous data load all sets alike
    HASHED = "hashed"  # each line falls into any set


class CacheSpec(Spec):
    """One cache level: `instances` caches of `size` bytes each."""

    size: Size = Field(gt=0, description="capacity of one instance")
    instances: int = Field(default=1, gt=0, description="caches of this level")
    ways: int = Field(default=16, gt=0, le=64, description="lines of a set")
    replacement: Replacement = Field(default=Replacement.LRU, description="which line of a full set goes")
    indexing: Indexing = Field(default=Indexing.EVEN, description="how lines are spread over the sets")
    bandwidth: Rate = Field(gt=0, description="achieved read bandwidth, all instances together")
    latency: Duration = Field(gt=0, description="load to use")


class HbmSpec(Spec):
    """Device memory."""

    size: Size = Field(gt=0, description="capacity")
    bandwidth: Rate = Field(gt=0, description="achieved streaming bandwidth, reads and writes together")
    latency: Duration = Field(gt=0, description="load to use, translation hit")
    loaded: float = Field(
        default=1.0, ge=1, description="latency at full bandwidth over latency when idle; linear in between"
    )


class Utcl1Spec(Spec):
    """The translation cache in front of the compute units."""

    entries: int = Field(gt=0, description="translations held; LRU")
    largest: Size = Field(default=2 << 20, gt=0, description="most that one entry covers")
    shared_by: int = Field(default=1, gt=0, description="compute units that share one")
    miss: Duration = Field(description="added to an access that misses here and hits UTCL2")


class Utcl2Spec(Spec):
    """The translation cache of an XCD: one array for small pages, one for large ones."""

    entries: int = Field(gt=0, description="large-page array: translations held; LRU")
    small_entries: int = Field(gt=0, description="small-page array: translations of 4 KiB pages held; LRU")
    large: Size = Field(
        gt=0, description="fragments from this size on go to the large-page array (translate_further: 2 MiB)"
    )


class WalkerSpec(Spec):
    """The page-table walkers behind one UTCL2, and their caches, one per directory level."""

    walkers: int = Field(gt=0, description="walks under way at once; others wait")
    read: Duration = Field(gt=0, description="one read of a table entry that no walk cache holds")
    pde0: int = Field(gt=0, description="PDE0 entries held, 2 MiB of addresses each")
    pde1: int = Field(gt=0, description="PDE1 entries held, 1 GiB of addresses each")
    pde2: int = Field(gt=0, description="PDE2 entries held, 512 GiB of addresses each")


class VmidSpec(Spec):
    """The VMIDs that the driver has for compute processes."""

    first: int = Field(gt=0, le=15, description="lowest VMID of the KFD")
    last: int = Field(gt=0, le=15, description="highest VMID of the KFD")

    @model_validator(mode="after")
    def _in_order(self) -> VmidSpec:
        if self.first > self.last:
            raise ValueError(f"no VMID is left from {self.first} to {self.last}")
        return self


class AtomicSpec(Spec):
    """Atomics on one line, which are done one after another."""

    near: Duration = Field(gt=0, description="in L2: coarse-grained memory, what hipMalloc gives")
    coherent: Duration = Field(gt=0, description="in memory that the CPU may share: every other allocator")


class ApuSpec(Spec):
    """An APU: CPU and GPU have one memory, and what the CPU allocates needs no link."""

    host_read: Rate = Field(
        gt=0, description="rate at which kernels read what CPU allocators gave, 2 MiB pages"
    )
    host_write: Rate = Field(gt=0, description="rate at which they write it")
    ats: AtsSpec | None = Field(default=None, description="translation by ATS and PRI, if the part has it")


class RetrySpec(Spec):
    """Retry faults in hardware: re-send, de-duplication, delivery."""

    period: Duration = Field(gt=0, description="time between two sends of a waiting access")
    cam_entries: int = Field(gt=0, description="addresses that the retry CAM can hold")
    delivery: Duration = Field(
        description="from the miss to the start of the fault worker, less the interrupt handler"
    )


class SmallCopySpec(Spec):
    """Copies between pinned memory and the device that are so small that the runtime starts a kernel for them."""

    most: Size = Field(gt=0, description="the largest of them (GPU_FORCE_BLIT_COPY_SIZE)")
    copy_alone: Duration = Field(description="fixed cost of one of many in a stream, one call each")
    copy_batched: Duration = Field(description="fixed cost of one of many in one call (hipMemcpyBatchAsync)")


class SdmaSpec(Spec):
    """Copy engines and the fixed cost of a copy."""

    engines: int = Field(gt=0, description="SDMA engines that serve host copies")
    rate: Rate = Field(gt=0, description="most that one engine moves")
    job: Duration = Field(description="fixed cost of one job that the driver submits")
    clear_rate: Rate = Field(gt=0, description="rate at which one engine clears VRAM")
    copy_h2d: Duration = Field(description="fixed cost of one hipMemcpy, host to device, pinned")
    copy_d2h: Duration = Field(description="fixed cost of one hipMemcpy, device to host, pinned")
    copy_d2d: Duration = Field(description="fixed cost of one hipMemcpy inside the device")
    packet: Size = Field(
        default=4 << 20,
        gt=0,
        description="bytes of one copy packet: between packets an engine serves other rings",
    )
    small: SmallCopySpec | None = Field(
        default=None, description="small copies by kernels; without it the engines do them all"
    )
    staging: Size = Field(gt=0, description="one of the two pinned buffers through which pageable copies go")
    d2d_rate: Rate = Field(gt=0, description="bytes copied per second inside the device (blit kernel)")


class ZeroCopySpec(Spec):
    """Loads and stores of wavefronts across the CPU link."""

    read_efficiency: Fraction = Field(
        gt=0, le=1, description="payload rate of reads over that of a copy engine"
    )
    write_efficiency: Fraction = Field(
        gt=0, le=1, description="payload rate of writes over that of a copy engine"
    )


class GpuSpec(Spec):
    """One GPU (one GCD or XCD group that the runtime shows as a device)."""

    gfx: str = Field(description="target, e.g. gfx90a")
    xnack: XnackSupport = Field(description="how XNACK can be had")
    compute: ComputeSpec
    l1: CacheSpec | None = Field(default=None, description="per compute unit")
    l2: CacheSpec = Field(description="per XCD")
    infinity_cache: CacheSpec | None = Field(default=None, description="memory-side cache, if any")
    hbm: HbmSpec
    apu: ApuSpec | None = Field(default=None, description="set for a GPU that shares the memory of its CPU")
    vmids: VmidSpec = Field(description="address spaces that can be in use at once")
    atomic: AtomicSpec = Field(description="atomics on one cache line")
    utcl1: Utcl1Spec = Field(description="per compute unit, or per group of them")
    utcl2: Utcl2Spec = Field(description="per XCD; its miss is a page-table walk")
    walker: WalkerSpec = Field(description="page-table walks, per XCD")
    retry: RetrySpec
    sdma: SdmaSpec
    zero_copy: ZeroCopySpec


class LinkSpec(Spec):
    """The link between a GPU and its CPU, both directions."""

    h2d: Rate = Field(gt=0, description="payload rate of a copy engine, host to device")
    d2h: Rate = Field(gt=0, description="payload rate of a copy engine, device to host")
    coupling: float = Field(ge=0, lt=1, description="rate one direction loses per unit of rate in the other")
    latency: Duration = Field(description="added to a load that crosses the link")
    large_bar: bool = Field(
        default=True, description="the CPU sees all of the VRAM, and writes page tables there; else SDMA does"
    )
    peer_visible: bool = Field(
        default=True, description="peers see all of the VRAM: large BAR, and no virtual function"
    )
    cpu_read: Rate = Field(
        default=5e7,
        gt=0,
        description="most that a CPU thread loads from VRAM across the link (uncached reads)",
    )
    cpu_write: Rate = Field(
        default=1e10, gt=0, description="most that a CPU thread stores to VRAM (write combining)"
    )
    coherent: bool = Field(
        default=False, description="xGMI to the CPU: it caches VRAM, and its accesses migrate nothing"
    )
