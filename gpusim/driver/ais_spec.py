"""What a driver preset says about AIS: CPU time of its one ioctl (`driver/ais.py`)."""

from __future__ import annotations

from pydantic import Field

from gpusim.spec import Duration, Spec


class AisSpec(Spec):
    """What the driver pays for a call."""

    ioctl: Duration = Field(description="one call: enter, take the file, look up its PCI device, leave")
    page: Duration = Field(description="scatter list and vector, per 4 KiB page of the buffer")
    p2p_check: Duration = Field(description="may this drive reach this GPU: kept after success, per process")
    pin: Duration = Field(description="pin the buffer, under the lock of the GPU")
    unpin: Duration = Field(description="unpin the buffer, under the same lock")
