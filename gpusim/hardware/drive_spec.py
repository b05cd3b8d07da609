"""What a drive profile says about one NVMe drive: the data of `profiles/drives/*.yaml`."""

from __future__ import annotations

from pydantic import Field

from gpusim.spec import Duration, Rate, Size, Spec


class DriveReadSpec(Spec):
    """Reads. A command waits for one of the parallel units, then its data come at the drive's rate."""

    latency: Duration = Field(
        gt=0, description="a 4 KiB command at an idle drive, without the transfer: controller and media"
    )
    units: int = Field(
        gt=0, le=65536, description="commands served at once; units / latency is the most commands a second"
    )
    bandwidth: Rate = Field(gt=0, description="all commands together")
    stream: Rate = Field(
        gt=0, description="one request alone: its pieces lie on some of the flash channels only"
    )


class DriveWriteSpec(Spec):
    """Writes: into the drive's cache at its rate, as long as the cache has room."""

    latency: Duration = Field(
        gt=0, description="a 4 KiB command at an idle drive, without the transfer: controller and cache"
    )
    units: int = Field(gt=0, le=65536, description="commands served at once")
    bandwidth: Rate = Field(gt=0, description="all commands together, while the cache takes them")
    stream: Rate = Field(gt=0, description="one request alone")
    cache: Size = Field(gt=0, description="bytes that the cache takes before it has to wait for the media")
    sustained: Rate = Field(gt=0, description="rate at which the cache empties to the media")


class DriveSpec(Spec):
    """One NVMe drive."""

    capacity: Size = Field(gt=0, description="usable bytes")
    read: DriveReadSpec
    write: DriveWriteSpec
    flush: Duration = Field(
        description="a flush command; little where capacitors protect the cache, which then needs no emptying"
    )
    volatile_cache: bool = Field(
        default=False, description="true: a flush waits until the write cache has been emptied to the media"
    )
    coupling: float = Field(
        ge=0, lt=1, description="rate that reads lose per unit of rate of writes, and the other way round"
    )
