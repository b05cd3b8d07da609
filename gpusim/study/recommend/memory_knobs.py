"""The knobs of paging: XNACK, allocators, prefetch, advice and the migration granule."""

from __future__ import annotations

from collections.abc import Iterator

from gpusim.driver.switches import Unit
from gpusim.quantity import KIB, MIB, write_size
from gpusim.runtime.advice import Advice
from gpusim.scenario.words import Allocator
from gpusim.study.recommend.knob import NONE, Assign, Edit, Insert, Knob, Option
from gpusim.study.recommend.machine import MachineFacts
from gpusim.study.recommend.program import Program, Site, Use
from gpusim.study.recommend.space import Capacity, Found
from gpusim.workload.kernel import KernelSpec, XnackMode
from gpusim.workload.steps.advise import Advise
from gpusim.workload.steps.launch import Launch
from gpusim.workload.steps.svm_attributes import SvmAttributes

#: the allocators that a program may choose between, without a change of what it does
_CHOICES = (
    Allocator.HIP_MALLOC_MANAGED,
    Allocator.MALLOC,
    Allocator.HIP_HOST_MALLOC,
    Allocator.HIP_MALLOC,
)
_SVM = frozenset({Allocator.HIP_MALLOC_MANAGED, Allocator.MALLOC, Allocator.MANAGED_GLOBAL})
_HOST_COPIES = (Allocator.MALLOC, Allocator.HIP_HOST_MALLOC)
_COPIES = frozenset({"memcpy", "memcpy_batch"})
_GRANULES = (64 * KIB, 512 * KIB, 2 * MIB, 16 * MIB, 128 * MIB)
#: what the driver acts on, and their opposites; read-mostly is stored only, coarse grain is about coherence
_ADVICE = {
    Advice.SET_PREFERRED_LOCATION: "preferred location",
    Advice.SET_ACCESSED_BY: "accessed by",
}
_REPLACEABLE = frozenset(
    {
        *_ADVICE,
        Advice.UNSET_PREFERRED_LOCATION,
        Advice.UNSET_ACCESSED_BY,
        Advice.SET_READ_MOSTLY,
        Advice.UNSET_READ_MOSTLY,
    }
)


class MemoryKnobs:
    """Finds the knobs of one program."""

    def __init__(
        self, program: Program, machine: MachineFacts, kernels: dict[str, KernelSpec], found: Found
    ) -> None:
        self.program = program
        self.machine = machine
        self.kernels = kernels
        self.found = found
        self._xnack: str | None = None  # the name of that knob
        #: buffers that may lie in SVM ranges -> where that depends on their allocator
        self.svm: dict[str, tuple[tuple[str, frozenset[str]], ...]] = {}

    def find(self) -> None:
        """Add what there is to `found`."""
        self._add_xnack()
        for name, use in self.program.uses.items():
            self._add_allocator(name, use)
        for name, active in self.svm.items():
            use = self.program.uses[name]
            self._add_prefetch(name, use, active)
            self._add_advice(name, use, active)
        self._add_granules()

    # -- XNACK -------------------------------------------------------------------------------------------------------

    @property
    def _mode(self) -> bool:
        return self.machine.xnack(self.program.process.env)

    def _modes(self) -> list[bool]:
        """XNACK modes that machine and kernels allow."""
        launched = {
            site.step.args.kernel for site in self.program.sites if isinstance(site.step.args, Launch)
        }
        built = {self.kernels[name].xnack for name in launched}
        modes = [False] if XnackMode.ON not in built else []
        if XnackMode.OFF not in built and self.machine.refuses_xnack(self.program.process.env) is None:
            modes.append(True)
        return modes

    def _add_xnack(self) -> None:
        program = self.program
        what = f"XNACK of {program.name}"
        if not any(isinstance(site.step.args, Launch) for site in program.sites):
            return
        if any(site.step.verb == "set_xnack" for site in program.sites):
            self.found.leave("xnack", what, "the program sets it itself")
            return
        why = self.machine.refuses_xnack(program.process.env)
        modes = self._modes()
        if len(modes) < 2 or self._mode not in modes:
            words = "on" if modes == [True] else "off"
            self.found.leave("xnack", what, why or f"a kernel is built for XNACK {words} only")
            return
        place = (*program.place, "env", "HSA_XNACK")
        options = [
            Option("on" if mode else "off", () if mode == self._mode else (Assign(place, str(int(mode))),))
            for mode in modes
        ]
        self.found.knobs.append(Knob(what, "xnack", tuple(options), own=modes.index(self._mode)))
        self._xnack = what

    # -- allocators --------------------------------------------------------------------------------------------------

    def _add_allocator(self, name: str, use: Use) -> None:
        program = self.program
        own = program.process.buffers[name].allocator
        what = f"allocator of {program.name}.{name}"
        on_gpu = bool(use.launches) or "memset" in use.verbs
        pinned = "host_register" in use.verbs
        if not on_gpu and not use.verbs & _COPIES:
            return
        allowed = self._allowed(name, use, own)
        if isinstance(allowed, str):
            self.found.leave("allocator", what, allowed)
            allowed = [own]
        if len(allowed) > 1:
            options = tuple(
                Option(other.value, () if other is own else tuple(self._reallocated(name, use, other)))
                for other in allowed
            )
            self.found.knobs.append(Knob(what, "allocator", options, own=allowed.index(own)))
            self._limit(name, use, what)
            if on_gpu and self._xnack is not None and Allocator.MALLOC in allowed:
                self.found.forbidden.append({self._xnack: "off", what: Allocator.MALLOC.value})
        elif on_gpu and own is Allocator.MALLOC and self._xnack is not None and not pinned:
            self.found.forbidden.append({self._xnack: "off"})
        svm = frozenset(other.value for other in allowed if other in _SVM)
        if svm and use.launches and not pinned:
            self.svm[name] = ((what, svm),) if len(allowed) > 1 else ()

    def _allowed(self, name: str, use: Use, own: Allocator) -> list[Allocator] | str:
        """The allocators in the order of `_CHOICES`, or why there is no choice."""
        if own not in _CHOICES:
            return f"{own} is part of the program"
        if use.fixed is not None:
            return f"step {use.fixed} ties it to {own}"
        if use.executed:
            return "it holds code"
        if use.verbs & _COPIES:  # a copy has its two sides: where the data has to be is not for us to say
            if own not in _HOST_COPIES:
                return f"copies tie it to {own}"
            allowed = set(_HOST_COPIES)
            if not (use.launches or "memset" in use.verbs):
                return [other for other in _CHOICES if other in allowed]
        else:
            allowed = set(_CHOICES)
        size = self.program.process.buffers[name].size
        if "host_touch" in use.verbs or len(set(use.gpus)) != 1 or size > self._vram(use.gpus):
            allowed.discard(Allocator.HIP_MALLOC)  # the CPU is promised no access to it
        if use.atomic or size > self.machine.pinned_bytes:
            allowed.discard(Allocator.HIP_HOST_MALLOC)  # atomics of the GPU may not reach host memory
        if self._xnack is None and not self._mode:
            allowed.discard(Allocator.MALLOC)  # no GPU reaches it without retry faults
        return [other for other in _CHOICES if other in allowed or other is own]

    def _vram(self, gpus: list[str]) -> int:
        seen = self.machine.seen(self.program.process.env)
        number = gpus[0].removeprefix("gpu")
        if number.isdigit() and int(number) < len(seen):
            return seen[int(number)].hbm.size
        return min((gpu.hbm.size for gpu in seen), default=0)

    def _reallocated(self, name: str, use: Use, other: Allocator) -> Iterator[Edit]:
        place = (*self.program.place, "buffers", name)
        raw = self.program.raw["buffers"][name]
        yield Assign((*place, "allocator"), other.value)
        if other is Allocator.HIP_MALLOC:
            yield Assign((*place, "gpu"), use.gpus[0])
            yield from (Assign((*place, key), None) for key in ("huge_pages", "numa") if key in raw)
        elif "gpu" in raw:
            yield Assign((*place, "gpu"), None)

    def _limit(self, name: str, use: Use, what: str) -> None:
        """Buffers that live at once share the VRAM, and what may be pinned."""
        if use.allocated_by is not None:
            return
        size = self.program.process.buffers[name].size
        if len(set(use.gpus)) == 1:
            key = f"VRAM of {use.gpus[0]} in {self.program.name}"
            capacity = self.found.capacities.setdefault(key, Capacity(self._vram(use.gpus)))
            capacity.demands[what, Allocator.HIP_MALLOC.value] = size
        pinned = self.found.capacities.setdefault("pinned memory", Capacity(self.machine.pinned_bytes))
        pinned.demands[what, Allocator.HIP_HOST_MALLOC.value] = size * self.program.process.count

    # -- prefetch ----------------------------------------------------------------------------------------------------

    def _add_prefetch(self, name: str, use: Use, active: tuple[tuple[str, frozenset[str]], ...]) -> None:
        program = self.program
        present = [
            site
            for site in program.all_sites
            if site.step.verb == "prefetch" and name in site.step.args.buffers().values() and not site.forked
        ]
        for site in present:
            when = (*site.path, "when")
            own = int(site.step.when)
            options = (
                Option("off", (Assign(when, False),) if own else ()),
                Option("on", () if own else (Assign(when, True),)),
            )
            what = f"prefetch step {program.label(site)}"
            self.found.knobs.append(Knob(what, "prefetch", options, own=own, active=active))
        first = next((site for site in use.launches if not site.forked), None)
        if present or first is None:
            return
        step: dict[str, object] = {"prefetch": {"buffer": name, "to": first.raw.get("gpu", "gpu0")}}
        if first.step.stream is not None:
            step["stream"] = first.step.stream
        label = program.label(first).removeprefix(f"{program.name}.")
        options_made = [Option(NONE)]
        if use.allocated_by is None or not first.looped:
            options_made.append(Option(f"before {label}", (Insert(first.outer, step, order=1),)))
        if first.looped:
            again = f"before {label}, each round"
            options_made.append(Option(again, (Insert(first.path, step, order=1),)))
        what = f"prefetch of {program.name}.{name}"
        self.found.knobs.append(Knob(what, "prefetch", tuple(options_made), active=active))

    # -- advice ------------------------------------------------------------------------------------------------------

    def _add_advice(self, name: str, use: Use, active: tuple[tuple[str, frozenset[str]], ...]) -> None:
        present = [
            (site, site.step.args)
            for site in self.program.all_sites
            if isinstance(site.step.args, Advise) and site.step.args.buffer == name and not site.forked
        ]
        for site, args in present:
            if args.advice in _REPLACEABLE:
                self.found.knobs.append(self._changed_advice(site, args, active))
        first = next((site for site in use.launches if not site.forked), None)
        if present or first is None:
            return
        gpu = str(first.raw.get("gpu", "gpu0"))
        before = use.allocated_by
        if before is not None:
            place = (*before.path[:-1], int(before.path[-1]) + 1)
        else:
            place = next(site for site in use.sites if not site.forked).outer
        options = [Option(NONE)]
        for advice, device in (
            (Advice.SET_PREFERRED_LOCATION, gpu),
            (Advice.SET_PREFERRED_LOCATION, "cpu"),
            (Advice.SET_ACCESSED_BY, gpu),
        ):
            step = {"advise": {"buffer": name, "advice": advice.value, "device": device}}
            options.append(Option(f"{_ADVICE[advice]} {device}", (Insert(place, step),)))
        what = f"advice for {self.program.name}.{name}"
        self.found.knobs.append(Knob(what, "advice", tuple(options), active=active))

    def _changed_advice(
        self, site: Site, args: Advise, active: tuple[tuple[str, frozenset[str]], ...]
    ) -> Knob:
        when, advice = (*site.path, "when"), (*site.args, "advice")
        on = () if site.step.when else (Assign(when, True),)
        options = [Option(NONE, (Assign(when, False),) if site.step.when else ())]
        own = 0
        words = {**{one: f"{text} {args.device}" for one, text in _ADVICE.items()}}
        words.setdefault(args.advice, args.advice.value.replace("_", " "))
        for other, label in words.items():
            if other is args.advice and site.step.when:
                own = len(options)
                options.append(Option(label))
            else:
                options.append(Option(label, (*on, Assign(advice, other.value))))
        what = f"advice of step {self.program.label(site)}"
        return Knob(what, "advice", tuple(options), own=own, active=active)

    # -- granules ----------------------------------------------------------------------------------------------------

    def _add_granules(self) -> None:
        """Those that the program sets itself; the default is for all programs together."""
        if self.machine.driver.switches.unit is not Unit.GRANULE:
            return
        for site in self.program.sites:
            args = site.step.args
            if isinstance(args, SvmAttributes) and args.granularity is not None and args.buffer in self.svm:
                what = f"granularity of step {self.program.label(site)}"
                place = (*site.args, "granularity")
                active = self.svm[args.buffer]
                self.found.knobs.append(granules(what, place, args.granularity, self.largest, active))

    @property
    def largest(self) -> int:
        """Bytes of the largest buffer in SVM ranges."""
        return max((self.program.process.buffers[name].size for name in self.svm), default=0)


def granules(
    what: str,
    place: tuple[str | int, ...],
    own: int,
    most: int,
    active: tuple[tuple[str, frozenset[str]], ...],
) -> Knob:
    """A migration granule at `place`; one that is larger than every buffer does no more than the next smaller."""
    whole = 1 << (most - 1).bit_length()
    sizes = sorted({own, *(size for size in _GRANULES if size <= whole)})
    options = tuple(
        Option(write_size(size), () if size == own else (Assign(place, write_size(size)),)) for size in sizes
    )
    index = sizes.index(own)
    return Knob(what, "granularity", options, own=index, idle=index, active=active)
