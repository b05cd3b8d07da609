"""Chooses and wires what serves the retry faults of a GPU, by the switches of the driver."""

from __future__ import annotations

import numpy as np

from gpusim.driver.ats_service import AtsService
from gpusim.driver.driver_spec import DriverSpec, Switches
from gpusim.driver.fault_pipeline import FaultPipeline
from gpusim.driver.fault_queue import FaultQueue
from gpusim.driver.fault_worker import FaultWorker
from gpusim.driver.reporting import Reporting
from gpusim.driver.restore import Restore
from gpusim.driver.stepwise_worker import StepwiseWorker
from gpusim.driver.switches import Ack, Apu, Dedup, Replay, Service, Throttle
from gpusim.engine.environment import Environment
from gpusim.hardware.commanded import CommandedRetry
from gpusim.hardware.gpu import Gpu
from gpusim.hardware.gpu_spec import GpuSpec
from gpusim.hardware.retry import RetryUnit
from gpusim.linux.host_spec import HostSpec
from gpusim.linux.paging import Paging

FaultService = FaultWorker | StepwiseWorker | FaultPipeline | AtsService


def has_closed_form(switches: Switches) -> bool:
    """Do the closed forms of `fault_queue` hold? Otherwise each vector that reaches the driver is simulated."""
    return (
        switches.dedup is Dedup.CAM
        and switches.ack is Ack.ALWAYS
        and switches.replay is Replay.RETRY_UNTIL_VALID
        and switches.service is Service.ONE_WORKER
        and switches.throttle is Throttle.NONE
    )


def rings_hold_all(driver: DriverSpec, gpu: GpuSpec) -> bool:
    """Has each vector that the CAM lets through a place in the rings? Otherwise vectors are lost.

    The worker holds one of them, and one place of the soft ring stays empty.
    """
    cam = gpu.retry.cam_entries
    return cam <= driver.interrupts.soft_ring and cam <= driver.interrupts.ring0


def uses_ats(switches: Switches, gpu: GpuSpec) -> bool:
    """Does this GPU translate CPU addresses by ATS? Only an APU can."""
    return switches.apu is Apu.ATS_PRI and gpu.apu is not None and gpu.apu.ats is not None


def retry_unit(switches: Switches, gpu: GpuSpec) -> type[RetryUnit]:
    """What ends the wait of an access: its timer, or the driver's command."""
    commanded = switches.replay is Replay.FAULT_DONE_COMMAND or uses_ats(switches, gpu)
    return CommandedRetry if commanded else RetryUnit


def make(
    name: str,
    *,
    gpu: GpuSpec,
    driver: DriverSpec,
    host: HostSpec,
    reporting: Reporting,
    grouped: bool,
) -> FaultService:
    """The fault service of one GPU, not wired yet."""
    if uses_ats(driver.switches, gpu):
        return AtsService(
            env=reporting.env,
            recorder=reporting.recorder,
            log=reporting.faults,
            name=name,
            interrupt_ps=host.interrupt,
        )
    if not (has_closed_form(driver.switches) and rings_hold_all(driver, gpu)):
        return FaultPipeline(reporting, name=name, driver=driver, interrupt_ps=host.interrupt)
    kind: type[FaultWorker | StepwiseWorker] = FaultWorker if grouped else StepwiseWorker
    return kind(reporting, name=name, cost_ps=driver.costs.skip)


def connect(
    service: FaultService,
    gpu: Gpu,
    restore: Restore,
    *,
    driver: DriverSpec,
    paging: Paging,
    env: Environment,
    random: np.random.Generator,
) -> None:
    """Wire it to its GPU."""
    if isinstance(service, AtsService):
        assert gpu.spec.apu is not None
        assert gpu.spec.apu.ats is not None
        service.connect(gpu, gpu.spec.apu.ats, paging)
        return
    if isinstance(service, FaultPipeline):
        service.connect(gpu, restore)
        return
    if isinstance(service, StepwiseWorker):
        service.connect(gpu, restore)
        return
    queue = FaultQueue(
        cam=gpu.spec.retry.cam_entries,
        period_ps=gpu.spec.retry.period,
        delivery_ps=gpu.delivery_ps,
        cost_ps=driver.costs.skip,
        unit_pages=restore.unit_pages,
        env=env,
        processes=service.processes,
        window_end=restore.window_end,
        thrown=service.thrown,
        random=random,
    )
    service.connect(gpu, restore, queue)
