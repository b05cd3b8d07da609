"""Version 1 of the scenario language, as frozen data.

The loader builds these; `Scenario.with_` makes a changed copy through the same validation. Times are in
picoseconds and sizes in bytes here, written with units in YAML and in Python.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, StringConstraints

from gpusim.driver.policies import EvictionPolicy, PrefetchPolicy
from gpusim.driver.switches import (
    Ack,
    Apu,
    Dedup,
    Hmm,
    PeerMigration,
    Placement,
    RecentSkip,
    Replay,
    Service,
    Throttle,
    Unit,
    XnackSwitch,
)
from gpusim.runtime.allocation import FileMapping
from gpusim.runtime.hipfile.faults import FaultPlace
from gpusim.runtime.hipfile.version import HipFileVersion, HipSymbol
from gpusim.scenario.origin import Origin
from gpusim.scenario.words import (
    Allocator,
    EngineMode,
    Errno,
    ExpectKind,
    FileSystem,
    FileType,
    HugePages,
    OnError,
)
from gpusim.spec import Duration, Fraction, Size, Spec
from gpusim.workload.kernel import KernelSpec
from gpusim.workload.steps.step import Step

MAX_COUNT = 1024  # instances of one process

#: names appear in dotted paths, so they hold no dot, bracket or space
NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]*$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=100)]
Text = Annotated[str, StringConstraints(max_length=10_000)]


class System(Spec):
    """The machine."""

    node: str = Field(
        description="a node profile (`gpusim profiles` lists them), or the path of one's own file"
    )
    gpus: int | None = Field(default=None, gt=0, le=64, description="GPUs to use; default: all of the node")


class Driver(Spec):
    """The driver: a preset, and single switches that differ from it."""

    preset: Literal["kfd-6.12", "kfd-6.8", "kfd-6.3", "whitepaper"] = Field(
        default="kfd-6.12", description="which driver: its switches, limits and costs"
    )
    dedup: Dedup | None = Field(
        default=None, description="what recognises a fault that is already on its way"
    )
    ack: Ack | None = Field(default=None, description="when the de-duplication slot is freed")
    replay: Replay | None = Field(default=None, description="what makes the waiting access go on")
    placement: Placement | None = Field(default=None, description="how the location of a page is chosen")
    service: Service | None = Field(default=None, description="how many faults are served at once")
    unit: Unit | None = Field(default=None, description="what one fault migrates and maps")
    recent_skip: RecentSkip | None = Field(
        default=None, description="drop faults of a range that was restored less than 2 ms ago"
    )
    apu: Apu | None = Field(default=None, description="how an APU translates")
    peer_migration: PeerMigration | None = Field(default=None, description="how pages go from GPU to GPU")
    throttle: Throttle | None = Field(default=None, description="what happens to many faults at once")
    hmm: Hmm | None = Field(default=None, description="may the HMM walk sleep?")
    xnack_switch: XnackSwitch | None = Field(default=None, description="when a process may change XNACK")


class Limits(Spec):
    """When to stop a run that would go on."""

    simulated_time: Duration | None = Field(
        default=None, gt=0, description="the run ends here (outcome `limit`)"
    )


class Buffer(Spec):
    """Memory of a process, allocated at its start unless an `alloc` step names it."""

    size: Size = Field(gt=0, description="bytes asked for")
    allocator: Allocator = Field(description="how it is allocated")
    gpu: Name | None = Field(default=None, description="hipMalloc, hsa_pool: the GPU; default gpu0")
    file: Name | None = Field(default=None, description="mmap: the file that is mapped")
    mapping: FileMapping | None = Field(
        default=None, description="mmap: what stores do; default read_only, where they are not allowed"
    )
    huge_pages: HugePages | None = Field(
        default=None, description="transparent huge pages; default: the node's"
    )
    numa: int | None = Field(
        default=None,
        ge=0,
        description="the NUMA node that its host memory is bound to; default: the first, where all threads run",
    )
    align: Size | None = Field(default=None, gt=0, description="alignment of the address, a power of two")


class File(Spec):
    """A file that a process reads or writes."""

    size: Size = Field(gt=0, description="length")
    filesystem: FileSystem = Field(description="the file system it lies on")
    mount_options: str | None = Field(default=None, description="as in the mount table, e.g. data=ordered")
    drive: Name = Field(description="a drive of the node")
    cached: Fraction = Field(default=0.0, description="share of the file in the page cache at the start")
    supports_o_direct: bool = Field(default=True, description="can it be opened with O_DIRECT?")
    dio_offset_align: Size | None = Field(default=None, description="what statx reports; default: nothing")
    dio_mem_align: Size | None = Field(default=None, description="what statx reports; default: nothing")
    type: FileType = Field(default=FileType.REGULAR, description="what statx says it is")


class Process(Spec):
    """A process, or `count` equal ones (ranks). In a loaded scenario each instance is one of these."""

    name: Name = Field(description="its name in paths and reports")
    count: int = Field(
        default=1, gt=0, le=MAX_COUNT, description="instances name[0], name[1], ...; see ${rank}"
    )
    env: dict[str, str] = Field(default_factory=dict, description="environment variables, always text")
    on_error: OnError = Field(default=OnError.STOP, description="what a failed call does")
    buffers: dict[Name, Buffer] = Field(default_factory=dict, description="its memory, by name")
    files: dict[Name, File] = Field(default_factory=dict, description="its files, by name")
    threads: dict[Name, tuple[Step, ...]] = Field(
        default_factory=dict, description="host threads, by name: lists of steps"
    )

    _rank: int = PrivateAttr(default=0)

    @property
    def rank(self) -> int:
        """Which of the `count` instances this is."""
        return self._rank

    @property
    def label(self) -> str:
        """`app`, or `app[2]` where there are several."""
        return self.name if self.count == 1 else f"{self.name}[{self._rank}]"


class HipFile(Spec):
    """The hipFile library."""

    version: HipFileVersion = Field(default=HipFileVersion.V0_5_0, description="which revision's behaviour")
    missing_symbols: tuple[HipSymbol, ...] = Field(
        default=(), description="entry points that the HIP runtime lacks"
    )
    pool_threads: int | None = Field(
        default=None,
        gt=0,
        le=4096,
        description="threads of its pool; default: the cores of the node. Version 0.2.0 has a pool only if it was "
        "patched to: then batches run on it",
    )
    wait_value: bool = Field(
        default=True,
        description="streams of the GPUs can wait for a value in memory; where they cannot, asynchronous calls of "
        "0.6-dev run in host functions and not in the pool",
    )
    open_files: int = Field(
        default=1024,
        gt=0,
        description="descriptors that a process may have (ulimit -n); a registered file takes two",
    )


class Runtime(Spec):
    """User-space libraries."""

    hipfile: HipFile | None = Field(default=None, description="the hipFile library")


class InjectedFault(Spec):
    """An error that the system is made to return."""

    where: FaultPlace = Field(description="the call that fails")
    file: Name | None = Field(default=None, description="only for this file")
    errno: Errno | None = Field(default=None, description="the error that is returned")
    short: Fraction | None = Field(default=None, description="instead of an error: this share of the bytes")
    probability: Fraction | None = Field(default=None, description="of each call")
    at: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        default=(), description="instead of a probability: these calls, from 0"
    )


class Policy(Spec):
    """What-if policies. All but `driver` are not what the driver does."""

    eviction: EvictionPolicy = Field(default=EvictionPolicy.DRIVER, description="what leaves a full VRAM")
    prefetch: PrefetchPolicy = Field(
        default=PrefetchPolicy.DRIVER, description="what migrates beside a fault"
    )


class Engine(Spec):
    """How the simulation is carried out; the answer does not depend on it."""

    mode: EngineMode = Field(default=EngineMode.GROUPED, description="grouped, or the step-by-step reference")


class Sweep(Spec):
    """A grid of runs."""

    over: dict[str, tuple[Any, ...]] = Field(
        min_length=1, description="path -> values; all combinations are run"
    )
    replications: int = Field(
        default=1, gt=0, le=10_000, description="runs of each point, with seeds of their own"
    )


class Expect(Spec):
    """A value that the run is compared with, at the base point."""

    metric: str = Field(description="a path such as steps.scale.duration_ns")
    value: int | float | str = Field(description="the value with its unit, a count, or a word")
    tolerance: int | float | str | None = Field(
        default=None, description="20%, or an amount in the metric's unit; none for words"
    )
    source: Text = Field(description="where the value comes from")
    kind: ExpectKind = Field(description="predicted, fitted (to this value) or input")


class Scenario(Spec):
    """One question to the simulator."""

    version: Literal[1] = Field(description="of the language")
    name: Name = Field(description="short; results/<name>/ is where results go")
    question: Text = Field(default="", description="what the run is to answer")
    answer: tuple[Text, ...] = Field(
        default=(),
        description="sentences that answer the question, with metrics in braces: `A pass takes "
        "{steps.pass.duration_ns}.`; those that speak of steps which a run does not do are left out of its answer. "
        "The first metric is the answer's value. Default: made up from the steps",
    )
    system: System = Field(description="the machine")
    driver: Driver = Field(default_factory=Driver, description="the driver")
    overrides: dict[str, bool | int | float | str] = Field(
        default_factory=dict, description="numbers of the machine to change: path -> value"
    )
    parameters: dict[Name, bool | int | float | str] = Field(
        default_factory=dict, description="values that ${name} stands for"
    )
    limits: Limits = Field(default_factory=Limits, description="when to stop")
    kernels: dict[Name, KernelSpec] = Field(default_factory=dict, description="GPU kernels, by name")
    processes: tuple[Process, ...] = Field(min_length=1, description="the programs that run")
    runtime: Runtime = Field(default_factory=Runtime, description="user-space libraries")
    faults: tuple[InjectedFault, ...] = Field(default=(), description="injected errors")
    policy: Policy = Field(default_factory=Policy, description="what-if policies")
    engine: Engine = Field(default_factory=Engine, description="how the simulation is carried out")
    seed: int = Field(default=0, ge=0, lt=2**63, description="of all random numbers")
    sweep: Sweep | None = Field(default=None, description="a grid of runs for `gpusim sweep`")
    expect: tuple[Expect, ...] = Field(default=(), description="values to compare the run with")

    _origin: Origin | None = PrivateAttr(default=None)

    @property
    def source(self) -> Path | None:
        """The file it was loaded from; None for text."""
        return self._origin.file if self._origin else None

    @property
    def raw(self) -> dict[str, Any]:
        """What the user wrote, `--set` edits in it, placeholders as they are: plain data, a fresh copy."""
        from gpusim.scenario import loader

        return loader.raw(self)

    def with_(self, **changes: Any) -> "Scenario":
        """A copy with other values: `scenario.with_(**{"parameters.prefetch": True})`.

        Keys are dotted paths, lists are addressed by name (`processes.app.buffers.x.size`). Raises
        InputError as loading does.
        """
        from gpusim.scenario import loader

        return loader.changed(self, changes)

    def _repr_html_(self) -> str:
        from gpusim.scenario.display import html

        return html(self)
