"""xGMI between the GPUs of a node: bundles of links, static routes over them, and hives.

A pair of GPUs is joined by one to four links that carry traffic together. Where two GPUs are not joined, a transfer
goes through others, and holds every bundle on its way. What arrives of the raw rate depends on who sends: kernels
(remote loads and stores, blit copies) or copy engines. Left out: the choice among equally short routes by load (one
route is fixed), packets, and the HBM traffic at the far end.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from gpusim.spec import Duration, Fraction, Rate, Spec

if TYPE_CHECKING:
    from gpusim.engine.flows import Hop, Network  # reading a scenario needs the spec only

_PAIR = re.compile(r"(\d+)-(\d+)(?: x(\d+))?")


class XgmiSpec(Spec):
    """The xGMI links of a node."""

    rate: Rate = Field(gt=0, description="raw rate of one link in one direction")
    joined: str = Field(description="pairs of GPUs and the links between them: `0-1 x4, 0-2, 1-3`")
    kernel_efficiency: Fraction = Field(
        gt=0, le=1, description="payload of kernels (loads, stores, blit copies) over the raw rate"
    )
    sdma_efficiency: Fraction = Field(gt=0, le=1, description="payload of copy engines over the raw rate")
    coupling: float = Field(ge=0, lt=1, description="rate one direction loses per unit of rate in the other")
    latency: Duration = Field(description="added to a load for each hop")

    @field_validator("joined")
    @classmethod
    def _readable(cls, text: str) -> str:
        for one, other, links in pairs(text):
            if one == other or not 1 <= links <= 8:
                raise ValueError(f"{one}-{other} x{links}: two different GPUs and one to eight links")
        return text


def pairs(text: str) -> Iterator[tuple[int, int, int]]:
    """(GPU, GPU, links) of each pair in `joined`. Raises ValueError where it cannot be read."""
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not a pair like `0-1 x4`")
        yield int(match[1]), int(match[2]), int(match[3] or 1)


class Xgmi:
    """Routes between `gpus` GPUs; without a spec none are joined."""

    def __init__(self, spec: XgmiSpec | None, gpus: int, network: Network) -> None:
        self._spec = spec
        self._links: dict[tuple[int, int], int] = {}
        if spec is not None:
            for one, other, links in pairs(spec.joined):
                if max(one, other) < gpus:
                    self._links[one, other] = self._links[other, one] = links
            for (one, other), links in self._links.items():
                network.add_link(
                    link_name(one, other),
                    capacity_bytes_per_s=links * spec.rate,
                    reverse=link_name(other, one),
                    coupling=spec.coupling,
                )
        self._routes = {source: self._from(source, gpus) for source in range(gpus)}

    def _from(self, source: int, gpus: int) -> dict[int, tuple[int, ...]]:
        """The route to each GPU that can be reached: fewest hops, then the widest, then the lowest numbers."""
        best: dict[int, tuple[int, ...]] = {source: (source,)}
        queue = deque([source])
        while queue:
            here = queue.popleft()
            for there in range(gpus):
                if (here, there) not in self._links:
                    continue
                route = (*best[here], there)
                if there not in best:
                    best[there] = route
                    queue.append(there)
                elif len(route) == len(best[there]) and self.width(route) > self.width(best[there]):
                    best[there] = route
        return best

    def width(self, route: tuple[int, ...]) -> int:
        """Links of the narrowest bundle on a route."""
        return min((self._links[pair] for pair in pairwise(route)), default=0)

    def same_hive(self, one: int, other: int) -> bool:
        """Are two GPUs the same, or linked by xGMI, directly or through others?"""
        return other in self._routes[one]

    def hops(self, source: int, target: int) -> int:
        """Bundles between two GPUs of a hive."""
        return len(self._routes[source][target]) - 1

    def latency_ps(self, source: int, target: int) -> int:
        """Added to a load of what lies at another GPU of the hive."""
        assert self._spec is not None
        return self.hops(source, target) * self._spec.latency

    def path(self, source: int, target: int, *, engine: bool) -> tuple[Hop, ...]:
        """The way of data from one GPU of a hive to another, as a copy engine or a kernel uses it."""
        spec = self._spec
        assert spec is not None
        cost = 1.0 / (spec.sdma_efficiency if engine else spec.kernel_efficiency)
        route = self._routes[source][target]
        return tuple((link_name(one, other), cost) for one, other in pairwise(route))

    def link_names(self) -> list[str]:
        """All directions of all bundles."""
        return [link_name(*pair) for pair in sorted(self._links)]


def link_name(source: int, target: int) -> str:
    """The direction of a bundle from one GPU to another."""
    return f"gpu[{source}].xgmi[{target}]"
