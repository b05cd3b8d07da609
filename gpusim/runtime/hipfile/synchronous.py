"""hipFileRead and hipFileWrite in a loop: a thread asks for the next block when it has the last one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from gpusim.engine.record import Chain
from gpusim.engine.stages import Stage, Stages
from gpusim.errors import CallError, SimulatedFailure
from gpusim.runtime.file_job import Block, Tally
from gpusim.runtime.hip import Hip
from gpusim.runtime.hipfile.backends import begin, retry
from gpusim.runtime.hipfile.client import Client
from gpusim.runtime.hipfile.library import HipFile
from gpusim.runtime.hipfile.registration import BufferRecord, look_up
from gpusim.runtime.hipfile.scoring import Request


def new_request(library: HipFile, file: str, buffer: BufferRecord, write: bool) -> Request:
    """A request for nothing yet: file and buffer are looked up. Raises CallError."""
    record = library.record(file)
    return Request(
        write=write,
        file=library.files[file],
        record=record,
        buffer=look_up(buffer),
        file_offset=0,
        buffer_offset=0,
        size=0,
    )


def synchronous(
    hip: Hip,
    library: HipFile,
    chain: Chain,
    file: str,
    buffer: BufferRecord,
    write: bool,
    blocks: Iterable[Block],
    tally: Tally,
) -> Generator[Stage, int, Any]:
    """The stages of one thread. What a call leaves (a short count) is asked for again; 0 bytes end the job.

    Returns whether all blocks were done; `tally` is told at the end what was moved.
    """
    client = Client(hip, library, chain, write=write)
    calls, outcome, config, kfd = client.calls, client.outcome, library.config, hip.kfd
    call = "hipFileWrite" if write else "hipFileRead"
    try:
        request = new_request(library, file, buffer, write)
    except CallError as error:
        client.refused(error)
        raise failure(call, file, error) from None
    done = 0
    try:
        for offset, place, size in blocks:
            request.file_offset, request.buffer_offset, request.size = offset, place, size
            while True:
                start = chain.time_ps
                try:
                    moved = yield from begin(request, config, calls, outcome)
                except CallError as error:
                    moved = yield from retry(request, config, calls, outcome, error)
                client.answered(request, start, moved)
                done += moved
                if moved == request.size or not moved or kfd.dead:
                    break
                request.file_offset += moved
                request.buffer_offset += moved
                request.size -= moved
            if not moved or kfd.dead:
                return False
        return True
    except CallError as error:
        client.failed(request, error)
        raise failure(call, file, error) from None
    finally:
        tally.bytes += done
        client.close()


def mixed(
    hip: Hip,
    library: HipFile,
    chain: Chain,
    file: str,
    buffer: BufferRecord,
    writes: Callable[[], bool],
    blocks: Iterable[Block],
    tally: Tally,
) -> Stages:
    """The same where `writes` says of each call whether it writes."""
    for block in blocks:
        if not (yield from synchronous(hip, library, chain, file, buffer, writes(), (block,), tally)):
            break


def failure(call: str, name: str, error: CallError, what: str = "file") -> SimulatedFailure:
    """What a program that does not expect an error makes of it."""
    whose = f" of {what} {name!r}" if what else ""
    return SimulatedFailure("io_error", f"{call}{whose}: {error.code}")
