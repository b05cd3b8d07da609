"""Reads a machine after its run: counters, tables, the critical path, and what bound it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.driver.fault_worker import FaultWorker
from gpusim.driver.stepwise_worker import StepwiseWorker
from gpusim.driver.svm_range import CPU
from gpusim.engine.timeline import Timeline
from gpusim.kinds import Kind
from gpusim.machine.answer import bound, notes
from gpusim.machine.by_hand import formulas
from gpusim.rundata import FaultCounts, MigrationTotal, ProcessData, ResourceUse, RunData

if TYPE_CHECKING:
    from gpusim.machine.build import Machine
    from gpusim.workload.process import ProgramProcess

#: outcomes from best to worst; the run has the worst of its processes'
OUTCOMES = (
    "completed",
    "hip_error",
    "out_of_memory",
    "host_out_of_memory",
    "io_error",
    "sigbus",
    "vm_fault",
    "livelock",
    "limit",
)

NOT_MODELLED = (
    "HBM traffic at the far end of peer access and peer copies",
    "host memory bandwidth taken by SDMA copies",
    "HBM bandwidth used by SDMA copies over the host link",
)


def harvest(machine: Machine, *, limited: bool, events: bool = False) -> RunData:
    """Everything a run produced, as plain numbers; `events`: the KFD events, one by one, too."""
    now = machine.env.now
    for process in machine.processes:
        if process.finished:
            continue
        if limited:
            process.outcome, process.error = "limit", "the simulated time limit ended the run"
        else:
            process.outcome = "livelock"
            process.error = _stuck(machine, process.name)
        process.end_ps = now
    makespan = max((process.end_ps for process in machine.processes), default=0)
    outcome = max((process.outcome for process in machine.processes), key=OUTCOMES.index, default="completed")
    attribution = _attribution(machine, makespan)
    uses = _uses(machine, makespan)
    faults = _faults(machine, now)
    data = RunData(
        makespan_ps=makespan,
        outcome=outcome,
        processes=[_process(machine, process, faults) for process in machine.processes],
        steps=sorted(machine.steps, key=lambda step: (step.start_ps, step.end_ps)),
        faults=faults,
        migrations=_migrations(machine),
        uses=uses,
        attribution=attribution,
        bound_by=None,
        formulas={},
        notes=[],
        not_modelled=[*NOT_MODELLED, *_left_out(machine)],
        seed=machine.scenario.seed,
        tables=_tables(machine),
        engine={},
        parameters=list(machine.system.parameters.values()),
        counters={
            device.gpu.name: device.gpu.counters() | worker.counters()
            for device, worker in zip(machine.hardware.node.devices, machine.hardware.workers, strict=True)
        },
        io=machine.hipfiles.totals(uses),
        io_statistics=machine.hipfiles.statistics(),
    )
    if events:
        names = [process.name for process in machine.processes]
        data.tables["kfd_events"] = machine.hardware.events.table(names)
    data.bound_by = bound(data)
    data.formulas = formulas(machine, data)
    data.notes = notes(machine, data)
    return data


def _process(machine: Machine, process: ProgramProcess, faults: list[FaultCounts]) -> ProcessData:
    """How a process ended, with KFD's counters: each vector that the driver looked at counts as a fault."""
    looked = ("serviced", "skipped_recent", "failed")
    own = [count.counts for count in faults if count.process == process.name]
    pages = machine.hardware.events.counters.get(process.number, {"page_in": 0, "page_out": 0})
    if not own:
        return process.data()
    total = sum(counts.get(name, 0) for counts in own for name in looked)
    return replace(process.data(), kfd={"faults": total, **pages})


def _left_out(machine: Machine) -> list[str]:
    """What the closed forms of the fault queue leave out, and what file I/O does where there are files."""
    left_out = machine.hardware.storage.not_modelled()
    if any(isinstance(worker, FaultWorker | StepwiseWorker) for worker in machine.hardware.workers):
        left_out.append(
            "passes of the interrupt handler through its rings (service: per_vmid simulates them)"
        )
    return left_out


def _stuck(machine: Machine, name: str) -> str:
    """Nothing is left to happen, and a process waits: for what, and who holds its lock."""
    waiting = []
    for process in machine.processes:
        if process.name != name:
            continue
        kfd = process.hip.kfd
        for vm in kfd.vms.values():
            for region in vm.regions.values():
                if region.waiters():
                    page = min(waiter.page for waiter in region.all_waiting()) + region.first_page
                    count, where = region.waiters(), f"{region.name}, first for page {page:#x}"
                    waiting.append(f"{count} wavefronts of gpu[{vm.gpu}] wait for {where}")
        if kfd.stopped:
            waiting.append("its queues are stopped, and nothing restores them")
        if kfd.lock.holder is not None:
            waiting.append(f"{kfd.lock.name} is held, and {kfd.lock.waiters} wait for it")
    what = "; ".join(waiting) or "its threads wait for a barrier or an event that nobody reaches"
    return f"nothing can happen any more, and {name} has not ended: {what}"


def _attribution(machine: Machine, makespan: int) -> dict[Kind, int] | None:
    """The critical path of whoever ended last."""
    if not machine.recorder.on:
        return None
    last = max(
        (process for process in machine.processes if process.last_path is not None),
        key=lambda process: process.end_ps,
        default=None,
    )
    if last is None or last.last_path is None or last.end_ps != makespan:
        return None
    sums = last.last_path.chain.sums
    return {Kind(kind): spent for kind, spent in enumerate(sums) if spent}


def _faults(machine: Machine, now: int) -> list[FaultCounts]:
    found: list[FaultCounts] = []
    for device, worker in zip(machine.hardware.node.devices, machine.hardware.workers, strict=True):
        gpu = device.gpu
        for process in machine.processes:
            if device not in process.hip.visible:
                continue
            vm = process.hip.kfd.vms[gpu.index]
            counters = gpu.retry.counters_of(vm)
            sends = counters.sends
            pending = 0
            for region in vm.regions.values():
                for wave in region.all_waiting():
                    sent = wave.sends_pending(now)
                    pending += sent > 0
                    sends += sent
            fates = worker.fates(process.hip.kfd, sends, pending)
            others = counters.serviced + sum(fates.values()) + counters.failed + pending
            counts = {
                "duplicates": max(0, sends - others),
                **fates,
                "serviced": counters.serviced,
                "failed": counters.failed,
                "pending": pending,
            }
            vectors, spent = worker.interrupts_of(process.hip.kfd)
            found.append(FaultCounts(gpu.name, process.name, counts, vectors, spent))
    return found


def _place(index: int) -> str:
    return "host" if index == CPU else f"gpu[{index}]"


def _migrations(machine: Machine) -> list[MigrationTotal]:
    log = machine.hardware.migration_log
    totals: dict[str, list[int]] = {"host_to_device": [0, 0, 0], "device_to_host": [0, 0, 0]}
    for row, target in enumerate(log.target):
        start, end, _, _, size = log.numbers[5 * row : 5 * row + 5]
        if target == CPU:
            total = totals["device_to_host"]
        elif log.origin[row] == CPU:
            total = totals["host_to_device"]
        else:
            total = totals.setdefault("device_to_device", [0, 0, 0])
        total[0] += 1
        total[1] += size
        total[2] += end - start
    return [MigrationTotal(direction, *total) for direction, total in totals.items()]


def _uses(machine: Machine, makespan: int) -> list[ResourceUse]:
    hardware = machine.hardware
    uses: list[ResourceUse] = []
    hardware.storage.settle()
    for name in hardware.link_names():
        link = hardware.network.link(name)
        uses.append(_use(hardware.network.use(name), name, "link", link.capacity * 1e12, until_ps=makespan))
    for device, worker in zip(hardware.node.devices, hardware.workers, strict=True):
        gpu = device.gpu
        uses.append(
            _use(gpu.hbm.use, f"{gpu.name}.hbm", "memory", gpu.hbm.capacity * 1e12, until_ps=makespan)
        )
        uses.append(_use(gpu.engines.until(makespan), f"{gpu.name}.sdma", "engine", None, until_ps=makespan))
        uses.extend(_use(use, use.name, "worker", None, until_ps=makespan) for use in worker.uses())
    for name in hardware.storage.memory_names:
        capacity = hardware.network.link(name).capacity * 1e12
        uses.append(_use(hardware.network.use(name), name, "memory", capacity, until_ps=makespan))
    uses.extend(
        _use(process.hip.kfd.lock.use, f"{process.name}.svms", "lock", None) for process in machine.processes
    )
    if hardware.cores is not None:
        uses.append(_use(hardware.cores.use, "host.cores", "worker", None, until_ps=makespan))
    windows = [device.migration.windows for device in hardware.node.devices]
    uses.extend(
        _use(lock.use, lock.use.name, "lock", None, until_ps=makespan) for lock in windows if lock.waited
    )
    uses.extend(_file_uses(machine, makespan))
    return uses


def _file_uses(machine: Machine, makespan: int) -> Iterator[ResourceUse]:
    """Locks and threads of file I/O, as far as they were used."""
    for lock in machine.hipfiles.ais.locks:
        if lock.turns:
            yield _use(lock.use, lock.name, "lock", None, until_ps=makespan)
    for library in machine.hipfiles.libraries.values():
        if library.host_functions.grants:
            functions = library.host_functions
            yield _use(functions.use, functions.name, "worker", None, until_ps=makespan)
        pool = library.pool
        if pool.used:
            yield _use(pool.use, pool.name, "worker", None, until_ps=makespan, lanes=pool.threads)


def _use(
    timeline: Timeline,
    name: str,
    group: str,
    capacity: float | None,
    *,
    until_ps: int | None = None,
    lanes: int = 1,
) -> ResourceUse:
    """Who may go on after the programs have ended (an engine whose program has died) is looked at `until_ps` only.

    Of several equal `lanes` it is the mean that counts.
    """
    rows = timeline.rows()
    busy_ps = timeline.busy_ps
    if until_ps is not None:
        rows = [
            (start, min(busy, until_ps - start), amount) for start, busy, amount in rows if start < until_ps
        ]
        busy_ps = sum(busy for _, busy, _ in rows)
    if lanes > 1:
        rows = [(start, busy // lanes, amount) for start, busy, amount in rows]
        busy_ps = sum(busy for _, busy, _ in rows)
    carries_bytes = group in ("link", "memory", "engine")
    return ResourceUse(
        name=name,
        group=group,
        bytes=sum(amount for _, _, amount in rows) if carries_bytes else 0,
        busy_ps=busy_ps,
        bin_ps=timeline.width_ps,
        busy_ps_per_bin=[busy for _, busy, _ in rows],
        bytes_per_bin=[amount if carries_bytes else 0 for _, _, amount in rows],
        capacity_bytes_per_s=capacity,
    )


def _close(machine: Machine) -> None:
    """The last span of all is the end of the run: every thread has to have come there."""
    done = [process for process in machine.processes if process.last_path is not None]
    done.sort(key=lambda process: -process.end_ps)
    paths = [process.last_path.chain.row for process in done[:1] if process.last_path is not None]
    others = {row: None for process in done for row in process.ends if row not in (0, *paths)}
    end = max((process.end_ps for process in machine.processes), default=0)
    machine.recorder.close(Kind.SYNC, end, [*paths, *others])


def _tables(machine: Machine) -> dict[str, dict[str, Any]]:
    hardware = machine.hardware
    log = hardware.migration_log
    numbers = np.frombuffer(log.numbers, dtype=np.int64).reshape(len(log.process), 5)
    tables: dict[str, dict[str, Any]] = {
        "faults": hardware.fault_log.table(),
        "migrations": {
            "process": list(log.process),
            "from": [_place(index) for index in log.origin],
            "to": [_place(index) for index in log.target],
            "trigger": [trigger.value for trigger in log.trigger],
            **{
                name: numbers[:, i] for i, name in enumerate(("start_ps", "end_ps", "page", "pages", "bytes"))
            },
        },
    }
    tables["io"] = machine.hipfiles.log.table()
    if machine.recorder.spans:
        _close(machine)
        spans = machine.recorder.table()
        tables["spans"] = {name: spans[name] for name in spans.dtype.names or ()}
        tables["actors"] = {"name": list(machine.recorder.actors)}
    return tables
