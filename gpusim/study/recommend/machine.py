"""What the machine of a scenario can do, as far as settings depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpusim.driver.driver_spec import DriverSpec
from gpusim.driver.memory_limit import SystemMemoryLimit
from gpusim.hardware.families import refusal
from gpusim.hardware.gpu_spec import GpuSpec
from gpusim.linux.host_spec import HostSpec
from gpusim.machine.visible import visible_devices
from gpusim.machine.xnack import xnack_at_start
from gpusim.scenario.resolve import build, resolve
from gpusim.scenario.schema import Scenario
from gpusim.spec import PAGE_BYTES


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The specs of the parts that settings are about."""

    gpus: tuple[GpuSpec, ...]
    driver: DriverSpec
    host: HostSpec

    @classmethod
    def of(cls, scenario: Scenario) -> MachineFacts:
        """The machine that a scenario names, its overrides in it."""
        found = resolve(scenario)
        return cls(
            tuple(build(GpuSpec, tree, f"gpu[{index}]") for index, tree in enumerate(found.gpus)),
            build(DriverSpec, found.driver, "driver"),
            build(HostSpec, found.cpu, "cpu"),
        )

    def seen(self, env: Mapping[str, str]) -> list[GpuSpec]:
        """The GPUs that a process with this environment sees, in its numbering."""
        return [self.gpus[index] for index in visible_devices(range(len(self.gpus)), env)]

    def refuses_xnack(self, env: Mapping[str, str]) -> str | None:
        """Why XNACK cannot be on in such a process; None if it can."""
        seen = self.seen(env)
        if not seen:
            return "the process sees no GPU"
        for number, gpu in enumerate(seen):
            why = refusal(f"gpu{number}", gpu.gfx, gpu.xnack, self.driver.noretry)
            if why is not None:
                return why
        return None

    def xnack(self, env: Mapping[str, str]) -> bool:
        """The mode that such a process starts with."""
        seen = [(f"gpu{number}", gpu) for number, gpu in enumerate(self.seen(env))]
        return xnack_at_start(env, seen, self.driver.noretry).enabled

    @property
    def pinned_bytes(self) -> int:
        """What KFD lets all processes pin."""
        return SystemMemoryLimit(self.host.memory).pages * PAGE_BYTES
