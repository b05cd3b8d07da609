"""Checks the numbers of a machine against its parts' specs, before anything is built from them.

A mistake is laid to the override that made it, or else to the node's profile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpusim import quantity
from gpusim.driver.driver_spec import DriverSpec
from gpusim.errors import InputError, Problem
from gpusim.hardware.drive_spec import DriveSpec
from gpusim.hardware.fabric_spec import FabricSpec
from gpusim.hardware.gpu_spec import GpuSpec, LinkSpec
from gpusim.hardware.xgmi import XgmiSpec
from gpusim.linux.host_spec import HostSpec
from gpusim.linux.stack_spec import StackSpec
from gpusim.scenario import profiles
from gpusim.scenario.resolve import ALIASES, ResolvedSystem, Tree, build
from gpusim.spec import Spec

#: bytes per second that the engine's clock of picoseconds can still tell apart
MOST_RATE = 1e15


def check_machine(machine: ResolvedSystem, overrides: Iterable[str]) -> list[Problem]:
    """Every number that no machine can have. Paths begin with `overrides.` or are `system.node`."""
    written = list(overrides)
    found = [_placed(problem, written) for problem in _problems(machine)]
    return list(dict.fromkeys(found))  # equal GPUs repeat each other


def _problems(machine: ResolvedSystem) -> Iterator[Problem]:
    parts: list[tuple[type[Spec], Tree, str]] = [
        (HostSpec, machine.cpu, "cpu"),
        (DriverSpec, machine.driver, "driver"),
        *((GpuSpec, tree, f"gpu[{index}]") for index, tree in enumerate(machine.gpus)),
        *((XgmiSpec, tree, "node.xgmi") for tree in [machine.node.get("xgmi")] if tree),
        *((DriveSpec, tree, f"drive.{name}") for name, tree in machine.drives.items()),
        *((StackSpec, tree, "node.stacks") for tree in machine.node.get("stacks") or ()),
    ]
    for model, tree, root in parts:
        try:
            build(model, tree, root)
        except InputError as error:
            yield from error.problems
        yield from _rates(tree, root)
    for index, tree in enumerate(machine.links):
        root = f"link[{index}]"
        yield from _rates(tree, root)
        try:
            link = build(LinkSpec, tree, root)
        except InputError as error:
            yield from error.problems
            continue
        yield from _coupled(link, root)
    yield from _fabric(machine)


def _fabric(machine: ResolvedSystem) -> Iterator[Problem]:
    """Members of stacks that do not exist, and a fabric that cannot be."""
    known = list(machine.drives)
    for stack in machine.node.get("stacks") or ():
        for member in stack.get("members") or ():
            if member not in known:
                legal = ", ".join(known) or "there is none"
                yield Problem(
                    "no such drive or stack before", path="node.stacks", read=repr(member), legal=legal
                )
        known.append(str(stack.get("name")))
    tree = machine.node.get("fabric")
    if tree:
        try:
            build(FabricSpec, tree, "node.fabric")
        except InputError as error:
            yield from error.problems
    for name, tree in machine.drives.items():
        try:
            drive = build(DriveSpec, tree, f"drive.{name}")
        except InputError:
            continue
        rates = (drive.read.bandwidth, drive.write.bandwidth)
        if drive.coupling * max(rates) >= min(rates):
            yield Problem(
                "the other direction at full use would leave nothing of one",
                path=f"drive.{name}.coupling",
                read=str(drive.coupling),
                legal=f"below {min(rates) / max(rates):.3g}, the slower over the faster direction",
            )


def _rates(tree: Mapping[str, Any], root: str) -> Iterator[Problem]:
    for path, value in profiles.walk(tree):
        number = profiles.amount(value)
        if number is not None and number[1] == "rate" and number[0] >= MOST_RATE:
            place = ".".join(map(str, (root, *path)))
            yield Problem("is too fast to simulate", path=place, read=str(value), legal="below 1PB/s")


def _coupled(link: LinkSpec, root: str) -> Iterator[Problem]:
    for slow, name, fast in ((link.h2d, "h2d", link.d2h), (link.d2h, "d2h", link.h2d)):
        least = link.coupling * fast
        if slow <= least:
            yield Problem(
                "the other direction at full use would leave nothing of it",
                path=f"{root}.{name}",
                read=quantity.format_rate(slow),
                legal=f"above {quantity.format_rate(least)} (coupling times the other direction's rate)",
            )


def _placed(problem: Problem, overrides: Iterable[str]) -> Problem:
    """The problem at the override that set the number (or, failing that, one beside it)."""
    whole = _plain(problem.path)
    root = whole.partition(".")[0]
    near = None
    for written in overrides:
        path = _plain(ALIASES.get(written, written))
        if path == whole or path.startswith(f"{whole}.") or whole.startswith(f"{path}."):
            return replace(problem, path=f"overrides.{written}")
        if path.partition(".")[0] == root and root in ("link", "drive"):  # bounded by each other
            near = written
    message = f"{whole}: {problem.message}"
    return replace(problem, path=f"overrides.{near}" if near else "system.node", message=message)


def _plain(path: str) -> str:
    """`gpu[1].hbm.size` -> `gpu.hbm.size`."""
    return re.sub(r"^(gpu|link)\[\d+\]", r"\1", path)
