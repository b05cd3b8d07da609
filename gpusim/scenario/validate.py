"""What no part can check alone: names that must exist elsewhere, and keys that a chosen mode ignores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from gpusim import quantity
from gpusim.scenario.mistakes import Mistakes, shown
from gpusim.scenario.parts import Parts, ProcessPart, StepPart
from gpusim.scenario.paths import TreePath, listed, nearest
from gpusim.scenario.resolve import ResolvedSystem
from gpusim.scenario.schema import Buffer
from gpusim.scenario.validate_files import check_faults, check_file_step, check_files, check_room
from gpusim.scenario.validate_metrics import check_metrics
from gpusim.scenario.validate_switches import check_switches
from gpusim.scenario.words import DEVICE_ALLOCATORS, Allocator
from gpusim.workload.kernel import KEY_NEEDED, KEYS_IGNORED, KEYS_OF_PATTERNS, KernelSpec
from gpusim.workload.steps.files import FileTransfer

_VISIBLE = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")

#: of all buffers of a process: the state of every 4 KiB page takes a byte of the simulator's own memory
_MOST_BYTES = 8 * quantity.TIB

#: arguments of steps that name a GPU, and what else they may say
_DEVICES: Mapping[str, tuple[str, ...]] = {
    "gpu": (),
    "to": ("cpu",),
    "device": ("cpu",),
    "preferred_location": ("cpu", "undefined"),
    "prefetch_location": ("cpu",),
}


class Checker:
    """Checks one scenario across its parts. `machine` is None when its profiles could not be read."""

    def __init__(self, parts: Parts, machine: ResolvedSystem | None, mistakes: Mistakes) -> None:
        self.parts = parts
        self.machine = machine
        self.mistakes = mistakes

    def check(self) -> None:
        """Report everything."""
        for name, kernel in self.parts.kernels.items():
            if kernel is not None:
                self._kernel(("kernels", name), kernel)
        seen: dict[str, TreePath] = {}
        for process in self.parts.processes:
            if seen.setdefault(process.name, process.path) != process.path and process.rank == 0:
                message = f"two processes are called {process.name!r}"
                self.mistakes.report((*process.path, "name"), message, legal="one name each; see `count`")
            self._process(process)
        if self.machine is not None:
            check_room(self.parts.processes, self.machine, self.mistakes)
        if self.parts.scenario is not None:
            files = sorted({name for process in self.parts.processes for name in process.files})
            check_faults(self.parts.scenario.faults, files, self.mistakes, self._known)
            if self.machine is not None:
                check_switches(self.parts.scenario.driver, self.machine, self.mistakes)
        check_metrics(self.parts, self.mistakes)

    def _kernel(self, path: TreePath, kernel: KernelSpec) -> None:
        for key, patterns in KEYS_OF_PATTERNS.items():
            if getattr(kernel, key) is not None and kernel.pattern not in patterns:
                legal = " or ".join(f"pattern: {pattern}" for pattern in patterns)
                self._ignored((*path, key), f"pattern {kernel.pattern}", legal)
        for key in KEYS_IGNORED.get(kernel.pattern, ()):
            if key in kernel.model_fields_set:
                self._ignored((*path, key), f"pattern {kernel.pattern}", "leave it out")
        needed = KEY_NEEDED.get(kernel.pattern)
        if needed is not None and getattr(kernel, needed) is None:
            self.mistakes.report(path, f"pattern {kernel.pattern} needs {needed!r}", key=True)
        if kernel.duration is not None and kernel.flops_per_byte is not None:
            self._ignored((*path, "flops_per_byte"), "a given `duration`", "one of the two")

    def _ignored(self, path: TreePath, why: str, legal: str) -> None:
        self.mistakes.report(path, f"{why} would ignore this key", legal=legal, key=True)

    def _process(self, process: ProcessPart) -> None:
        gpus = self._gpus(process)
        for name, buffer in process.buffers.items():
            if buffer is not None:
                self._buffer(process, (*process.path, "buffers", name), buffer, gpus)
        asked = sum(buffer.size for buffer in process.buffers.values() if buffer is not None)
        if asked > _MOST_BYTES:
            self.mistakes.report(
                (*process.path, "buffers"),
                "the buffers of a process are too large to simulate, page by page",
                read=f"{quantity.write_size(asked)} together",
                legal=f"at most {quantity.write_size(_MOST_BYTES)}",
                key=True,
            )
        if self.machine is not None:
            check_files(process, self.machine, self.mistakes, self._known)
        events = {str(step.raw_args.get("event")) for step in process.steps if step.verb == "record"}
        working = {step.stream for step in process.steps if step.verb not in ("synchronize", "record")}
        names: dict[str, TreePath] = {}
        for step in process.steps:
            if step.name is not None and names.setdefault(step.name, step.path) != step.path:
                message = f"two steps of the process are called {step.name!r}"
                self.mistakes.report((*step.path, "name"), message, legal="one name each")
            self._step(process, step, gpus)
            if step.verb == "wait" and isinstance(event := step.raw_args.get("event"), str):
                where = (*step.path, "wait", "event")
                self._known(where, event, events, "event that a `record` step names")
            if step.verb in ("synchronize", "record") and step.stream is not None:
                streams = [stream for stream in working if stream is not None]
                where = (*step.path, "stream")
                self._known(where, step.stream, streams, "stream that another step puts work on")

    def _gpus(self, process: ProcessPart) -> list[str] | None:
        """The GPUs as the process sees them; None when that cannot be told."""
        if self.machine is None:
            return None
        count = len(self.machine.gpus)
        env = process.raw.get("env")
        for variable in _VISIBLE:
            if isinstance(env, dict) and isinstance(value := env.get(variable), str):
                count = _visible(count, value)
        return [f"gpu{index}" for index in range(count)]

    def _buffer(
        self, process: ProcessPart, path: TreePath, buffer: Buffer, gpus: Collection[str] | None
    ) -> None:
        device = buffer.allocator in DEVICE_ALLOCATORS
        why = f"allocator {buffer.allocator}"
        if buffer.gpu is not None and not device:
            self._ignored((*path, "gpu"), why, f"allocator: {' or '.join(sorted(DEVICE_ALLOCATORS))}")
        elif buffer.gpu is not None and gpus is not None:
            self._known((*path, "gpu"), buffer.gpu, gpus, "GPU that the process sees")
        for key in ("huge_pages", "numa"):
            if getattr(buffer, key) is not None and device:
                self._ignored((*path, key), why, "an allocator of host memory")
        if buffer.allocator is Allocator.MMAP:
            if buffer.file is None:
                self.mistakes.report(
                    path, "allocator mmap needs 'file'", legal=listed(process.files), key=True
                )
            else:
                self._known((*path, "file"), buffer.file, process.files, "file of the process")
            for key in ("huge_pages", "numa"):
                if getattr(buffer, key) is not None:
                    self._ignored((*path, key), why, "an allocator of anonymous memory")
            if self.machine is not None and "mapped" not in (self.machine.cpu.get("io") or {}):
                self.mistakes.report(
                    path, "the CPU profile of the node has no numbers for mapped files", key=True
                )
        else:
            for key in ("file", "mapping"):
                if getattr(buffer, key) is not None:
                    self._ignored((*path, key), why, "allocator: mmap")
        if buffer.numa is not None and self.machine is not None:
            nodes = self._numa_nodes()
            if buffer.numa >= nodes:
                self.mistakes.report(
                    (*path, "numa"),
                    "no such NUMA node",
                    read=str(buffer.numa),
                    legal="0, the only one of this machine" if nodes == 1 else f"0 to {nodes - 1}",
                )
        if buffer.align is not None and buffer.align & (buffer.align - 1):
            read = quantity.write_size(buffer.align)
            self.mistakes.report((*path, "align"), "not a power of two", read=read, legal="4KiB, 2MiB, ...")

    def _numa_nodes(self) -> int:
        """How many the machine has: one a socket, where the node's profile says what they cost."""
        assert self.machine is not None
        sockets = (self.machine.node.get("fabric") or {}).get("sockets") or {}
        return len(sockets.get("members") or ()) if sockets.get("numa") else 1

    def _step(self, process: ProcessPart, step: StepPart, gpus: Collection[str] | None) -> None:
        where: TreePath = (*step.path, step.verb)
        for argument, name in self._buffers(step):
            if self._known((*where, *argument), name, process.buffers, "buffer of the process"):
                self._extent(process, step, name)
        check_file_step(process, step, self.mistakes, self._known)
        if gpus is not None:
            for key, words in _DEVICES.items():
                if step.step is not None and isinstance(gpu := getattr(step.step.args, key, None), str):
                    self._known((*where, key), gpu, [*gpus, *words], "GPU that the process sees")
        if step.verb == "kill" and isinstance(victim := step.raw_args.get("process"), str):
            self._known((*where, "process"), victim, self._labels(), "process")
        if step.verb == "launch":
            self._launch(step, where)

    def _launch(self, step: StepPart, where: TreePath) -> None:
        name = step.raw_args.get("kernel")
        if not isinstance(name, str) or not self._known(
            (*where, "kernel"), name, self.parts.kernels, "kernel of `kernels`"
        ):
            return
        kernel = self.parts.kernels[name]
        idle = not any(step.raw_args.get(key) for key in ("reads", "writes", "atomics"))
        if kernel is not None and kernel.lines is not None and not step.raw_args.get("atomics"):
            legal = "`atomics: [...]` in the launch"
            self.mistakes.report(
                where, f"kernel {name} has `lines` for atomics, and none here", legal=legal, key=True
            )
        if idle and kernel is not None and kernel.duration is None:
            legal = "reads, writes or atomics: [...], or a kernel with a `duration`"
            self.mistakes.report(where, "the kernel has nothing to do", legal=legal, key=True)

    def _buffers(self, step: StepPart) -> Iterable[tuple[TreePath, str]]:
        """(place in the arguments, buffer name) of every buffer that a step names."""
        if step.step is None:
            return
        for argument, name in step.step.args.buffers().items():
            keys = argument.replace("[", ".").replace("]", "").split(".")
            yield tuple(int(key) if key.isdigit() else key for key in keys), name

    def _extent(self, process: ProcessPart, step: StepPart, name: str) -> None:
        """Does the part of the buffer that the step names lie inside it?"""
        buffer = process.buffers[name]
        args = step.step.args if step.step is not None else None
        if (
            buffer is None or args is None or isinstance(args, FileTransfer)
        ):  # those go around in their buffer
            return
        for key, offset_key in (("buffer", "offset"), ("dst", "dst_offset"), ("src", "src_offset")):
            if getattr(args, key, None) != name:
                continue
            offset, size = getattr(args, offset_key, None) or 0, getattr(args, "size", None)
            if offset >= buffer.size or offset + (size or 0) > buffer.size:
                blamed = offset_key if offset else "size"
                self.mistakes.report(
                    (*step.path, step.verb, blamed),
                    f"reaches beyond the end of buffer {name!r}",
                    read=f"bytes from {quantity.write_size(offset)}"
                    + (f", {quantity.write_size(size)} of them" if size else ""),
                    legal=f"the buffer has {quantity.write_size(buffer.size)}",
                )

    def _known(self, path: TreePath, name: str, known: Iterable[str], what: str) -> bool:
        options = [str(option) for option in known]
        if name in options:
            return True
        legal = listed(options) or "there is none"
        self.mistakes.report(
            path, f"{name!r} is no {what}", read=shown(name), legal=legal, nearest=nearest(name, options)
        )
        return False

    def _labels(self) -> list[str]:
        """What names a process, or one of its ranks."""
        ranks = Counter(process.name for process in self.parts.processes)
        one = [f"{p.name}[{p.rank}]" for p in self.parts.processes if ranks[p.name] > 1]
        return [*ranks, *one]


def _visible(count: int, text: str) -> int:
    """How many of `count` GPUs a list such as `0,2` leaves; it ends at the first entry that is none."""
    seen: set[int] = set()
    for entry in text.split(","):
        number = int(entry) if entry.strip().isdigit() else count
        if number >= count or number in seen:
            break
        seen.add(number)
    return len(seen)
