"""Checks of files, file steps and injected faults: keys that are ignored, places outside files, buffers and drives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from gpusim import quantity
from gpusim.linux.stack_spec import StackKind, stack_capacity
from gpusim.runtime.hipfile.faults import SHORT_PLACES, FaultPlace
from gpusim.scenario.mistakes import Mistakes
from gpusim.scenario.parts import ProcessPart, StepPart
from gpusim.scenario.paths import TreePath
from gpusim.scenario.resolve import ResolvedSystem
from gpusim.scenario.schema import InjectedFault
from gpusim.scenario.words import Errno, FileSystem
from gpusim.workload.steps.files import FileBatch, FileOperation, FileTransfer, TransferApi

#: key -> the interfaces that look at it
_BY_API: dict[str, tuple[TransferApi, ...]] = {
    "depth": (TransferApi.ASYNC, TransferApi.POSIX),
    "bounce": (TransferApi.POSIX,),
    "direct": (TransferApi.POSIX,),
    "late": (TransferApi.ASYNC,),
    "late_size": (TransferApi.ASYNC,),
}

Known = Callable[[TreePath, str, Sequence[str], str], bool]


def check_files(process: ProcessPart, machine: ResolvedSystem, mistakes: Mistakes, known: Known) -> None:
    """The files that a process declares."""
    if not process.files:
        return
    where: TreePath = (*process.path, "files")
    if "io" not in machine.cpu:
        mistakes.report(where, "the CPU profile of the node has no numbers for file I/O", key=True)
    devices = [*machine.drives, *(str(stack.get("name")) for stack in machine.node.get("stacks") or ())]
    for name, file in process.files.items():
        if file is None:
            continue
        known((*where, name, "drive"), file.drive, devices, "drive of the node")
        if file.filesystem is FileSystem.TMPFS and file.cached:
            legal = "a file system on a drive"
            mistakes.report(
                (*where, name, "cached"), "filesystem tmpfs would ignore this key", legal=legal, key=True
            )
        for key in ("dio_offset_align", "dio_mem_align"):
            align = getattr(file, key)
            if align is not None and align & (align - 1):
                mistakes.report(
                    (*where, name, key),
                    "statx reports powers of two",
                    read=quantity.write_size(align),
                    legal="0B (no direct I/O), 4B, 512B, 4KiB, ...",
                )


def check_room(processes: Sequence[ProcessPart], machine: ResolvedSystem, mistakes: Mistakes) -> None:
    """Files that their drive or stack has no room for. Ranks share the files that they declare alike."""
    taken: Counter[str] = Counter()
    seen: set[tuple[str, str, str]] = set()
    for process in processes:
        for name, file in process.files.items():
            if file is None or file.filesystem is FileSystem.TMPFS:
                continue
            key = (process.name, name, file.model_dump_json())
            room = capacity(machine, file.drive)
            if key in seen or room is None:
                continue
            seen.add(key)
            before = taken[file.drive]
            taken[file.drive] += file.size
            if before + file.size > room:
                rest = f", {quantity.write_size(before)} of which others take" if before else ""
                mistakes.report(
                    (*process.path, "files", name, "size"),
                    f"{file.drive} has no room for it",
                    read=quantity.write_size(file.size),
                    legal=f"{file.drive} has {quantity.write_size(room)}{rest}",
                )


def capacity(machine: ResolvedSystem, device: str) -> int | None:
    """Bytes of a drive or a stack; None where its profile does not say."""
    if device in machine.drives:
        size = machine.drives[device].get("capacity")
        try:
            return size if isinstance(size, int) else quantity.parse_size(str(size))
        except quantity.QuantityError:
            return None  # it is reported with the machine's numbers
    for stack in machine.node.get("stacks") or ():
        if stack.get("name") == device and stack.get("kind") in list(StackKind):
            sizes = [
                capacity(machine, str(member)) for member in stack.get("members") or () if member != device
            ]
            known = [size for size in sizes if size is not None]
            return stack_capacity(StackKind(stack["kind"]), known) if known else None
    return None


def check_file_step(process: ProcessPart, step: StepPart, mistakes: Mistakes, known: Known) -> None:
    """A step that names files."""
    where: TreePath = (*step.path, step.verb)
    named = step.raw_args.get("file")
    if named == []:
        mistakes.report(
            (*where, "file"), "names no file", legal=f"{', '.join(process.files)}, or a list of them"
        )
    for index, name in enumerate(named if isinstance(named, list) else [named]):
        if isinstance(name, str):
            place = (*where, "file", index) if isinstance(named, list) else (*where, "file")
            known(place, name, list(process.files), "file of the process")
    args = step.step.args if step.step is not None else None
    if isinstance(args, FileBatch) and args.mix is not None and args.operation is FileOperation.WRITE:
        legal = "operation: read, of which `mix` is written"
        mistakes.report((*where, "mix"), "operation write would ignore this key", legal=legal, key=True)
    if not isinstance(args, FileTransfer):
        return
    for key, apis in _BY_API.items():
        written = key in step.raw_args and getattr(args, key) != type(args).model_fields[key].default
        if written and args.api not in apis:
            legal = f"api: {' or '.join(apis)}"
            mistakes.report((*where, key), f"api {args.api} would ignore this key", legal=legal, key=True)
    if args.api is TransferApi.POSIX and args.depth > 1 and not args.direct:
        legal = "direct: true (buffered calls of libaio and io_uring wait for the page cache)"
        mistakes.report(
            (*where, "depth"), "api posix would ignore this key without O_DIRECT", legal=legal, key=True
        )
    if args.pieces:
        for key in ("size", "duration", "order"):
            if key in step.raw_args:
                mistakes.report(
                    (*where, key), "`pieces` would ignore this key", legal="one of the two", key=True
                )
    if step.step is not None and step.step.stream is not None and args.api is not TransferApi.ASYNC:
        message = f"api {args.api} does not use a stream"
        mistakes.report((*step.path, "stream"), message, legal="api: async", key=True)
    buffer = process.buffers.get(args.buffer)
    if buffer is not None and (args.buffer_offset or 0) >= buffer.size:
        mistakes.report(
            (*where, "buffer_offset"),
            f"lies beyond the end of buffer {args.buffer!r}",
            read=quantity.write_size(args.buffer_offset or 0),
            legal=f"the buffer has {quantity.write_size(buffer.size)}",
        )


def check_faults(
    faults: Sequence[InjectedFault], files: Sequence[str], mistakes: Mistakes, known: Known
) -> None:
    """Each entry says what goes wrong, where that can happen, and when."""
    for index, fault in enumerate(faults):
        where: TreePath = ("faults", index)
        if (fault.errno is None) == (fault.short is None):
            mistakes.report(where, "needs one of 'errno' and 'short'")
        if fault.short is not None and fault.where not in SHORT_PLACES:
            legal = ", ".join(sorted(SHORT_PLACES))
            mistakes.report(
                (*where, "short"), f"{fault.where} moves no bytes of a file", legal=legal, key=True
            )
        if fault.errno is Errno.HIP_ERROR and fault.where not in (FaultPlace.FASTPATH, FaultPlace.HIP_MEMCPY):
            mistakes.report((*where, "errno"), f"{fault.where} is no call of HIP", legal="an errno")
        if fault.probability is not None and fault.at:
            mistakes.report(
                (*where, "at"), "`probability` would ignore this key", legal="one of the two", key=True
            )
        if fault.file is not None:
            known((*where, "file"), fault.file, files, "file of a process")
