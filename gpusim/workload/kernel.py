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
    tile: int | None = Field(
        default=None, gt=0, le=4096, description="pattern tiled: elements along an edge; default 64"
    )
    exponent: float | None = Field(
        default=None,
        ge=0,
        le=4,
        description="patterns zipf (default 1) and gather (default 0.8): the r-th most popular element is used in "
        "proportion to r ** -exponent",
    )
    band: Size | None = Field(
        default=None,
        gt=0,
        description="pattern spmv: part of the vector around the diagonal that a row reads; default: all of it",
    )
    accesses: int | None = Field(
        default=None,
        gt=0,
        description="pattern pointer_chase: loads of each wavefront; default: once round the ring",
    )
    file: str | None = Field(
        default=None, min_length=1, description="pattern trace: the CSV file with the accesses of this kernel"
    )
    lines: int | None = Field(
        default=None,
        gt=0,
        description="cache lines that the atomics of a launch go to, e.g. bins of a histogram; default: all of their "
        "buffers",
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


#: keys that only some patterns know
KEYS_OF_PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "stride": (Pattern.STRIDED,),
    "points": (Pattern.STENCIL,),
    "tile": (Pattern.TILED,),
    "exponent": (Pattern.ZIPF, Pattern.GATHER),
    "band": (Pattern.SPMV,),
    "accesses": (Pattern.POINTER_CHASE,),
    "file": (Pattern.TRACE,),
}
#: keys that others know, and a pattern does not
KEYS_IGNORED: dict[Pattern, tuple[str, ...]] = {
    Pattern.TILED: ("step",),
    Pattern.TRACE: ("mapping", "passes"),
}
#: keys that a pattern cannot do without
KEY_NEEDED = {Pattern.STRIDED: "stride", Pattern.STENCIL: "points", Pattern.TRACE: "file"}
