"""What a program does with its buffers, read off its steps: from that follows what may be changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpusim.scenario import paths
from gpusim.scenario.paths import TreePath
from gpusim.scenario.schema import Process, Scenario
from gpusim.scenario.step_reader import nested_steps
from gpusim.workload.steps import Step
from gpusim.workload.steps.files import FileBatch, FileTransfer
from gpusim.workload.steps.launch import Launch
from gpusim.workload.steps.memset import Memset

#: verbs that work with memory of any kind; others hold their buffer to the allocator that it has
_ANY_MEMORY = frozenset({"host_touch", "launch", "memcpy", "memcpy_batch", "memset", "alloc", "free"})
#: verbs whose knobs go away with an allocator that knows them not
ONLY_SVM = frozenset({"prefetch", "advise"})


@dataclass(frozen=True, slots=True)
class Site:
    """A step that is executed, and where it stands in the tree. `outer` is the outermost loop around it, or itself."""

    path: TreePath
    step: Step
    raw: Mapping[str, Any]  # its arguments as written, placeholders in them
    outer: TreePath
    forked: bool

    @property
    def looped(self) -> bool:
        """Is it inside a loop?"""
        return self.outer != self.path

    @property
    def args(self) -> TreePath:
        """The place of its arguments."""
        return (*self.path, self.step.verb)


@dataclass(slots=True)
class Use:
    """What is done with one buffer."""

    sites: list[Site] = field(default_factory=list)
    launches: list[Site] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)  # as written: of launches and memsets
    atomic: bool = False
    executed: bool = False

    @property
    def verbs(self) -> set[str]:
        return {site.step.verb for site in self.sites}

    @property
    def allocated_by(self) -> Site | None:
        """The `alloc` step, where there is one."""
        return next((site for site in self.sites if site.step.verb == "alloc"), None)

    @property
    def fixed(self) -> str | None:
        """The verb that ties the buffer to its allocator, if one does."""
        tied = self.verbs - _ANY_MEMORY - ONLY_SVM
        return min(tied) if tied else "fork" if any(site.forked for site in self.sites) else None


@dataclass(slots=True)
class Program:
    """One entry of `processes`. What differs between its ranks is taken from the first."""

    index: int
    process: Process
    raw: Mapping[str, Any]
    sites: list[Site]
    all_sites: list[Site]  # also steps that `when` leaves out
    uses: dict[str, Use]

    @property
    def name(self) -> str:
        return self.process.name

    @property
    def place(self) -> TreePath:
        return ("processes", self.index)

    def label(self, site: Site) -> str:
        """A step's name, or its path where the process has several of that name."""
        same = [one for one in self.all_sites if one.step.name == site.step.name]
        if len(same) == 1:
            return f"{self.name}.{site.step.name}"
        inside: Sequence[str | int] = site.path[2:]
        shown = paths.show(self.raw, tuple(inside))
        return f"{self.name}.{shown.removeprefix('threads.')}"


def programs(scenario: Scenario, tree: Mapping[str, Any]) -> list[Program]:
    """The programs of a scenario; `tree` is what it was built from."""
    first = {process.name: process for process in reversed(scenario.processes)}
    found = []
    for index, raw in enumerate(tree["processes"]):
        process = first[str(raw["name"])]
        every = [
            site
            for thread, steps in process.threads.items()
            for site in _walk(steps, raw["threads"][thread], ("processes", index, "threads", thread))
        ]
        off = [site.path for site in every if not site.step.when]
        sites = [site for site in every if not any(site.path[: len(path)] == path for path in off)]
        found.append(Program(index, process, raw, sites, every, _uses(process, sites)))
    return found


def _walk(
    steps: Sequence[Step],
    raws: Sequence[Any],
    place: TreePath,
    outer: TreePath | None = None,
    forked: bool = False,
) -> Iterator[Site]:
    for number, (step, raw) in enumerate(zip(steps, raws, strict=True)):
        path = (*place, number)
        args = raw.get(step.verb) or {}
        yield Site(path, step, args, outer or path, forked)
        around = outer or (path if step.verb == "repeat" else None)
        child = forked or step.verb == "fork"
        for key, depth in nested_steps(type(step.args)).items():
            inner = getattr(step.args, key)
            if not inner:
                continue
            if depth == 1:
                yield from _walk(inner, args[key], (*path, step.verb, key), around, child)
                continue
            for branch, some in enumerate(inner):
                yield from _walk(some, args[key][branch], (*path, step.verb, key, branch), around, child)


def _uses(process: Process, sites: Sequence[Site]) -> dict[str, Use]:
    found = {name: Use() for name in process.buffers}
    for site in sites:
        args = site.step.args
        named = set(args.buffers().values())
        if isinstance(args, FileTransfer | FileBatch):
            named.add(args.buffer)
        for name in named & set(found):
            use = found[name]
            use.sites.append(site)
            if isinstance(args, Launch):
                use.launches.append(site)
                use.atomic |= name in args.atomics
                use.executed |= name in args.executes
            if isinstance(args, Launch | Memset):
                use.gpus.append(str(site.raw.get("gpu", args.gpu)))
    return found
