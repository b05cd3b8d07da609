"""Decisions of the runtime asked one row at a time: what the case files in `tests/data` are held against."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

from gpusim.errors import CallError
from gpusim.runtime.hipfile.backends import Outcome, serve
from gpusim.runtime.hipfile.config import Configuration
from gpusim.runtime.hipfile.registration import (
    BufferRecord,
    FileRecord,
    MemoryType,
    look_up,
    register_file,
)
from gpusim.runtime.hipfile.scoring import Request
from gpusim.runtime.hipfile.version import HipFileVersion, HipSymbol

_FILE_TYPES = {"block_device": "block", "char_device": "character"}
_AMPLE = 2**40


class Paper:
    """A system in which nothing takes time, and calls fail as a row says."""

    def __init__(self, fastpath_error: str, fallback_error: str) -> None:
        self.fastpath_error = fastpath_error
        self.fallback_error = fallback_error
        self.interrupted = False

    def ais(self, request: Request, size: int) -> Any:
        if self.fastpath_error != "none":
            raise CallError(self.fastpath_error)
        return _moves(size)

    def map_bounce(self, size: int) -> Any:
        if self.fallback_error == "ENOMEM":
            raise CallError("ENOMEM")
        return _moves(size)

    def pread(self, request: Request, done: int, size: int, fresh: int) -> Any:
        return self._transfer(size)

    def pwrite(self, request: Request, done: int, size: int) -> Any:
        return self._transfer(size)

    def _transfer(self, size: int) -> Any:
        if self.fallback_error == "EINTR":
            if self.interrupted:
                return _moves(size)
            self.interrupted = True
        if self.fallback_error != "none":
            raise CallError(self.fallback_error)
        return _moves(size)

    def unmap_bounce(self, touched: int) -> Any:
        return _moves(touched)

    def fdatasync(self, request: Request) -> Any:
        return _moves(0)

    def to_device(self, request: Request, done: int, size: int) -> Any:
        return _moves(size)

    def from_device(self, request: Request, done: int, size: int, fresh: int) -> Any:
        return _moves(size)


def _moves(size: int) -> Generator[Any, int, int]:
    yield 0, 0
    return size


def decide_hipfile(inputs: dict[str, str]) -> dict[str, str]:
    """What hipFile does with a request: scores, backend and outcome. Keys are the columns of `hipfile_cases.csv`."""
    env, missing = {}, []
    for entry in filter(None, inputs["env"].split(";")):
        key, _, value = entry.partition("=")
        if key.startswith("@"):
            missing.append(HipSymbol(key[1:]))
        else:
            env[key] = value
    config = Configuration.read(env, _version(inputs["hipfile_version"]), missing)
    length = inputs["buffer_length"]
    request = Request(
        write=inputs["operation"] == "write",
        file=None,
        record=_record(inputs),
        buffer=BufferRecord(
            address=0x7F00_0000_0000,
            length=_AMPLE if length == "ample" else int(length),
            memory=MemoryType(inputs["memory_type"]),
            gpu=0,
        ),
        file_offset=int(inputs["file_offset"]),
        buffer_offset=int(inputs["buffer_offset"]),
        size=int(inputs["size"]),
    )
    outcome = Outcome()
    try:
        look_up(request.buffer)
        paper = Paper(inputs["fastpath_runtime_error"], inputs["fallback_error"])
        for _ in serve(request, config, paper, outcome, failed_fastpath=lambda _: None):
            pass
        result = "ok"
    except CallError as error:
        result = f"error:{error.code}"
    return {
        "fastpath_score": str(outcome.fastpath_score),
        "fallback_score": str(outcome.fallback_score),
        "backend": outcome.path,
        "outcome": result,
    }


def _record(inputs: dict[str, str]) -> FileRecord:
    journal = inputs["journal_mode"]
    kind = inputs["file_type"]
    return register_file(
        SimpleNamespace(
            type=_FILE_TYPES.get(kind, kind),
            filesystem=inputs["filesystem"],
            mount_options=None if journal in ("default", "n/a") else f"rw,data={journal}",
            supports_o_direct=inputs["o_direct"] == "true",
            dio_offset_align=int(inputs["dio_offset_align"]),
            dio_mem_align=int(inputs["dio_mem_align"]),
        )
    )


def _version(text: str) -> HipFileVersion:
    """The revision of ours that a release of hipFile behaves like."""
    numbers = text.split("-", maxsplit=1)[0].split(".")
    release = tuple(int(number) for number in numbers if number.isdigit())
    if release >= (0, 6):
        return HipFileVersion.V0_6_DEV
    return HipFileVersion.V0_5_0 if release >= (0, 4) else HipFileVersion.V0_2_0
