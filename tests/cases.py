"""Decisions of the driver and the runtime, asked one row at a time, for the case files in `tests/data`.

    decide_placement({"event": "gpu_fault", "xnack": "on", ...}) == {"location": "gpu0", "action": "..."}

A row becomes the arguments of the decision functions that the simulation calls as well; what they answer becomes the
words of the table. Only gpusim and the standard library are imported.
"""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

from gpusim.driver.attributes import CPU, UNDEFINED, SvmFlag, initial
from gpusim.driver.placement import (
    CpuFault,
    Move,
    Refusal,
    SameHive,
    cpu_fault,
    examine,
    fallback,
    gpus_of,
    move,
    prefetch_location,
    prefetch_maps,
    restore_location,
    stops_queues,
)
from gpusim.errors import CallError
from gpusim.runtime.hipfile.backends import Outcome, serve
from gpusim.runtime.hipfile.config import Configuration
from gpusim.runtime.hipfile.registration import (
    BufferRecord,
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
        self.fastpath_error = _error(fastpath_error)
        self.fallback_error = _error(fallback_error)
        self.interrupted = False

    def ais(self, request: Request, size: int) -> Any:
        if self.fastpath_error != "none":
            raise CallError(self.fastpath_error)
        return _moves(size)

    def map_bounce(self, request: Request, size: int) -> Any:
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

    def to_device(self, request: Request, size: int) -> Any:
        return _moves(size)

    def from_device(self, request: Request, size: int, fresh: int) -> Any:
        return _moves(size)


def _error(word: str) -> str:
    """A short count or the end of the file is no error."""
    return "none" if word.lower().startswith(("short", "eof")) else word


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
    facts = _facts(inputs)
    request = Request(
        write=inputs["operation"] == "write",
        file=facts,
        record=register_file(facts),
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
        for _ in serve(request, config, paper, outcome):
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


def _facts(inputs: dict[str, str]) -> Any:
    journal = inputs["journal_mode"]
    kind = inputs["file_type"]
    return SimpleNamespace(
        name="file",
        type=_FILE_TYPES.get(kind, kind),
        filesystem=inputs["filesystem"],
        mount_options=None if journal in ("default", "n/a") else f"rw,data={journal}",
        supports_o_direct=inputs["o_direct"] == "true",
        dio_offset_align=int(inputs["dio_offset_align"]),
        dio_mem_align=int(inputs["dio_mem_align"]),
    )


def _version(text: str) -> HipFileVersion:
    """The revision of ours that a release of hipFile behaves like."""
    numbers = text.split("-", maxsplit=1)[0].split(".")
    release = tuple(int(number) for number in numbers if number.isdigit())
    if release >= (0, 6) or not release:  # or a name such as newest
        return HipFileVersion.V0_6_DEV
    return HipFileVersion.V0_5_0 if release >= (0, 4) else HipFileVersion.V0_2_0


# -- placement ---------------------------------------------------------------------------------------------------------

Row = dict[str, str]

_LOCATIONS = {"undefined": UNDEFINED, "cpu": CPU, "gpu0": 0, "gpu1": 1}
_NAMES = {UNDEFINED: "undefined", CPU: "cpu", 0: "gpu0", 1: "gpu1"}
_REFUSED = {
    Refusal.XNACK_OFF: "fail_no_retry",
    Refusal.BEFORE_CHECKPOINT: "drop_before_checkpoint_eagain",
    Refusal.RECENT: "skip_recent_2ms",
    Refusal.NO_VMA: "drop_stale_no_vma",
    Refusal.NOT_ALLOWED: "fail_fatal",
    Refusal.NO_ACCESS: "fail_fatal",
    Refusal.NO_RANGE: "fail_fatal",
}


def decide_placement(inputs: dict[str, str]) -> dict[str, str]:
    """What the driver decides for one row: `location` and `action`."""
    decide = {
        "gpu_fault": _gpu_fault,
        "prefetch": _prefetch,
        "cpu_fault": _cpu_fault,
        "eviction": _eviction,
    }[inputs["event"]]
    location, action = decide(inputs)
    return {"location": location, "action": action}


def _location(word: str) -> int:
    """`cpu(auto)` and `cpu(unregistered)` are the CPU as well."""
    return _LOCATIONS[word.partition("(")[0]]


def _gpu(word: str) -> int:
    return int(word.removeprefix("gpu"))


def _access(row: Row, gpu: int) -> tuple[int, int]:
    """Bits of ACCESS and of ACCESS_IN_PLACE. A word with names in brackets is about those GPUs."""
    word, _, named = row["access_bit"].partition("(")
    bits = sum(1 << _gpu(name) for name in named.rstrip(")").split("+")) if named else 1 << gpu
    attributes = initial(xnack=row["xnack"] == "on" or word == "access", gpus=0b11, granule_pages=512)
    for other in range(2):
        attributes = attributes.inaccessible(other)
    if row["event"] == "prefetch" and word == "in_place" and named:
        attributes = attributes.accessible(gpu)  # the target keeps what every GPU has with XNACK on
    for other in gpus_of(bits):
        if word == "access":
            attributes = attributes.accessible(other)
        elif word == "in_place":
            attributes = attributes.mapped_in_place(other)
    if row["precondition"] == "read_mostly_flag":
        attributes = attributes.with_flags(SvmFlag.GPU_READ_MOSTLY, SvmFlag(0))
    return attributes.access, attributes.in_place


def _hive(row: Row) -> SameHive:
    together = row["same_xgmi_hive"] == "yes"
    return lambda one, other: one == other or together


def _gpu_fault(row: Row) -> tuple[str, str]:
    gpu = _gpu(row["faulting_gpu"])
    precondition = row["precondition"]
    write, _, vma = row["write_fault"].partition("_")
    refusal = examine(
        xnack=row["xnack"] == "on",
        before_checkpoint=precondition == "before_checkpoint",
        recent=precondition == "validated_within_2ms",
        vma=precondition != "vma_gone",
        writable=vma != "ro_vma",
        write=write == "yes",
    )
    if refusal is not None:
        return "none", _REFUSED[refusal]
    actual = _location(row["actual_loc"])
    access, in_place = _access(row, gpu)
    best = restore_location(
        gpu,
        preferred=_location(row["preferred_loc"]),
        access=access,
        in_place=in_place,
        actual=actual,
        apu=row["is_apu"] == "yes",
        same_hive=_hive(row),
    )
    if best is None:
        return "none", _REFUSED[Refusal.NO_ACCESS]
    if precondition == "hmm_race":
        return _NAMES[best], "hmm_race_eagain_wait_for_refault"
    return _NAMES[best], _fault_action(row, gpu, best, actual, read_only=vma == "ro_vma")


def _fault_action(row: Row, gpu: int, best: int, actual: int, *, read_only: bool) -> str:
    """What follows from the decision, with the VRAM and the RAM that are left."""
    what = move(best, actual)
    if what is Move.NOTHING:
        return "map_system"
    if what is Move.TO_RAM:
        return "migrate_vram_to_ram"
    if best == actual:
        return "migrate_noop_then_map" if best == gpu else "map_remote_xgmi"
    free = row["vram_free"]
    if free == "leg1_fails" and what is Move.THROUGH_RAM:
        left = fallback(best, actual)  # the pages are still where they were
        return "fallback_vram_to_ram_granule" if left is Move.TO_RAM else "fallback_map_system"
    if free == "no":
        there = CPU if what is Move.THROUGH_RAM else actual  # the first leg has emptied the other GPU
        assert fallback(best, there) is Move.NOTHING
        first = "vram_to_ram_then_" if what is Move.THROUGH_RAM else ""
        return f"{first}fallback_map_system"
    if free == "evictable":
        return "evict_svm_bo_then_migrate"
    if what is Move.THROUGH_RAM:
        return "migrate_vram_ram_vram"
    if best != gpu:
        return "migrate_ram_to_vram_then_map_remote"
    if read_only:
        return "migrate_ram_to_vram_map_readonly"
    if row["actual_loc"] == "cpu(unregistered)":
        return "create_range_then_migrate_ram_to_vram"
    return "migrate_ram_to_vram"


def _prefetch(row: Row) -> tuple[str, str]:
    target = _location(row["prefetch_loc"])
    actual = _location(row["actual_loc"])
    xnack = row["xnack"] == "on"
    access, in_place = _access(row, max(target, 0))
    best = prefetch_location(
        target,
        access=access,
        in_place=in_place,
        xnack=xnack,
        apu=row["is_apu"] == "yes",
        same_hive=_hive(row),
    )
    what = move(best, actual) if best != UNDEFINED else Move.NOTHING
    maps = prefetch_maps(target, access=access, in_place=in_place, xnack=xnack)
    if what is Move.NOTHING:
        both = best != target and len(maps) > 1
        return _NAMES[best], "no_migration_map_system_on_both" if both else "no_migration"
    stops = stops_queues(xnack=xnack, always_mapped=False)
    if what is Move.TO_RAM:
        return _NAMES[best], "migrate_whole_range_vram_to_ram"
    if best == actual:
        return _NAMES[best], "migrate_leftover_pages_only"
    if row["vram_free"] == "no" or (row["vram_free"] == "leg1_fails" and what is Move.THROUGH_RAM):
        return _NAMES[best], "migration_error_swallowed_ioctl_continues"
    if row["vram_free"] == "evictable":
        return _NAMES[best], "evict_svm_bo_then_migrate"
    if stops:
        return _NAMES[best], "migrate_whole_range_queues_evicted_then_restored"
    if what is Move.THROUGH_RAM:
        return _NAMES[best], "migrate_vram_ram_vram"
    names = "_and_".join(_NAMES[gpu] for gpu in maps)
    return _NAMES[best], f"migrate_whole_range_then_map_{names}"


def _cpu_fault(row: Row) -> tuple[str, str]:
    answer = cpu_fault(_location(row["actual_loc"]), ram_left=row["vram_free"] != "ram_alloc_fails")
    if answer is CpuFault.SIGBUS:
        return "none", "sigbus"
    if answer is CpuFault.NOTHING:
        return "cpu", "no_migration"
    if stops_queues(xnack=row["xnack"] == "on", always_mapped=False):
        return "cpu", "migrate_vram_to_ram_granule_queues_evicted"
    return "cpu", "migrate_vram_to_ram_granule"


def _eviction(_: Row) -> tuple[str, str]:
    return "cpu", "evict_whole_svm_bo_vram_to_ram_up_to_3_tries_per_range"
