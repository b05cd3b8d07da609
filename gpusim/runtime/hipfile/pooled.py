"""Requests on the threads of the library's pool, or in a host function: the synchronous path, retry and all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gpusim.engine.record import Chain, Snapshot
from gpusim.engine.stages import Stages, run_stages
from gpusim.errors import CallError, SimulatedFailure
from gpusim.kinds import Kind
from gpusim.runtime.hip import Hip
from gpusim.runtime.hipfile import codes
from gpusim.runtime.hipfile.client import Client
from gpusim.runtime.hipfile.library import HipFile
from gpusim.runtime.hipfile.scoring import Request


class Answer:
    """What an asynchronous call leaves: bytes, or the code of an error."""

    __slots__ = ("bytes", "code")

    def __init__(self) -> None:
        self.bytes = 0
        self.code: str | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Size and offsets are read when the stream comes to the call. `size`: what the program has made of it (bytes)."""

    size: int | None = None

    def bind(self, request: Request) -> None:
        """Read them. Raises CallError for a size that has grown since the call: its memory was checked then."""
        if self.size is not None:
            if self.size > request.size:
                raise CallError(codes.INVALID_VALUE)
            request.size = self.size


def run_in_pool(
    hip: Hip,
    library: HipFile,
    request: Request,
    answer: Answer,
    begun: int,
    path: Snapshot,
    done: Callable[[Snapshot], None],
    begins: Callable[[], bool] | None = None,
    *,
    own_stream: bool = False,
    late: Late | None = None,
) -> None:
    """Serve a request on a thread of the pool; `begun` is when it was asked for.

    `begins` is told when a thread comes to it, and says whether it is still wanted. `own_stream`: its copies do not
    wait for the null stream.
    """
    env, recorder, pool = hip.env, hip.node.recorder, library.pool
    asked = env.now

    def begin() -> None:
        since = env.now
        if begins is not None and not begins():
            pool.ended(since)
            return
        chain = Chain(recorder, recorder.actor(pool.name) if recorder.spans else 0)
        chain.follow(path, asked)
        chain.spend(Kind.IO_QUEUE, since, alone_ps=0, behind=pool.row)

        def ended() -> None:
            pool.ended(since, chain.row)
            done(chain.snapshot())

        stages = hip.node.on_cores(
            _in_a_thread(
                library, serve_request(hip, library, chain, request, answer, begun, own_stream, late)
            )
        )
        run_stages(env, chain, stages, ended, partial(kill, hip))

    pool.submit(begin)


def _in_a_thread(library: HipFile, work: Stages) -> Stages:
    """What a thread of the pool does for one request."""
    yield Kind.IO_SUBMIT, library.costs.pool
    yield from work


def serve_request(
    hip: Hip,
    library: HipFile,
    chain: Chain,
    request: Request,
    answer: Answer,
    begun: int,
    own_stream: bool,
    late: Late | None,
) -> Stages:
    """One request by the synchronous path; `begun` is when it was asked for."""
    client = Client(hip, library, chain, write=request.write, own_stream=own_stream)
    waited = chain.time_ps - begun
    try:
        if late is not None:
            late.bind(request)
        answer.bytes = yield from client.request(request)
    except CallError as error:
        answer.code = error.code
        client.failed(request, error)
    else:
        client.answered(request, begun, answer.bytes)
        client.queued(Kind.IO_QUEUE, waited)
    client.close()


def kill(hip: Hip, failure: SimulatedFailure) -> None:
    hip.kfd.kill(failure.outcome, str(failure))
