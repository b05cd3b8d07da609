"""What-if policies: which buffer object leaves a full VRAM, and what migrates beside a fault.

`driver` is what amdgpu and KFD do. All others are not: they are here to say what another rule would be worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    # scenarios need the words only: reading one shall not load the driver
    import numpy as np

    from gpusim.driver.svm_range import SvmRange
    from gpusim.driver.vram import SvmBo
    from gpusim.linux.address_space import Vma

#: which of the buffer objects, given in order of allocation, has to go; None if there are none
Choice: TypeAlias = "Callable[[Iterable[SvmBo]], SvmBo | None]"


class EvictionPolicy(StrEnum):
    """Which VRAM buffer object goes when memory is short. All but `driver` are not what the driver does."""

    DRIVER = "driver"  # TTM: allocation order
    LRU = "lru"
    RANDOM = "random"


class PrefetchPolicy(StrEnum):
    """What is migrated beside the faulting granule. All but `driver` are not what the driver does."""

    DRIVER = "driver"  # nothing
    NEXT = "next"  # the following granule too
    TREE = "tree"  # the largest subtree that is more than half full then


def choice(policy: EvictionPolicy, random: np.random.Generator) -> Choice:
    """How an eviction policy picks its victim."""
    if policy is EvictionPolicy.LRU:
        return _least_recently_used
    if policy is EvictionPolicy.RANDOM:

        def any_of_them(bos: Iterable[SvmBo]) -> SvmBo | None:
            them = list(bos)
            return them[int(random.integers(len(them)))] if them else None

        return any_of_them
    return _oldest


def _oldest(bos: Iterable[SvmBo]) -> SvmBo | None:
    """GPU accesses do not touch TTM's list, so its order is that of allocation."""
    return next(iter(bos), None)


def _least_recently_used(bos: Iterable[SvmBo]) -> SvmBo | None:
    """By the last step of a wavefront on it; the oldest of equals."""
    return min(bos, key=attrgetter("used_ps"), default=None)


def widened(
    policy: PrefetchPolicy, svm: SvmRange, vma: Vma, first: int, last: int, place: int
) -> tuple[int, int]:
    """The pages that a fault on the granule first..last migrates together; never beyond its range."""
    if policy is PrefetchPolicy.NEXT:
        return first, svm.granule(last + 1)[1] if last < svm.last else last
    if policy is PrefetchPolicy.TREE:
        faulting = last - first + 1 - vma.count(first, last, place)
        size, wide = svm.granule_pages, (first, last)
        while wide[0] > svm.first or wide[1] < svm.last:
            size *= 2
            start = first - first % size
            wide = max(start, svm.first), min(start + size - 1, svm.last)
            if 2 * (vma.count(*wide, place) + faulting) > wide[1] - wide[0] + 1:
                first, last = wide
                faulting = last - first + 1 - vma.count(first, last, place)
    return first, last
