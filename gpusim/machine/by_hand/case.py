"""What the formulas of a step are made of: the machine, the run, and where the step's time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpusim.hardware.gpu import Gpu
from gpusim.kinds import Kind
from gpusim.quantity import format_duration_ps, format_rate, format_size
from gpusim.spec import PAGE_BYTES

if TYPE_CHECKING:
    from gpusim.driver.driver_spec import DriverSpec
    from gpusim.linux.host_spec import HostSpec
    from gpusim.machine.build import Machine
    from gpusim.rundata import RunData, StepData

#: words, and the picoseconds that they come to
Candidate = tuple[str, int]
#: a kind with less of a step's path than this needs no term
LEAST = 0.02


class Faults:
    """The table of served faults, read once for all steps."""

    def __init__(self, data: RunData) -> None:
        table = data.tables["faults"]
        self._mapped = table["mapped_ps"]
        self._gpu = np.asarray(table["gpu"])
        self._process = np.asarray(table["process"])

    def of(self, gpu: str, step: StepData) -> NDArray[np.bool_]:
        """Which were served to a GPU of the step's process while it ran."""
        if not len(self._mapped):
            return np.zeros(0, dtype=bool)
        meanwhile = (self._mapped >= step.start_ps) & (self._mapped <= step.end_ps)
        made: NDArray[np.bool_] = meanwhile & (self._gpu == gpu) & (self._process == step.process)
        return made


@dataclass(frozen=True)
class Case:
    """One executed step."""

    machine: Machine
    data: RunData
    step: StepData
    faults: Faults

    @property
    def length_ps(self) -> int:
        return self.step.end_ps - self.step.start_ps

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the step's verb says of its work: see `StepData.facts`."""
        return self.step.facts

    def off(self, candidate: Candidate) -> float:
        """How far a candidate is from what was simulated, as a fraction of it."""
        return abs(candidate[1] / self.length_ps - 1)

    def share(self, *kinds: Kind) -> float:
        """Of the step's critical path."""
        spent = self.step.attribution or {}
        return sum(spent.get(kind, 0) for kind in kinds) / self.length_ps

    @cached_property
    def gpu(self) -> Gpu:
        """The GPU that the step works on; the first where it does not say."""
        named = next((place for place in self._places() if place.startswith("gpu[")), None)
        index = int(named[4:-1]) if named else int(self.facts.get("gpu", 0))
        return self.machine.hardware.node.devices[index].gpu

    def _places(self) -> Iterable[str]:
        return (str(self.step.detail[key]) for key in ("to", "from") if key in self.step.detail)

    @property
    def host(self) -> HostSpec:
        return self.machine.hardware.node.host_spec

    @property
    def driver(self) -> DriverSpec:
        return self.machine.hardware.node.driver

    @property
    def pages(self) -> int:
        """Of 4 KiB, that the step asked for."""
        return -(-self.step.bytes // PAGE_BYTES)

    def link(self, way: str) -> float:
        """Bytes per second of the link between host and GPU; `way` is h2d or d2h."""
        return self.machine.hardware.network.link(f"{self.gpu.name}.pcie.{way}").capacity * 1e12


def quotient(size: float, rate: float) -> int:
    """Picoseconds of so many bytes at a rate in bytes per second."""
    return round(size * 1e12 / rate)


def at_rate(size: int, rate: float, of: str) -> Candidate:
    """So many bytes over a rate."""
    return f"{format_size(size)} / {format_rate(rate)} of {of}", quotient(size, rate)


def each(duration_ps: int, of: str) -> Candidate:
    """A fixed time."""
    return f"{format_duration_ps(duration_ps)} of {of}", duration_ps


def times(count: int, what: str, terms: Iterable[Candidate]) -> Candidate:
    """So many times the sum of the terms."""
    terms = list(terms)
    words = " + ".join(text for text, _ in terms)
    if len(terms) > 1 or " / " in words:
        words = f"({words})"
    return f"{count} {what} x {words}", count * sum(value for _, value in terms)


def together(*terms: Candidate) -> Candidate:
    """One after another."""
    return " + ".join(text for text, _ in terms), sum(value for _, value in terms)
