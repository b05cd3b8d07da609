"""Random small programs, for properties that hold whatever a program does.

A step is drawn as two numbers, its kind and a code; `Maker` reads the code digit by digit, each digit a choice. That
is much faster than strategies that depend on each other, and shrinks towards the first choice of everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.programs import KIB, MIB

Choice = TypeVar("Choice")
SVM = ("malloc", "hipMallocManaged")
ALLOCATORS = (*SVM, "hipMalloc", "hipHostMalloc")
TEMPORARY = "t"
#: pages, parts of a granule, whole granules, odd ends
SIZES = (4 * KIB, 100 * KIB, 1 * MIB, 2 * MIB, 3 * MIB, 4 * MIB + 4 * KIB, 5000 * KIB)
KINDS = (
    "launch",
    "launch",
    "prefetch",
    "prefetch",
    "touch",
    "memcpy",
    "memset",
    "synchronize",
    "sleep",
    "event",
    "renew",
    "repeat",
    "parallel",
)
_PATTERNS = ("stream", "stream", "stencil", "random", "strided", "zipf", "tiled", "pointer_chase")
_LEAVES = KINDS.index("repeat")

_codes = st.integers(0, 2**24 - 1)
_leaf = st.tuples(st.integers(0, _LEAVES - 1), _codes)
_inner = st.lists(_leaf, min_size=1, max_size=3)
_step = st.tuples(st.integers(0, len(KINDS) - 1), _codes, _inner, _inner)
_drawn = st.tuples(
    st.lists(_codes, min_size=1, max_size=3),  # buffers
    _codes,  # the temporary buffer
    st.lists(_codes, min_size=1, max_size=2),  # kernels
    st.lists(st.lists(_step, min_size=1, max_size=6), min_size=1, max_size=2),  # threads
    st.integers(0, 3),  # seed
)


def programs(
    *,
    xnack: bool = True,
    gpus: int = 1,
    frees: bool = True,
    copies_of_svm: bool = True,
    streams_only: bool = False,
) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments for `tests.programs.scenario`: one or two threads of a few steps over one to three buffers.

    `frees` allows steps that allocate and free, `copies_of_svm` copies of memory that migrates; with `streams_only`
    all kernels stream, so that what they move can be said beforehand.
    """

    def build(drawn: Any) -> dict[str, Any]:
        codes, temporary, kernels, threads, seed = drawn
        buffers = dict(zip("xyz", (_buffer(code) for code in codes), strict=False))
        specs = {f"k{number}": _kernel(Digits(code), streams_only) for number, code in enumerate(kernels)}
        maker = Maker(buffers, list(specs), gpus, frees=frees, copies_of_svm=copies_of_svm)
        declared = buffers | {TEMPORARY: _buffer(temporary)}
        return {
            "buffers": {name: f"{size}B {allocator}" for name, (size, allocator) in declared.items()},
            "kernels": specs,
            "threads": {
                name: [maker.step(*step) for step in steps]
                for name, steps in zip(("one", "two"), threads, strict=False)
            },
            "gpus": gpus,
            "xnack": xnack,
            "seed": seed,
            "limit": "20s",
        }

    return _drawn.map(build)


class Digits:
    """A number as choices, one digit each."""

    def __init__(self, code: int) -> None:
        self._code = code

    def pick(self, options: Sequence[Choice]) -> Choice:
        self._code, digit = divmod(self._code, len(options))
        return options[digit]


def _buffer(code: int) -> tuple[int, str]:
    digits = Digits(code)
    return digits.pick(SIZES), digits.pick(ALLOCATORS)


def _kernel(digits: Digits, streams_only: bool) -> dict[str, Any]:
    pattern = "stream" if streams_only else digits.pick(_PATTERNS)
    kernel: dict[str, Any] = {
        "pattern": pattern,
        "mapping": digits.pick(["linear", "blocked", "grid_stride"]),
        "step": digits.pick(["64KiB", "256KiB", "1MiB"]),
    }
    if pattern == "stencil":
        kernel["points"] = digits.pick([3, 5])
    elif pattern == "strided":
        kernel["stride"] = digits.pick(["64B", "256B"])
    elif pattern in ("random", "zipf"):
        kernel["bytes_per_lane"] = "4KiB"
    elif pattern == "tiled":
        del kernel["step"]
        kernel["tile"] = digits.pick([64, 256])
    elif pattern == "pointer_chase":
        kernel["accesses"] = 200
    extra: list[dict[str, Any]] = [
        {},
        {"passes": 2},
        {"passes": 3},
        {"workgroups": 1},
        {"workgroups": 4},
        {"duration": "20us"},
        {"duration": "300us"},
        {"vgprs": 512},
    ]
    return kernel | digits.pick(extra)


class Maker:
    """Steps of a program over given buffers, from numbers. What a program cannot have becomes a launch."""

    def __init__(
        self,
        buffers: dict[str, tuple[int, str]],
        kernels: list[str],
        gpus: int,
        *,
        frees: bool,
        copies_of_svm: bool,
    ) -> None:
        self.buffers = buffers
        self.names = list(buffers)
        self.kernels = kernels
        self.frees = frees
        self.svm = [name for name, (_, allocator) in buffers.items() if allocator in SVM]
        self.copied = [name for name in buffers if copies_of_svm or name not in self.svm]
        self.touchable = [name for name, (_, allocator) in buffers.items() if allocator != "hipMalloc"]
        self.gpus = [f"gpu{number}" for number in range(gpus)]

    def step(self, kind: int, code: int, one: Any = (), two: Any = ()) -> dict[str, Any]:
        digits = Digits(code)
        match KINDS[kind]:
            case "repeat":
                return {"repeat": {"times": 2, "steps": [self.step(*inner) for inner in one]}}
            case "parallel":
                branches = [[self.step(*inner) for inner in branch] for branch in (one, two)]
                return {"parallel": {"branches": branches}}
            case "prefetch" if self.svm:
                return self.prefetch(digits)
            case "touch" if self.touchable:
                return self.touch(digits)
            case "memcpy" if self.copied:
                args = {"dst": digits.pick(self.copied), "src": digits.pick(self.copied)}
                return self.on(digits, memcpy={**args, "async": digits.pick([False, True])})
            case "memset":
                args = {"buffer": digits.pick(self.names)}
                return self.on(digits, memset={**args, "async": digits.pick([False, True])})
            case "synchronize":
                return {"synchronize": {}}
            case "sleep":
                return {"sleep": {"duration": digits.pick(["1us", "100us", "3ms"])}}
            case "event":
                return self.event(digits)
            case "renew" if self.frees:
                return self.renew(digits)
            case _:
                return self.launch(digits)

    def launch(self, digits: Digits) -> dict[str, Any]:
        some = [[], *([name] for name in self.names), self.names]
        args = {
            "kernel": digits.pick(self.kernels),
            "reads": digits.pick(some),
            "writes": digits.pick(some[1:]),
            "wait": digits.pick([True, False]),
            "gpu": digits.pick(self.gpus),
        }
        if any(self.buffers[name][1] == "hipMalloc" for name in {*args["reads"], *args["writes"]}):
            args["gpu"] = "gpu0"
        return self.on(digits, launch=args)

    def touch(self, digits: Digits) -> dict[str, Any]:
        name = digits.pick(self.touchable)
        access = digits.pick(["write", "read"])
        return {"host_touch": {"buffer": name, "access": access, **self.part(digits, name)}}

    def prefetch(self, digits: Digits) -> dict[str, Any]:
        name = digits.pick(self.svm)
        args = {"buffer": name, "to": digits.pick([*self.gpus, *self.gpus, "cpu"])}
        return self.on(
            digits, prefetch={**args, "wait": digits.pick([True, False]), **self.part(digits, name)}
        )

    def part(self, digits: Digits, name: str) -> dict[str, str]:
        """The whole buffer, its first or second half, or a page in the middle."""
        half = self.buffers[name][0] // (4 * KIB) // 2 * 4 * KIB
        if half == 0:
            return {}
        first, second = {"size": f"{half}B"}, {"offset": f"{half}B"}
        return digits.pick([{}, first, second, second | {"size": "4KiB"}])

    def renew(self, digits: Digits) -> dict[str, Any]:
        """Allocate, use and free a buffer of its own, twice."""
        launch = {"kernel": digits.pick(self.kernels), "writes": [TEMPORARY], "wait": True}
        use: list[list[dict[str, Any]]] = [[], [{"memset": {"buffer": TEMPORARY}}]]
        steps = [
            {"alloc": {"buffer": TEMPORARY}},
            *digits.pick(use),
            {"launch": launch},
            {"free": {"buffer": TEMPORARY}},
        ]
        return {"repeat": {"times": 2, "steps": steps}}

    def event(self, digits: Digits) -> dict[str, Any]:
        """Work in one stream, for which another one or the thread waits."""
        stream = digits.pick([None, "a", "b"])
        work = on(stream, memset={"buffer": digits.pick(self.names), "async": True})
        steps = [work, on(stream, record={"event": "e"}), self.on(digits, wait={"event": "e"})]
        return {"repeat": {"times": 1, "steps": steps}}

    @staticmethod
    def on(digits: Digits, **step: Any) -> dict[str, Any]:
        return on(digits.pick([None, "a", "b"]), **step)


def on(stream: str | None, **step: Any) -> dict[str, Any]:
    return step if stream is None else {"stream": stream, **step}
