"""Replay by command: a waiting access is sent again when the driver says so, not by a timer (the white paper's way)."""

from __future__ import annotations

from gpusim.hardware.gpuvm import Region, Vm, Waiter
from gpusim.hardware.retry import RetryUnit, Sender

_NEVER = 1 << 62


class Held(Waiter):
    """Stands for a wavefront among the waiters of its page: a valid PTE alone does not let it go on."""

    __slots__ = ("page", "wave")

    def __init__(self, wave: Sender) -> None:
        self.wave = wave
        self.page = wave.page

    def valid_at(self, time_ps: int) -> None:
        """The PTE is valid; the hardware does not know."""

    def sends_pending(self, now_ps: int) -> int:
        return self.wave.sends_pending(now_ps)


class CommandedRetry(RetryUnit):
    """Wavefronts wait for `replay` of their page."""

    def connect(self, command_ps: int) -> None:
        """`command_ps`: from the driver's command to the replay."""
        self.command_ps = command_ps
        self._held: dict[tuple[Region, int], list[Sender]] = {}

    def fault(self, sender: Sender) -> None:
        """As with a timer, but for what ends the wait."""
        region = sender.region
        if not region.vm.retry:
            super().fault(sender)
            return
        sender.sent_ps = self._env._now
        sender.tick_ps = _NEVER
        region.wait(sender.page, Held(sender))
        self._held.setdefault((region, sender.page), []).append(sender)
        self._retry_fault(sender)

    def replay(self, region: Region, page: int, *, after_ps: int | None = None) -> None:
        """The driver is done with a fault: whoever waits for the page sends again, whether it is there or not.

        `after_ps` is when they do, if not after the time of a command.
        """
        wait = self.command_ps if after_ps is None else max(1, after_ps)
        now = self._env._now
        for wave in self._held.pop((region, page), ()):
            wave.tick_ps = now + wait
            wave.valid_at(now)

    def held(self, vm: Vm) -> list[Sender]:
        """Wavefronts of an address space that wait for a command."""
        return [wave for (region, _), waves in self._held.items() if region.vm is vm for wave in waves]
