"""The interrupt rings as a driver sets them up, and what reading a vector costs (`profiles/drivers/*.yaml`)."""

from __future__ import annotations

from pydantic import Field

from gpusim.spec import Duration, Frequency, Spec


class InterruptSpec(Spec):
    """Sizes are in vectors of 32 bytes."""

    ring0: int = Field(gt=32, description="ring 0, which the hard interrupt handler reads")
    ring1: int = Field(gt=1, description="ring 1, to which retry faults go where the software filter is used")
    soft_ring: int = Field(gt=0, description="vectors that the soft ring holds")
    per_pass: int = Field(
        gt=0, description="vectors that are read before the read pointer is published again"
    )
    overflow_margin: int = Field(gt=0, description="vectors that an overflow of ring 0 loses at once")
    filter_entries: int = Field(gt=0, description="faults that the software filter remembers")
    filter_ticks: int = Field(gt=0, description="timestamp ticks for which it knows a fault")
    clock: Frequency = Field(gt=0, description="rate of the timestamps")
    vector: Duration = Field(description="CPU time to decode one vector and to filter or copy it")
    command: Duration = Field(description="replay: fault_done_command: one command to the GPU")
    merge: int = Field(gt=0, description="throttle: merge: neighbouring granules that one call serves")

    @property
    def filter_window_ps(self) -> int:
        """The window of the software filter."""
        return round(self.filter_ticks * 1e12 / self.clock)
