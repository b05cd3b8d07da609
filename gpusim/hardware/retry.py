"""Retry faults: what the hardware does with an access that finds no valid PTE while XNACK is on.

The access is sent again each `period` (UTCL1 retry; the timer runs freely, so the first re-send comes a random part of
a period after the first send). The first send of a page that the CAM does not hold yet becomes an interrupt vector;
the others are absorbed as duplicates. Sends are counted in closed form, never as events. The first send that finds the
PTE valid ends the wait. Source: `kfd_svm.md` 1.1-1.3, 1.6.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import cycle
from typing import Protocol

import numpy as np

from gpusim.engine.environment import Environment
from gpusim.engine.record import Snapshot
from gpusim.hardware.access import AccessKind, Client
from gpusim.hardware.gpu_spec import RetrySpec
from gpusim.hardware.gpuvm import Region, Vm, Waiter

_PHASES = 1 << 12


class FaultCounters:
    """Retry faults of one process on one GPU; `sends` is all that was sent."""

    __slots__ = ("failed", "overflowed", "sends", "serviced")

    def __init__(self) -> None:
        self.sends = 0
        self.serviced = 0
        self.overflowed = 0
        self.failed = 0


class Sent(Protocol):
    """What is known of a retry fault that waits: what its interrupt vector says, and who sent it.

    `page` is an index into `region`; `sent_ps` and `tick_ps` are the times of its first send and its first re-send.
    """

    region: Region
    page: int
    write: bool
    sent_ps: int
    tick_ps: int
    behind: int  # the span that the worker was at when it was sent

    @property
    def client(self) -> Client:
        """The block of the GPU that sent it."""
        ...

    @property
    def access(self) -> AccessKind:
        """What the access would do."""
        ...

    def path(self) -> Snapshot:
        """The critical path that led to it."""
        ...


class Sender(Waiter):
    """Who sends a fault, and waits until its page is there. Left alone, it is a compute unit."""

    __slots__ = ("behind", "page", "region", "sent_ps", "tick_ps", "write")

    page: int
    region: Region
    write: bool
    sent_ps: int
    tick_ps: int
    behind: int

    @property
    def client(self) -> Client:
        """The block of the GPU that sends."""
        return Client.COMPUTE_UNIT

    @property
    def access(self) -> AccessKind:
        """What the access that waits would do."""
        return AccessKind.WRITE if self.write else AccessKind.READ

    @abstractmethod
    def path(self) -> Snapshot: ...

    @abstractmethod
    def stopped(self, now_ps: int) -> None: ...


#: who waits is the fault that it waits for, until that is answered; a vector may stand for it
Fault = Sender | Sent


class InterruptListener(Protocol):
    """Who listens to the fault interrupts of a GPU; connected by `machine/`."""

    def retry_fault(self, fault: Fault) -> None:
        """An access was sent for the first time. Others may wait for the same page already."""
        ...

    def fatal_fault(self, region: Region, page: int, write: bool) -> None:
        """An access without a valid PTE while XNACK is off for its VMID."""
        ...


class RetryUnit:
    """The retry logic of one GPU."""

    def __init__(
        self, spec: RetrySpec, *, env: Environment, listener: InterruptListener, random: np.random.Generator
    ) -> None:
        self.spec = spec
        self.period_ps = spec.period
        self._env = env
        self._listener = listener
        self._retry_fault = listener.retry_fault
        self._phase = cycle(random.integers(1, spec.period + 1, _PHASES).tolist())
        self.counters: dict[Vm, FaultCounters] = {}

    def fault(self, sender: Sender) -> None:
        """`sender` found no valid PTE for its `page` of `region`; it waits for `valid_at`."""
        region = sender.region
        vm = region.vm
        if not vm.retry and not vm.stopped:
            self._listener.fatal_fault(region, sender.page, sender.write)
            return
        region.wait(sender.page, sender)
        if vm.stopped:
            sender.stopped(self._env._now)
        else:
            sender.sent_ps = now = self._env._now
            sender.tick_ps = now + next(self._phase)
            self._retry_fault(sender)

    def counters_of(self, vm: Vm) -> FaultCounters:
        """The counters of one address space."""
        counters = self.counters.get(vm)
        if counters is None:
            counters = self.counters[vm] = FaultCounters()
        return counters


def first_send_after(valid_ps: int, tick_ps: int, period_ps: int) -> int:
    """Time of the first re-send after `valid_ps`, of a waiter whose first re-send is at `tick_ps`."""
    if valid_ps < tick_ps:
        return tick_ps
    return tick_ps + ((valid_ps - tick_ps) // period_ps + 1) * period_ps


def sends_until(time_ps: int, tick_ps: int, period_ps: int) -> int:
    """How often a waiter has sent its access up to `time_ps`: once at first, then at each tick."""
    if time_ps < tick_ps:
        return 1
    return 2 + (time_ps - tick_ps) // period_ps
