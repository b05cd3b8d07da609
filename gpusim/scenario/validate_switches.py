"""Driver switches that a scenario sets and that its machine, or another switch, would ignore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpusim.driver.switches import SUPPORTED, Apu, Dedup
from gpusim.scenario.mistakes import Mistakes
from gpusim.scenario.resolve import ResolvedSystem, preset_switches
from gpusim.scenario.schema import Driver

#: what decides about retry faults, which an APU with ATS does not have
_OF_RETRY_FAULTS = ("dedup", "ack", "replay", "service", "unit", "recent_skip", "throttle")


def check_switches(driver: Driver, machine: ResolvedSystem, mistakes: Mistakes) -> None:
    """Report each switch that differs from its preset without any effect."""
    usual = preset_switches(driver)
    changed = {
        name: str(value)
        for name in SUPPORTED
        if (value := getattr(driver, name)) is not None and value != usual.get(name)
    }
    if not changed:
        return
    ignored = dict(_ignored(changed, machine.driver["switches"], machine))
    for name, (why, legal) in ignored.items():
        mistakes.report(
            ("driver", name), f"{why} would ignore this key", read=changed[name], legal=legal, key=True
        )


def _ignored(
    changed: dict[str, str], switches: dict[str, Any], machine: ResolvedSystem
) -> Iterator[tuple[str, tuple[str, str]]]:
    """(switch, (who would ignore it, what is legal))."""
    with_ats = [bool((tree.get("apu") or {}).get("ats")) for tree in machine.gpus]
    if switches.get("dedup") == Dedup.FILTER and "ack" in changed:
        yield "ack", ("the software filter, which has no slots to free,", "with dedup: cam or address_vmid")
    if switches.get("apu") != Apu.ATS_PRI:
        return
    if "apu" in changed and not any(with_ats):
        yield "apu", ("a node without an APU that has an ATC", "retry_hmm, or a node such as mi300a")
    if with_ats and all(with_ats):
        for name in _OF_RETRY_FAULTS:
            if name in changed:
                yield name, ("apu: ats_pri, which has no retry faults,", "with apu: retry_hmm")
