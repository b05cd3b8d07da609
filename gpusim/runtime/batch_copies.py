"""hipMemcpyBatchAsync: many copies in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpusim.engine.record import Chain
from gpusim.engine.stages import Stages
from gpusim.runtime.copies import copy
from gpusim.runtime.hip import Hip, Thread
from gpusim.runtime.operation import Operation
from gpusim.runtime.operations import staged


@dataclass(frozen=True, slots=True)
class Entry:
    """`count` copies of `size` bytes each, one behind the other in both buffers."""

    dst: str
    src: str
    size: int | None
    count: int
    dst_offset: int | None
    src_offset: int | None


def memcpy_batch(hip: Hip, thread: Thread, entries: Sequence[Entry], stream: str | None) -> Operation:
    """Submit the copies as one operation; they are done in order.

    Small copies share the launch of their kernels; each of the others is a copy of its own, as in a loop.
    """
    parts = []
    for entry in entries:
        target, source = hip.allocation(entry.dst), hip.allocation(entry.src)
        room = min(target.size - (entry.dst_offset or 0), source.size - (entry.src_offset or 0))
        size = room // entry.count if entry.size is None else entry.size
        whole = size * entry.count
        parts.append(
            (
                target,
                target.slice(entry.dst_offset, whole),
                source,
                source.slice(entry.src_offset, whole),
                entry.count,
            )
        )

    def stages(chain: Chain) -> Stages:
        for target, to, source, origin, count in parts:
            yield from copy(hip, chain, operation, target, to, source, origin, batch=count)

    operation = staged(hip, "memcpy_batch", stages)
    operation.size = sum(to[1] for _, to, _, _, _ in parts)
    operation.facts["copies"] = sum(count for *_, count in parts)
    return hip.submit(thread, operation, stream)
