"""A point where several host threads meet: the last one lets all go on."""

from __future__ import annotations

from typing import Any

from gpusim.engine.environment import Environment
from gpusim.engine.record import Chain, Snapshot
from gpusim.kinds import Kind


class Meeting:
    """A barrier for `parties`, used once. `path` is the critical path of the last one to come."""

    __slots__ = ("_event", "_rows", "come_so_far", "parties", "path")

    def __init__(self, env: Environment, parties: int) -> None:
        self.parties = parties
        self.come_so_far = 0
        self.path: Snapshot = ([], 0)
        self._rows: list[int] = []  # the last spans of those who came before
        self._event = env.event()

    def come(self, chain: Chain) -> Any:
        """One more has come; returns what to wait for, or None for the last one."""
        self.come_so_far += 1
        if self.come_so_far == self.parties:
            for row in self._rows:
                chain.meet(Kind.SYNC, row)
            self.path = chain.snapshot()
            self._event.succeed()
            return None
        self._rows.append(chain.row)
        return self._event
