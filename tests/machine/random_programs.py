"""Random small programs, for properties that hold whatever a program does."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.programs import KIB, MIB

SVM = ("malloc", "hipMallocManaged")
ALLOCATORS = (*SVM, "hipMalloc", "hipHostMalloc")
TEMPORARY = "t"
#: pages, parts of a granule, whole granules, odd ends
SIZES = (4 * KIB, 100 * KIB, 1 * MIB, 2 * MIB, 3 * MIB, 4 * MIB + 4 * KIB, 5000 * KIB)


@st.composite
def kernels(draw: st.DrawFn, streams_only: bool) -> dict[str, Any]:
    patterns = ["stream"] if streams_only else ["stream", "stream", "stencil", "random", "strided"]
    pattern = draw(st.sampled_from(patterns))
    kernel: dict[str, Any] = {
        "pattern": pattern,
        "mapping": draw(st.sampled_from(["linear", "blocked", "grid_stride"])),
        "step": draw(st.sampled_from(["64KiB", "256KiB", "1MiB"])),
    }
    if pattern == "stencil":
        kernel["points"] = draw(st.sampled_from([3, 5]))
    elif pattern == "strided":
        kernel["stride"] = draw(st.sampled_from(["64B", "256B"]))
    elif pattern == "random":
        kernel["bytes_per_lane"] = "4KiB"
    optional = {
        "passes": st.integers(2, 3),
        "workgroups": st.integers(1, 4),
        "duration": st.sampled_from(["20us", "300us"]),
        "vgprs": st.sampled_from([64, 512]),
    }
    for key in draw(st.lists(st.sampled_from(sorted(optional)), unique=True, max_size=1)):
        kernel[key] = draw(optional[key])
    return kernel


@st.composite
def programs(
    draw: st.DrawFn,
    *,
    xnack: bool = True,
    gpus: int = 1,
    frees: bool = True,
    copies_of_svm: bool = True,
    streams_only: bool = False,
) -> dict[str, Any]:
    """Arguments for `tests.programs.scenario`: one or two threads of a few steps over one to three buffers."""
    buffers = {
        name: (draw(st.sampled_from(SIZES)), draw(st.sampled_from(ALLOCATORS)))
        for name in "xyz"[: draw(st.integers(1, 3))]
    }
    temporary = f"{draw(st.sampled_from(SIZES))}B {draw(st.sampled_from(ALLOCATORS))}"
    count = draw(st.integers(1, 2))
    specs = {f"k{number}": draw(kernels(streams_only)) for number in range(count)}
    made = Maker(buffers, sorted(specs), gpus, frees=frees, copies_of_svm=copies_of_svm)
    threads = {
        name: draw(st.lists(made.step(), min_size=1, max_size=6))
        for name in ("one", "two")[: draw(st.integers(1, 2))]
    }
    return {
        "buffers": {name: f"{size}B {kind}" for name, (size, kind) in buffers.items()}
        | {TEMPORARY: temporary},
        "kernels": specs,
        "threads": threads,
        "gpus": gpus,
        "xnack": xnack,
        "seed": draw(st.integers(0, 3)),
        "limit": "20s",
    }


class Maker:
    """Strategies for the steps of a program over given buffers."""

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
        self.kernels = kernels
        self.frees = frees
        self.svm = [name for name, (_, allocator) in buffers.items() if allocator in SVM]
        self.copied = [name for name in buffers if copies_of_svm or name not in self.svm]
        self.touchable = [name for name, (_, allocator) in buffers.items() if allocator != "hipMalloc"]
        self.gpus = [f"gpu{number}" for number in range(gpus)]
        self.streams = st.sampled_from([None, "a", "b"])

    def step(self, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
        kinds = [self.launch(), self.launch(), self.memset(), st.just({"synchronize": {}})]
        kinds.append(
            st.builds(lambda time: {"sleep": {"duration": time}}, st.sampled_from(["1us", "100us", "3ms"]))
        )
        kinds.append(self.event())
        if self.copied:
            kinds.append(self.memcpy())
        if self.touchable:
            kinds.append(self.touch())
        if self.svm:
            kinds += [self.prefetch(), self.prefetch()]
        if self.frees:
            kinds.append(self.renew())
        if depth == 0:
            inner = st.lists(self.step(1), min_size=1, max_size=3)
            kinds.append(st.builds(lambda steps: {"repeat": {"times": 2, "steps": steps}}, inner))
            kinds.append(st.builds(lambda one, two: {"parallel": {"branches": [one, two]}}, inner, inner))
        return st.one_of(kinds)

    def launch(self) -> st.SearchStrategy[dict[str, Any]]:
        some = st.lists(st.sampled_from(sorted(self.buffers)), unique=True, max_size=2)

        def build(
            kernel: str, reads: list[str], writes: list[str], stream: str | None, wait: bool, gpu: str
        ) -> Any:
            args = {"kernel": kernel, "reads": reads, "writes": writes or reads, "wait": wait, "gpu": gpu}
            if not args["writes"]:
                args["writes"] = [next(iter(self.buffers))]
            if any(self.buffers[name][1] == "hipMalloc" for name in {*reads, *args["writes"]}):
                args["gpu"] = "gpu0"
            return on(stream, launch=args)

        gpus = st.sampled_from(self.gpus)
        return st.builds(build, st.sampled_from(self.kernels), some, some, self.streams, st.booleans(), gpus)

    def touch(self) -> st.SearchStrategy[dict[str, Any]]:
        def build(name: str, access: str, part: int) -> Any:
            return {"host_touch": {"buffer": name, "access": access, **self.part(name, part)}}

        return st.builds(
            build, st.sampled_from(self.touchable), st.sampled_from(["read", "write"]), st.integers(0, 3)
        )

    def prefetch(self) -> st.SearchStrategy[dict[str, Any]]:
        def build(name: str, to: str, part: int, stream: str | None, wait: bool) -> Any:
            return on(stream, prefetch={"buffer": name, "to": to, "wait": wait, **self.part(name, part)})

        to = st.sampled_from([*self.gpus, *self.gpus, "cpu"])
        return st.builds(build, st.sampled_from(self.svm), to, st.integers(0, 3), self.streams, st.booleans())

    def part(self, name: str, part: int) -> dict[str, str]:
        """The whole buffer, its first or second half, or a page in the middle."""
        pages = self.buffers[name][0] // (4 * KIB)
        half = pages // 2 * 4 * KIB
        if part == 0 or half == 0:
            return {}
        return [{"size": f"{half}B"}, {"offset": f"{half}B"}, {"offset": f"{half}B", "size": "4KiB"}][
            part - 1
        ]

    def memcpy(self) -> st.SearchStrategy[dict[str, Any]]:
        names = st.sampled_from(self.copied)

        def build(dst: str, src: str, stream: str | None, is_async: bool) -> Any:
            return on(stream, memcpy={"dst": dst, "src": src, "async": is_async})

        return st.builds(build, names, names, self.streams, st.booleans())

    def memset(self) -> st.SearchStrategy[dict[str, Any]]:
        def build(name: str, stream: str | None, is_async: bool) -> Any:
            return on(stream, memset={"buffer": name, "async": is_async})

        return st.builds(build, st.sampled_from(sorted(self.buffers)), self.streams, st.booleans())

    def renew(self) -> st.SearchStrategy[dict[str, Any]]:
        """Allocate, use and free a buffer of its own, twice."""

        def build(kernel: str, wait: bool) -> Any:
            launch = {"kernel": kernel, "writes": [TEMPORARY], "wait": True}
            steps = [{"alloc": {"buffer": TEMPORARY}}, {"launch": launch}, {"free": {"buffer": TEMPORARY}}]
            if wait:
                steps.insert(1, {"memset": {"buffer": TEMPORARY}})
            return {"repeat": {"times": 2, "steps": steps}}

        return st.builds(build, st.sampled_from(self.kernels), st.booleans())

    def event(self) -> st.SearchStrategy[dict[str, Any]]:
        """Work in one stream, for which another one or the thread waits."""

        def build(name: str, recorded: str | None, waiting: str | None) -> Any:
            work = on(recorded, memset={"buffer": name, "async": True})
            steps = [work, on(recorded, record={"event": "e"}), on(waiting, wait={"event": "e"})]
            return {"repeat": {"times": 1, "steps": steps}}

        return st.builds(build, st.sampled_from(sorted(self.buffers)), self.streams, self.streams)


def on(stream: str | None, **step: Any) -> dict[str, Any]:
    return step if stream is None else {"stream": stream, **step}
