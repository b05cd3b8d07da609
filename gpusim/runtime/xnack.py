"""Changing the XNACK mode of a running process: AMDKFD_IOC_SET_XNACK_MODE (`kfd_svm.md` 1.8)."""

from __future__ import annotations

from gpusim.driver.switches import XnackSwitch
from gpusim.engine.stages import Stages
from gpusim.errors import SimulatedFailure
from gpusim.kinds import Kind
from gpusim.runtime.hip import Hip, Steps, Thread


def set_xnack(hip: Hip, thread: Thread, *, enabled: bool) -> Steps:
    """Ask the driver for a mode. Raises SimulatedFailure where it answers -EBUSY or -EPERM."""
    kfd, driver = hip.kfd, hip.node.driver
    yield from thread.stages(_ioctl(driver.costs.ioctl))
    if enabled == kfd.xnack:
        return
    call = f"set_xnack of {kfd.name}"
    if driver.switches.xnack_switch is XnackSwitch.NEVER:
        raise SimulatedFailure(
            "hip_error",
            f"{call}: -EPERM: this driver fixes the mode when the process starts; set HSA_XNACK before it",
        )
    if hip.has_queues:
        raise SimulatedFailure(
            "hip_error", f"{call}: -EBUSY: the process has queues; change the mode before its first stream"
        )
    if enabled and kfd.xnack_refused:
        raise SimulatedFailure("hip_error", f"{call}: -EPERM: {kfd.xnack_refused}")
    kfd.set_xnack(enabled)


def _ioctl(length_ps: int) -> Stages:
    yield Kind.HOST_ALLOC, length_ps
