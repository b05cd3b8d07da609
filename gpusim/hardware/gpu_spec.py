"""What a GPU profile says about one device: the data of `profiles/gpus/*.yaml`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

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
    bytes_in_flight: Size = Field(gt=0, description="bytes one wavefront keeps outstanding")
    xnack_slowdown: float = Field(
        ge=1, description="time of a kernel without faults under XNACK over its time without"
    )
    launch: Duration = Field(description="from the launch call to the first wavefront")
    completion: Duration = Field(description="from the last wavefront to the thread that waits")

    @property
    def slots(self) -> int:
        """Wavefronts in flight at most."""
        return self.compute_units * self.simds * self.waves_per_simd

    def slots_with(self, vgprs: int | None) -> int:
        """Wavefronts in flight of a kernel that needs `vgprs` registers a lane."""
        if vgprs is None:
            return self.slots
        granted = -(-vgprs // self.vgpr_granule) * self.vgpr_granule
        per_simd = min(self.waves_per_simd, max(1, self.vgprs // granted))
        return self.compute_units * self.simds * per_simd


class CacheSpec(Spec):
    """One cache level that all compute units share."""

    size: Size = Field(gt=0, description="capacity")
    bandwidth: Rate = Field(gt=0, description="achieved read bandwidth")
    latency: Duration = Field(gt=0, description="load to use")


class HbmSpec(Spec):
    """Device memory."""

    size: Size = Field(gt=0, description="capacity")
    bandwidth: Rate = Field(gt=0, description="achieved streaming bandwidth, reads and writes together")
    latency: Duration = Field(gt=0, description="load to use, translation hit")


class TlbSpec(Spec):
    """One level of translation cache."""

    entries: int = Field(gt=0, description="translations held; LRU")
    miss: Duration = Field(description="added to an access that misses here and hits the level below")


class RetrySpec(Spec):
    """Retry faults in hardware: re-send, de-duplication, delivery."""

    period: Duration = Field(gt=0, description="time between two sends of a waiting access")
    cam_entries: int = Field(gt=0, description="addresses that the retry CAM can hold")
    delivery: Duration = Field(
        description="from the miss to the start of the fault worker, less the interrupt handler"
    )


class SdmaSpec(Spec):
    """Copy engines and the fixed cost of a copy."""

    engines: int = Field(gt=0, description="SDMA engines that serve host copies")
    rate: Rate = Field(gt=0, description="most that one engine moves")
    job: Duration = Field(description="fixed cost of one job that the driver submits")
    clear_rate: Rate = Field(gt=0, description="rate at which one engine clears VRAM")
    copy_h2d: Duration = Field(description="fixed cost of one hipMemcpy, host to device, pinned")
    copy_d2h: Duration = Field(description="fixed cost of one hipMemcpy, device to host, pinned")
    copy_d2d: Duration = Field(description="fixed cost of one hipMemcpy inside the device")
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
    l2: CacheSpec
    infinity_cache: CacheSpec | None = Field(default=None, description="memory-side cache, if any")
    hbm: HbmSpec
    utcl1: TlbSpec = Field(description="per compute unit")
    utcl2: TlbSpec = Field(description="per XCD; its miss is a page-table walk")
    retry: RetrySpec
    sdma: SdmaSpec
    zero_copy: ZeroCopySpec


class LinkSpec(Spec):
    """The link between a GPU and its CPU, both directions."""

    h2d: Rate = Field(gt=0, description="payload rate of a copy engine, host to device")
    d2h: Rate = Field(gt=0, description="payload rate of a copy engine, device to host")
    coupling: float = Field(ge=0, lt=1, description="rate one direction loses per unit of rate in the other")
    latency: Duration = Field(description="added to a load that crosses the link")
