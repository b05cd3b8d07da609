"""What the language has and this version does not simulate yet: the one place where that is decided.

Driver switches say so themselves, beside their definitions. The page
`docs/reference/not-supported.md` is written from the lists whose names end in NOT_SUPPORTED_YET.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, get_args

from gpusim.driver.switches import PRESETS, PRESETS_SUPPORTED, SUPPORTED
from gpusim.scenario.mistakes import Mistakes
from gpusim.scenario.parts import Parts
from gpusim.scenario.schema import Driver

DRIVER_PRESETS_NOT_SUPPORTED_YET = tuple(preset for preset in PRESETS if preset not in PRESETS_SUPPORTED)
DRIVER_SWITCHES_NOT_SUPPORTED_YET = tuple(
    f"{switch}: {value}"
    for switch, simulated in SUPPORTED.items()
    for kind in get_args(Driver.model_fields[switch].annotation)
    if isinstance(kind, type) and issubclass(kind, StrEnum)
    for value in kind
    if value not in simulated
)


def features() -> Iterator[tuple[str, str]]:
    """(feature, where it is written) of everything on the list."""
    yield from ((preset, "driver preset") for preset in DRIVER_PRESETS_NOT_SUPPORTED_YET)
    yield from ((switch, "driver switch") for switch in DRIVER_SWITCHES_NOT_SUPPORTED_YET)


def check(parts: Parts, mistakes: Mistakes) -> None:
    """Report every use of what is on the list."""
    driver: Any = parts.tree.get("driver")
    if not isinstance(driver, dict):
        return
    preset = driver.get("preset")
    if preset in DRIVER_PRESETS_NOT_SUPPORTED_YET:
        mistakes.not_supported(("driver", "preset"), f"driver preset {preset}")
    for switch, value in driver.items():
        if f"{switch}: {value}" in DRIVER_SWITCHES_NOT_SUPPORTED_YET:
            mistakes.not_supported(("driver", switch), f"driver switch {switch}: {value}")
