"""A kernel as the scenario writes it: how its wavefronts walk their buffers, and how fast they could go."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from gpusim.spec import Duration, Size, Spec

DEFAULT_STEP = 64 << 10  # bytes


class Pattern(StrEnum):
    """How lanes turn indices into addresses."""

    STREAM = "stream"
    STRIDED = "strided"
    STENCIL = "stencil"
    TILED = "tiled"
    RANDOM = "random"
    ZIPF = "zipf"
    GATHER = "gather"
    SPMV = "spmv"
    POINTER_CHASE = "pointer_chase"
    TRACE = "trace"


class Mapping(StrEnum):
    """Which work a wavefront gets."""

    LINEAR = "linear"  # workgroups in order to free slots
    GRID_STRIDE = "grid_stride"  # wavefront w takes blocks w, w + wavefronts, ...
    BLOCKED = "blocked"  # a contiguous share each


class XnackMode(StrEnum):
    """How the code object was built."""

    ANY = "any"
    ON = "on"
    OFF = "off"


class KernelSpec(Spec):
    """One kernel. Buffers are named by the launch."""

    pattern: Pattern = Field(default=Pattern.STREAM, description="how lanes turn indices into addresses")
    mapping: Mapping = Field(default=Mapping.LINEAR, description="which blocks a wavefront gets")
    bytes_per_lane: Size = Field(
        default=8,
        gt=0,
        description="bytes one lane moves per access; a wavefront has at most one access per lane outstanding",
    )
    workgroup: int = Field(default=256, gt=0, le=1024, description="work-items of a workgroup")
    workgroups: int | None = Field(
        default=None, gt=0, description="workgroups launched; default: as many as the GPU holds at once"
    )
    step: Size = Field(
        default=DEFAULT_STEP,
        gt=0,
        description="bytes of the largest operand that a wavefront moves in one model step; at the default, less where "
        "the operand is so small that wavefronts would be left without work",
    )
    passes: int = Field(default=1, gt=0, description="times the kernel walks its buffers")
    stride: Size | None = Field(default=None, gt=0, description="pattern strided: distance between accesses")
    points: int | None = Field(default=None, gt=0, description="pattern stencil: points read for one written")
    accesses: int | None = Field(
        default=None,
        gt=0,
        description="pattern pointer_chase: loads of each wavefront; default: once round the ring",
    )
    duration: Duration | None = Field(
        default=None, gt=0, description="contention-free time of the whole kernel on mapped memory, an input"
    )
    flops_per_byte: float | None = Field(
        default=None, gt=0, description="arithmetic per byte moved, FP64 vector"
    )
    vgprs: int | None = Field(
        default=None, gt=0, le=512, description="vector registers of a lane: limits wavefronts in flight"
    )
    xnack: XnackMode = Field(default=XnackMode.ANY, description="how the code object was built")


#: patterns that later issues implement
PATTERNS_NOT_SUPPORTED_YET = frozenset(
    {Pattern.TILED, Pattern.ZIPF, Pattern.GATHER, Pattern.SPMV, Pattern.TRACE}
)

#: keys that only some patterns know
KEYS_OF_PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "stride": (Pattern.STRIDED,),
    "points": (Pattern.STENCIL,),
    "accesses": (Pattern.POINTER_CHASE,),
}
#: keys that a pattern cannot do without
KEY_NEEDED = {Pattern.STRIDED: "stride", Pattern.STENCIL: "points"}
