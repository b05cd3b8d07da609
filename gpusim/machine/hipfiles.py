"""Builds hipFile for each process, AIS below it and the injected faults; and reads what became of the requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from gpusim.driver.ais import Ais
from gpusim.engine.environment import Environment
from gpusim.engine.record import Recorder
from gpusim.kinds import Kind
from gpusim.machine.hardware import Hardware, random_stream
from gpusim.rundata import IoTotal, ResourceUse
from gpusim.runtime.files import Files
from gpusim.runtime.hip import Hip
from gpusim.runtime.hipfile.config import Configuration
from gpusim.runtime.hipfile.faults import Fault, Injector
from gpusim.runtime.hipfile.library import HOST_FUNCTIONS, POOL, HipFile
from gpusim.runtime.io_log import IoLog, Series
from gpusim.scenario.schema import HipFile as Declared
from gpusim.scenario.schema import InjectedFault, Process, Scenario
from gpusim.scenario.words import Errno

#: what a thread of the CPU does for a request: the rest of the time it waits
_CPU = (
    Kind.PAGE_ALLOC,
    Kind.PAGE_ZERO,
    Kind.DMA_MAP,
    Kind.COPY_SETUP,
    Kind.BOUNCE_COPY,
    Kind.HOST_ALLOC,
    Kind.PAGE_CACHE,
    Kind.FILE_SYSTEM,
    Kind.IO_SUBMIT,
    Kind.IO_PIN,
    Kind.BOUNCE_MAP,
)
_HIP_ERROR = "hipErrorUnknown"

#: path, first and last picosecond -> how much of each resource was in use
Limits = Callable[[str, int, int], Mapping[str, float]]


class HipFiles:
    """The file calls of all processes of a machine."""

    def __init__(
        self, scenario: Scenario, hardware: Hardware, *, env: Environment, recorder: Recorder
    ) -> None:
        self._env = env
        self._seed = scenario.seed
        self._declared = scenario.runtime.hipfile or Declared()
        self._hardware = hardware
        self.log = IoLog(kinds=recorder.kinds, keep_all=recorder.spans)
        self._recorded = recorder.on
        draw = random_stream(scenario.seed, "hipfile.faults").random
        self._injector = Injector([_fault(entry) for entry in scenario.faults], lambda: float(draw()))
        node = hardware.node
        visible = [device.peer_visible for device in node.devices]
        self.ais = Ais(node.driver.ais, visible=visible, linked=recorder.spans)
        self.libraries: dict[str, HipFile] = {}

    def of(self, process: Process, number: int, hip: Hip) -> Files | None:
        """The file calls of one process; None where the CPU profile has no numbers for them."""
        node = self._hardware.node
        costs, kernel = node.host_spec.hipfile, node.file_io
        if costs is None or kernel is None:
            return None
        declared = self._declared
        library = HipFile(
            env=self._env,
            process=process.label,
            number=number,
            config=Configuration.read(process.env, declared.version, declared.missing_symbols),
            costs=costs,
            ais=self.ais,
            kernel=kernel,
            files=hip.files,
            injector=self._injector,
            log=self.log,
            pool_threads=declared.pool_threads or node.host_spec.cores,
            patched_pool=declared.pool_threads is not None,
            open_files=declared.open_files,
            wait_value=declared.wait_value,
        )
        self.libraries[process.label] = library
        return Files(hip, library, self._seed)

    def totals(self, uses: list[ResourceUse]) -> list[IoTotal]:
        """What became of all requests, by path and direction."""
        for library in self.libraries.values():
            library.settle()
        return io_totals(
            self.log, limits=lambda _, start, end: _in_use(uses, start, end), recorded=self._recorded
        )

    def statistics(self) -> dict[str, dict[str, object]]:
        """What ais-stats shows of each process that has used a file."""
        for library in self.libraries.values():
            library.settle()
        return {
            name: found
            for name, library in self.libraries.items()
            if library.records and (found := library.statistics.summary())
        }


def _fault(entry: InjectedFault) -> Fault:
    code = (
        None if entry.errno is None else _HIP_ERROR if entry.errno is Errno.HIP_ERROR else entry.errno.value
    )
    return Fault(
        where=entry.where,
        file=entry.file,
        code=code,
        short=1.0 if entry.short is None else entry.short,
        probability=entry.probability,
        at=frozenset(entry.at),
    )


def io_totals(log: IoLog, *, limits: Limits, recorded: bool) -> list[IoTotal]:
    """The series of a log, processes put together. `recorded`: chains keep sums of kinds."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for series in log.series.values():
        series.settle()
        if series.requests or series.errors:
            groups.setdefault((series.path, series.direction), []).append(series)
    return [_total(path, way, members, limits, recorded) for (path, way), members in groups.items()]


def _total(path: str, way: str, members: list[Series], limits: Limits, recorded: bool) -> IoTotal:
    served = [series for series in members if series.requests] or members
    first = min(served, key=lambda series: series.first_start_ps)
    end = max(series.last_end_ps for series in members)
    latency = sum(series.latency_ps for series in members)
    kinds: Counter[Kind] = Counter()
    reasons: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for series in members:
        kinds.update({Kind(kind): spent for kind, spent in enumerate(series.kinds) if spent})
        reasons.update(series.reasons)
        errors.update(series.errors)
    cpu = sum(kinds[kind] for kind in _CPU)
    used = dict(limits(path, first.first_start_ps, end))
    if recorded and latency:
        used["submitter"] = min(1.0, cpu / latency)
    return IoTotal(
        path=path,
        direction=way,
        requests=sum(series.requests for series in members),
        bytes=sum(series.bytes for series in members),
        first_start_ps=first.first_start_ps,
        last_end_ps=end,
        latency_ps=latency,
        longest_ps=max(series.longest_ps for series in members),
        first_latency_ps=first.first_latency_ps,
        reasons={str(reason): reasons[reason] for reason in sorted(reasons)},
        errors={code: errors[code] for code in sorted(errors)},
        kinds=dict(kinds) if recorded else None,
        cpu_ps=cpu if recorded else None,
        limits=used,
    )


def _in_use(uses: list[ResourceUse], start_ps: int, end_ps: int) -> dict[str, float]:
    """The busiest of each sort in a stretch of time."""
    found: dict[str, float] = {}
    for use in uses:
        sort = _SORTS.get(use.group)
        if use.group == "link":
            sort = "link" if use.name.startswith(("gpu[", "switch", "socket")) else "drive"
        elif use.group == "lock" and use.name.endswith(".svms"):
            sort = None
        elif use.group == "worker":
            sort = _WORKERS.get(use.name.rpartition(".")[2])
        if sort is not None:
            found[sort] = max(found.get(sort, 0.0), _share(use, start_ps, end_ps))
    return {name: share for name, share in found.items() if share > 0}


_WORKERS = {HOST_FUNCTIONS: "host functions", POOL: "pool"}
_SORTS = {"memory": "memory", "lock": "lock", "drive": "drive"}


def _share(use: ResourceUse, start_ps: int, end_ps: int) -> float:
    """Of a stretch; bins at its ends count by the part that lies in it."""
    if end_ps <= start_ps:
        return 0.0
    busy = 0.0
    for index in range(start_ps // use.bin_ps, min(len(use.busy_ps_per_bin), -(-end_ps // use.bin_ps))):
        left, right = index * use.bin_ps, (index + 1) * use.bin_ps
        inside = min(right, end_ps) - max(left, start_ps)
        busy += use.busy_ps_per_bin[index] * inside / use.bin_ps
    return min(1.0, busy / (end_ps - start_ps))
