"""What a driver preset says: its switches, limits and fixed costs (`profiles/drivers/*.yaml`)."""

from __future__ import annotations

from pydantic import Field, field_validator

from gpusim.driver.ais_spec import AisSpec
from gpusim.driver.interrupt_spec import InterruptSpec
from gpusim.driver.switches import (
    Ack,
    Apu,
    Dedup,
    Hmm,
    PeerMigration,
    Placement,
    RecentSkip,
    Replay,
    Service,
    Throttle,
    Unit,
    XnackSwitch,
)
from gpusim.spec import PAGE_BYTES, Duration, Size, Spec


class Switches(Spec):
    """Where driver versions and the white paper differ (DESIGN section 8)."""

    dedup: Dedup = Dedup.CAM
    ack: Ack = Ack.ALWAYS
    replay: Replay = Replay.RETRY_UNTIL_VALID
    placement: Placement = Placement.KFD
    service: Service = Service.ONE_WORKER
    unit: Unit = Unit.GRANULE
    recent_skip: RecentSkip = RecentSkip.ON
    apu: Apu = Apu.RETRY_HMM
    peer_migration: PeerMigration = PeerMigration.THROUGH_RAM
    throttle: Throttle = Throttle.NONE
    hmm: Hmm = Hmm.MAY_SLEEP
    xnack_switch: XnackSwitch = XnackSwitch.WHEN_NO_QUEUES


class SvmSpec(Spec):
    """Limits of SVM ranges."""

    default_granularity: Size = Field(
        gt=0, description="migration granule of a new range, a power of two of pages"
    )
    recent_skip: Duration = Field(description="faults of a range restored less than this ago are dropped")
    range_divisor: int = Field(gt=0, description="largest registered range: VRAM over this")
    range_min: Size = Field(gt=0, description="the largest registered range is at least this")
    range_max: Size = Field(gt=0, description="and at most this")
    gart_window: Size = Field(ge=PAGE_BYTES, description="bytes migrated through one GART window")
    clear_chunk: Size = Field(ge=PAGE_BYTES, description="bytes that one clear job covers")

    @field_validator("default_granularity", "range_min", "range_max")
    @classmethod
    def _power_of_two_of_pages(cls, size: int) -> int:
        if size < PAGE_BYTES or size & (size - 1):
            raise ValueError(f"must be a power of two of 4 KiB pages, not {size} bytes")
        return size


class DriverCosts(Spec):
    """CPU time of the driver that does not depend on the number of pages, and its cost per PTE."""

    restore: Duration = Field(description="one served retry fault: look-ups, locks, VMA checks, events")
    skip: Duration = Field(
        description="one vector dropped by the recent-restore rule, or thrown away as a duplicate"
    )
    migrate: Duration = Field(description="one migrate call: arrays, notifier registration, events")
    bo_create: Duration = Field(description="allocate a buffer object in VRAM")
    pte_write: Duration = Field(description="write one GPU page-table entry of a 4 KiB page")
    range_create: Duration = Field(description="create one svm_range")
    tlb_flush: Duration = Field(description="heavyweight TLB flush after an unmap")
    restore_delay: Duration = Field(
        description="XNACK off: from the eviction of queues to the restore worker"
    )
    ioctl: Duration = Field(description="enter and leave one ioctl")
    vram_alloc: Duration = Field(description="hipMalloc: VA, buffer object, map")
    vram_free: Duration = Field(description="hipFree: unmap, free")


class DriverSpec(Spec):
    """One version of the driver."""

    switches: Switches = Switches()
    noretry: int = Field(
        ge=-1, le=1, description="amdgpu.noretry: 0 retry faults on, 1 off, -1 by GPU family; read at boot"
    )
    svm: SvmSpec
    interrupts: InterruptSpec
    costs: DriverCosts
    ais: AisSpec | None = Field(default=None, description="file I/O into VRAM; none: the driver is older")
