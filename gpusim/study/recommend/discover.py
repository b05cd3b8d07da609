"""The knobs of a scenario: which there are, and which values its machine and its programs allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gpusim.driver.switches import Unit
from gpusim.errors import InputError, Problem
from gpusim.scenario import paths
from gpusim.scenario.paths import listed, nearest
from gpusim.scenario.placeholders import written
from gpusim.scenario.schema import Scenario
from gpusim.study.recommend.file_knobs import FileKnobs
from gpusim.study.recommend.knob import GROUPS, Assign, Knob, Option
from gpusim.study.recommend.machine import MachineFacts
from gpusim.study.recommend.memory_knobs import MemoryKnobs, granules
from gpusim.study.recommend.program import programs
from gpusim.study.recommend.space import Found, Space

_NO_SETTINGS = ("seed", "version", "name", "question", "sweep", "expect")


def discover(
    scenario: Scenario,
    *,
    over: Mapping[str, Sequence[Any]] | None = None,
    only: Collection[str] | None = None,
) -> Space:
    """The space of a scenario. `over` are settings of the user's own (path -> values), `only` names groups of knobs.

    Raises InputError for a group that there is not, and for a path or a value that is not legal.
    """
    unknown = [name for name in only or () if name not in GROUPS]
    if unknown:
        legal = listed(GROUPS, 20)
        raise InputError(
            [
                Problem(
                    "there is no such group of settings",
                    read=name,
                    legal=legal,
                    nearest=nearest(name, GROUPS),
                )
                for name in unknown
            ]
        )
    tree = scenario.raw
    found = Found()
    machine = MachineFacts.of(scenario)
    memory = []
    for program in programs(scenario, tree):
        memory.append(MemoryKnobs(program, machine, dict(scenario.kernels), found))
        memory[-1].find()
        if program.process.files:
            FileKnobs(scenario, program, machine, found).find()
    _default_granules(memory, machine, found)
    own = [_named(scenario, tree, machine, path, values) for path, values in (over or {}).items()]
    taken = {place for knob in own for place in knob.places}
    found.knobs = [
        knob
        for knob in found.knobs
        if (only is None or knob.group in only) and len(knob.options) > 1 and not knob.places & taken
    ] + own
    found.left_alone = {
        what: said for what, said in found.left_alone.items() if only is None or said[0] in only
    }
    return Space(tree, found)


def _default_granules(memory: Sequence[MemoryKnobs], machine: MachineFacts, found: Found) -> None:
    """amdgpu.svm_default_granularity, which holds for all programs."""
    served = [one for one in memory if one.svm]
    if not served:
        return
    switch = machine.driver.switches.unit
    if switch is not Unit.GRANULE:
        found.leave("granularity", "granularity", f"this driver migrates by {switch}")
        return
    always = any(not active for one in served for active in one.svm.values())
    active = () if always else tuple(pair for one in served for two in one.svm.values() for pair in two)
    place = ("overrides", "driver.svm.default_granularity")
    own, most = machine.driver.svm.default_granularity, max(one.largest for one in served)
    found.knobs.append(granules("default granularity", place, own, most, active))


def check_root(path: str) -> None:
    """Raise InputError for what nobody can choose, such as the seed."""
    if path.partition(".")[0] in _NO_SETTINGS:
        legal = "a value that whoever runs the program can choose"
        raise InputError([Problem("is no setting", path=path, legal=legal)])


def _named(
    scenario: Scenario, tree: Mapping[str, Any], machine: MachineFacts, path: str, values: Sequence[Any]
) -> Knob:
    """A knob that the user names: what the scenario has, and the other values, all of them checked."""
    check_root(path)
    place = paths.find(tree, path)
    had = paths.get(tree, place)
    if isinstance(had, dict | list):
        raise InputError([Problem("is no single value", path=path, legal="the path of one value")])
    if place[-1] == "HSA_XNACK" and "1" in map(str, values):
        process = next(one for one in scenario.processes if one.name == tree["processes"][place[1]]["name"])
        why = machine.refuses_xnack(process.env)
        if why is not None:
            raise InputError([Problem(f"this machine cannot have it: {why}", path=path, read="1", legal="0")])
    own = Option("as it is" if had is None else written(had))
    options = [own]
    for value in values:
        scenario.with_(**{path: value}, sweep=None, expect=[])  # raises InputError where it is not legal
        if written(value) not in [option.label for option in options]:
            options.append(Option(written(value), (Assign(place, value),)))
    return Knob(path, "over", tuple(options))
