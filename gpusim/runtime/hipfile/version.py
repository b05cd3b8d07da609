"""Which revision of hipFile runs, and what differs between them (`hipfile.md` 0.1, 1.6, 3.1, 3.2, 3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HipFileVersion(StrEnum):
    """Revisions of hipFile whose behaviour differs."""

    V0_2_0 = "0.2.0"
    V0_5_0 = "0.5.0"
    V0_6_DEV = "0.6-dev"


class HipSymbol(StrEnum):
    """Entry points that hipFile looks up in the HIP runtime."""

    READ = "hipAmdFileRead"
    WRITE = "hipAmdFileWrite"


class AsyncMode(StrEnum):
    """How an asynchronous call is carried out."""

    WHOLE = "whole"  # a pinned buffer of the request's size for each operation, always the fallback
    PER_STREAM = "per_stream"  # one pinned buffer a stream, the request in pieces; scored, but never retried
    POOL = "pool"  # the synchronous path, retry included, in a pool of threads


@dataclass(frozen=True, slots=True)
class Revision:
    """What one revision does."""

    version: HipFileVersion
    fallback_when_forced: bool  # FORCE=true with ALLOW=false: is the fallback switched on again?
    negative_offset: str  # the error of a negative offset
    stats_level: int  # when HIPFILE_STATS_LEVEL is not set
    histograms: bool  # statistics by size, with times and errors, instead of four byte counters
    async_mode: AsyncMode
    batch_runs: bool  # a submitted batch is carried out at all
    batch_full: str  # the error of more entries than there is room for
    no_descriptor: str  # the error of a registration when there are no descriptors left
    lvm: bool  # files on LVM over local NVMe drives take the fast path


_OLD = Revision(
    version=HipFileVersion.V0_2_0,
    fallback_when_forced=False,
    negative_offset="hipFileInvalidValue",
    stats_level=0,
    histograms=False,
    async_mode=AsyncMode.WHOLE,
    batch_runs=False,
    batch_full="hipFileInvalidValue",
    no_descriptor="hipFileInternalError",
    lvm=False,
)
_V0_5 = Revision(
    version=HipFileVersion.V0_5_0,
    fallback_when_forced=False,
    negative_offset="EINVAL",
    stats_level=1,
    histograms=True,
    async_mode=AsyncMode.PER_STREAM,
    batch_runs=True,
    batch_full="hipFileBatchFull",
    no_descriptor="hipFileGetNewFDFailed",
    lvm=True,
)
_DEV = Revision(
    version=HipFileVersion.V0_6_DEV,
    fallback_when_forced=True,
    negative_offset="EINVAL",
    stats_level=1,
    histograms=True,
    async_mode=AsyncMode.POOL,
    batch_runs=True,
    batch_full="hipFileBatchFull",
    no_descriptor="hipFileGetNewFDFailed",
    lvm=True,
)

REVISIONS: dict[HipFileVersion, Revision] = {revision.version: revision for revision in (_OLD, _V0_5, _DEV)}
