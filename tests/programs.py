"""Small programs for tests: a scenario from few arguments, and what it did.

    ran = run([launch("scale", writes="x")], buffers={"x": "64MiB malloc"})
    assert ran.faults["serviced"] == 32

Steps are plain dictionaries as in YAML; the functions below save the brackets. Times come out in seconds.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from gpusim.driver.vram import Vram
from gpusim.engine.record import Mode
from gpusim.kinds import Kind
from gpusim.machine.build import Machine
from gpusim.machine.harvest import harvest
from gpusim.rundata import RunData, StepData
from gpusim.scenario import loader
from gpusim.scenario.schema import Scenario
from gpusim.simulation import simulate

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
US, MS, S = 10**6, 10**9, 10**12  # picoseconds
GRANULE = 2 * MIB
PAGE = 4096

Step = dict[str, Any]


def scenario(
    steps: list[Step] | None = None,
    *,
    buffers: dict[str, str] | None = None,
    threads: dict[str, list[Step]] | None = None,
    processes: list[dict[str, Any]] | None = None,
    kernels: dict[str, dict[str, Any]] | None = None,
    xnack: bool = True,
    count: int = 1,
    node: str = "mi210-pcie4",
    gpus: int = 1,
    driver: dict[str, str] | None = None,
    overrides: dict[str, Any] | None = None,
    limit: str | None = None,
    stepwise: bool = False,
    policy: dict[str, str] | None = None,
    seed: int = 0,
    files: dict[str, str] | None = None,
) -> Scenario:
    """A scenario of one process with one thread, unless `threads` or `processes` say more."""
    if processes is None:
        processes = [process(steps, buffers=buffers, threads=threads, xnack=xnack, count=count, files=files)]
    tree: dict[str, Any] = {
        "version": 1,
        "name": "program",
        "system": {"node": node, "gpus": gpus},
        "kernels": {"scale": {"pattern": "stream"}} if kernels is None else kernels,
        "processes": processes,
        "seed": seed,
    }
    if driver:
        tree["driver"] = driver
    if overrides:
        tree["overrides"] = overrides
    if policy:
        tree["policy"] = policy
    if limit:
        tree["limits"] = {"simulated_time": limit}
    if stepwise:
        tree["engine"] = {"mode": "stepwise"}
    return loader.loads(json.dumps(tree, indent=1))  # JSON is YAML


def process(
    steps: list[Step] | None = None,
    *,
    name: str = "app",
    buffers: dict[str, str] | None = None,
    threads: dict[str, list[Step]] | None = None,
    xnack: bool = True,
    count: int = 1,
    env: dict[str, str] | None = None,
    on_error: str = "stop",
    files: dict[str, str] | None = None,
) -> dict[str, Any]:
    """One entry of `processes`. Buffers are written `size allocator`, `size allocator gpu` or `size mmap file mapping`,
    and may end in `numa=1`; files `size cached` (on nvme0, with xfs).
    """
    entry: dict[str, Any] = {
        "name": name,
        "count": count,
        "env": {"HSA_XNACK": str(int(xnack)), **(env or {})},
        "on_error": on_error,
        "threads": threads if threads is not None else {"main": steps or []},
    }
    if buffers:
        entry["buffers"] = {key: _buffer(text) for key, text in buffers.items()}
    if files:
        entry["files"] = {key: _file(text) for key, text in files.items()}
    return entry


def _buffer(text: str) -> dict[str, Any]:
    *words, last = text.split()
    numa = last.removeprefix("numa=")
    if numa != last:
        return _buffer(" ".join(words)) | {"numa": int(numa)}
    words.append(last)
    keys = ("size", "allocator", "file", "mapping") if words[1] == "mmap" else ("size", "allocator", "gpu")
    return dict(zip(keys, words, strict=False))


def _file(text: str) -> dict[str, str]:
    named = dict(zip(("size", "cached"), text.split(), strict=False))
    return {"filesystem": "xfs", "drive": "nvme0", **named}


class Ran:
    """What a run left behind, in words that tests use."""

    def __init__(self, data: RunData, machine: Machine | None = None) -> None:
        self.data = data
        self.machine = machine
        self.outcome = data.outcome
        self.makespan_ps = data.makespan_ps
        self.seconds = data.makespan_ps / S
        self.attribution = data.attribution or {}

    @property
    def faults(self) -> Counter[str]:
        """All counters of all GPUs and processes, added up."""
        total: Counter[str] = Counter()
        for counts in self.data.faults:
            total.update(counts.counts)
        return total

    @property
    def raised(self) -> int:
        return sum(self.faults.values())

    def step(self, path: str) -> StepData:
        """The step of a path without its leading `steps.`."""
        (found,) = [step for step in self.data.steps if step.path == f"steps.{path}"]
        return found

    def duration(self, path: str) -> float:
        step = self.step(path)
        return (step.end_ps - step.start_ps) / S

    def rate(self, path: str) -> float:
        """Bytes a second that the program asked for."""
        return self.step(path).bytes / self.duration(path)

    def migrated(self, direction: str) -> int:
        """Bytes moved `host_to_device` or `device_to_host`."""
        return sum(total.bytes for total in self.data.migrations if total.direction == direction)

    def link_bytes(self, direction: str, gpu: int = 0) -> int:
        """Bytes carried `h2d` or `d2h`."""
        return self.carried(f"gpu[{gpu}].pcie.{direction}")

    def carried(self, name: str) -> int:
        """Bytes of a link or memory by its name."""
        (use,) = [use for use in self.data.uses if use.name == name]
        return use.bytes

    def share(self, kind: Kind) -> float:
        """The share of a kind in the makespan."""
        return self.attribution.get(kind, 0) / self.makespan_ps

    def process(self, name: str) -> Any:
        (found,) = [process for process in self.data.processes if process.name == name]
        return found

    def latencies(self) -> list[int]:
        return sorted(int(value) for value in self.data.tables["faults"]["latency_ps"])


def run(*args: Any, record: str = "summary", **keys: Any) -> Ran:
    """Simulate what `scenario` makes of the arguments."""
    return Ran(simulate(scenario(*args, **keys), record=record))


def run_inside(program: Scenario, record: str = "summary") -> Ran:
    """Simulate, and keep the machine for tests that look at what is left in it."""
    machine = Machine(program, Mode(record), events=True)
    machine.start()
    limited = machine.env.run_to(program.limits.simulated_time)
    return Ran(harvest(machine, limited=limited), machine)


# -- steps -------------------------------------------------------------------------------------------------------------


def launch(
    kernel: str = "scale",
    *,
    reads: str = "",
    writes: str = "",
    wait: bool = True,
    gpu: str = "gpu0",
    executes: list[str] | None = None,
    **common: Any,
) -> Step:
    """A launch; buffers are named in one text."""
    args = {"kernel": kernel, "reads": reads.split(), "writes": writes.split(), "wait": wait, "gpu": gpu}
    if executes:
        args["executes"] = executes
    return {"name": kernel, **common, "launch": args}


def touch(
    buffer: str, access: str = "write", *, size: str | None = None, offset: str | None = None, **common: Any
) -> Step:
    return {**common, "host_touch": _given(buffer=buffer, access=access, size=size, offset=offset)}


def prefetch(
    buffer: str,
    to: str = "gpu0",
    *,
    wait: bool = True,
    size: str | None = None,
    offset: str | None = None,
    **common: Any,
) -> Step:
    return {**common, "prefetch": _given(buffer=buffer, to=to, wait=wait, size=size, offset=offset)}


def memcpy(dst: str, src: str, *, size: str | None = None, is_async: bool = False, **common: Any) -> Step:
    args = _given(dst=dst, src=src, size=size)
    if is_async:
        args["async"] = True
    return {**common, "memcpy": args}


def memset(buffer: str, *, is_async: bool = False, **common: Any) -> Step:
    return {**common, "memset": {"buffer": buffer, "async": is_async}}


def alloc(buffer: str, **common: Any) -> Step:
    return {**common, "alloc": {"buffer": buffer}}


def free(buffer: str, **common: Any) -> Step:
    return {**common, "free": {"buffer": buffer}}


def sleep(duration: str, **common: Any) -> Step:
    return {**common, "sleep": {"duration": duration}}


def repeat(times: int, *steps: Step, **common: Any) -> Step:
    return {**common, "repeat": {"times": times, "steps": list(steps)}}


def parallel(*branches: list[Step], **common: Any) -> Step:
    return {**common, "parallel": {"branches": list(branches)}}


def barrier(name: str = "meet", scope: str = "threads", *, label: str | None = None, **common: Any) -> Step:
    return {**common, **_given(name=label), "barrier": {"name": name, "scope": scope}}


def record(event: str, stream: str | None = None) -> Step:
    return _given(stream=stream, record={"event": event})


def wait(event: str, stream: str | None = None, **common: Any) -> Step:
    return {**common, **_given(stream=stream, wait={"event": event})}


def synchronize(stream: str | None = None, **common: Any) -> Step:
    return {**common, **_given(stream=stream, synchronize={})}


def _given(**keys: Any) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}


# -- what is left in a machine -----------------------------------------------------------------------------------------


def vram(machine: Machine, gpu: int = 0) -> Vram:
    return machine.hardware.node.devices[gpu].vram


def machine(**keys: Any) -> Machine:
    """A machine before time zero, for its numbers."""
    return Machine(scenario([sleep("1ms")], **keys), Mode.OFF)


def gpu_spec(node: str = "mi210-pcie4") -> Any:
    return machine(node=node).hardware.node.devices[0].gpu.spec


def host_spec(node: str = "mi210-pcie4") -> Any:
    return machine(node=node).hardware.node.host_spec


def costs(node: str = "mi210-pcie4") -> Any:
    return machine(node=node).hardware.node.driver.costs
