"""Checks of file steps and injected faults: keys that an interface ignores, places outside files and buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpusim import quantity
from gpusim.runtime.hipfile.faults import SHORT_PLACES, FaultPlace
from gpusim.scenario.mistakes import Mistakes
from gpusim.scenario.parts import ProcessPart, StepPart
from gpusim.scenario.paths import TreePath
from gpusim.scenario.schema import InjectedFault
from gpusim.scenario.words import Errno
from gpusim.workload.steps.files import FileBatch, FileOperation, FileTransfer, TransferApi

#: key -> the interfaces that look at it
_BY_API: dict[str, tuple[TransferApi, ...]] = {
    "depth": (TransferApi.ASYNC,),
    "bounce": (TransferApi.POSIX,),
    "direct": (TransferApi.POSIX,),
}

Known = Callable[[TreePath, str, Sequence[str], str], bool]


def check_file_step(process: ProcessPart, step: StepPart, mistakes: Mistakes, known: Known) -> None:
    """A step that names files."""
    where: TreePath = (*step.path, step.verb)
    named = step.raw_args.get("file")
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
            mistakes.report(where, "needs one of 'errno' and 'short'", key=True)
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
