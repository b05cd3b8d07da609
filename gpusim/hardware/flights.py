"""Transfers that a process has under way itself, to be stopped when it dies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpusim.engine.environment import Environment
from gpusim.engine.flows import Flow

#: starts a flow whose end calls what it is given
Start = Callable[[Callable[[Flow], None]], Flow]


class Flights:
    """Flows of copy engines, copy kernels and threads. What the kernel has begun for a process is not among them.

    Whoever waits for a flow that is cut goes on at once, and finds its process dead.
    """

    __slots__ = ("_env", "_flying")

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._flying: dict[Flow, Callable[[int], None]] = {}

    def fly(self, start: Start, landed: Callable[[int], None]) -> Flow:
        """Start a flow; `landed` is called with the bytes that it has moved."""
        flying = self._flying

        def ended(flow: Flow) -> None:
            del flying[flow]
            landed(flow.size_bytes)

        flow = start(ended)
        flying[flow] = landed
        return flow

    def cut(self) -> None:
        """Stop all that is under way."""
        flying, now = list(self._flying.items()), self._env.now
        self._flying.clear()
        for flow, landed in flying:
            self._env.call_at(now, partial(landed, flow.cut()))
