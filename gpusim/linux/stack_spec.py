"""What a node profile says about a stacked block device."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field

from gpusim.spec import Rate, Size, Spec


class StackKind(StrEnum):
    """How a stacked device is made of its members."""

    MD_RAID0 = "md_raid0"
    MD_RAID1 = "md_raid1"
    LVM = "lvm"  # linear: one member after the other
    DM_CRYPT = "dm_crypt"
    MULTIPATH = "multipath"
    LOOP = "loop"  # a file on the member, through its page cache


class StackSpec(Spec):
    """A block device made of others."""

    name: str = Field(description="its name, for `drive` of files")
    kind: StackKind = Field(description="how it is made of its members")
    members: tuple[str, ...] = Field(min_length=1, description="drives, or stacks listed before")
    chunk: Size = Field(default=512 << 10, gt=0, description="md_raid0: bytes on one member before the next")
    rate: Rate | None = Field(
        default=None, gt=0, description="dm_crypt: bytes per second that the CPUs encrypt"
    )


def stack_capacity(kind: StackKind, sizes: Sequence[int]) -> int:
    """Bytes that members of these sizes make together."""
    if kind is StackKind.MD_RAID0:
        return len(sizes) * min(sizes)
    return sum(sizes) if kind is StackKind.LVM else min(sizes)
