"""The knobs of file I/O: direct or through host memory, threads, block size, calls in flight."""

from __future__ import annotations

from gpusim.quantity import KIB, MIB, write_size
from gpusim.runtime.file_job import Bounce
from gpusim.runtime.hipfile.config import FORCE, Configuration
from gpusim.runtime.hipfile.version import HipFileVersion
from gpusim.scenario.schema import Process, Scenario
from gpusim.scenario.words import DEVICE_ALLOCATORS, FileSystem, FileType
from gpusim.study.recommend.knob import Assign, Edit, Knob, Option
from gpusim.study.recommend.machine import MachineFacts
from gpusim.study.recommend.program import Program, Site
from gpusim.study.recommend.space import Found
from gpusim.workload.steps.files import FileBatch, FileOrder, FileTransfer, TransferApi

_BLOCKS = (64 * KIB, 256 * KIB, 1 * MIB, 4 * MIB, 16 * MIB)
_DEPTHS = (1, 4, 16, 64)
_DIRECT_UNIT = 4096  # what O_DIRECT needs block sizes and offsets to be multiples of
_HIPFILE = "hipFile"
#: how a program moves a block between a file and a GPU: label -> interface, host buffer, O_DIRECT
_ROUTES: dict[str, tuple[TransferApi, Bounce, bool]] = {
    _HIPFILE: (TransferApi.SYNC, Bounce.PAGEABLE, False),
    "pread or pwrite, pageable": (TransferApi.POSIX, Bounce.PAGEABLE, False),
    "pread or pwrite, pinned": (TransferApi.POSIX, Bounce.PINNED, False),
    "O_DIRECT, pageable": (TransferApi.POSIX, Bounce.PAGEABLE, True),
    "O_DIRECT, pinned": (TransferApi.POSIX, Bounce.PINNED, True),
}


class FileKnobs:
    """Finds the knobs of one program."""

    def __init__(self, scenario: Scenario, program: Program, machine: MachineFacts, found: Found) -> None:
        self.scenario = scenario
        self.program = program
        self.machine = machine
        self.found = found
        self._routes: list[tuple[str, frozenset[str]]] = []
        self._always_hipfile = False

    def find(self) -> None:
        """Add what there is to `found`."""
        for site in self.program.sites:
            args = site.step.args
            if isinstance(args, FileTransfer):
                self._add_route(site, args)
                self._add_sizes(site, args)
            elif isinstance(args, FileBatch):
                self._always_hipfile = True
            if isinstance(args, FileTransfer | FileBatch):
                self._add_threads(site, args)
        self._add_compat()

    # -- direct or bounce ----------------------------------------------------------------------------------------------

    def _add_route(self, site: Site, args: FileTransfer) -> None:
        process = self.program.process
        what = f"path of {self.program.label(site)}"
        buffer = process.buffers[args.buffer]
        if args.api is TransferApi.ASYNC or args.depth > 1 or buffer.allocator not in DEVICE_ALLOCATORS:
            self._always_hipfile |= args.api is not TransferApi.POSIX
            return
        routes = dict(_ROUTES)
        if not _direct_io(process, args):
            routes = {label: route for label, route in routes.items() if not route[2]}
        now = (args.api, args.bounce, args.direct) if args.api is TransferApi.POSIX else _ROUTES[_HIPFILE]
        if now not in routes.values():
            routes[next(label for label, route in _ROUTES.items() if route == now)] = now
        own = next(label for label, route in routes.items() if route == now)
        options = tuple(
            Option(label, () if label == own else tuple(_routed(site, *route)))
            for label, route in routes.items()
        )
        self.found.knobs.append(Knob(what, "route", options, own=list(routes).index(own)))
        self._routes.append((what, frozenset({_HIPFILE})))

    def _add_compat(self) -> None:
        """hipFile's own choice between the fast path and its fallback, by HIPFILE_FORCE_COMPAT_MODE."""
        if not (self._routes or self._always_hipfile):
            return
        process = self.program.process
        what = f"hipFile of {process.name}"
        library = self.scenario.runtime.hipfile
        version = HipFileVersion.V0_5_0 if library is None else library.version
        missing = () if library is None else library.missing_symbols
        now, forced, free = (
            Configuration.read(env, version, missing)
            for env in (process.env, {**process.env, FORCE: "true"}, {**process.env, FORCE: "false"})
        )
        if not free.fastpath:
            self.found.leave("route", what, "the HIP runtime has no entry points for the fast path")
            return
        if not forced.fallback:
            self.found.leave("route", what, "the fallback is switched off by HIPFILE_ALLOW_COMPAT_MODE")
            return
        place = (*self.program.place, "env", FORCE)
        direct = Option("fast path", () if now.fastpath else (Assign(place, "false"),))
        bounce = Option("fallback", (Assign(place, "true"),) if now.fastpath else ())
        own = 0 if now.fastpath else 1
        active = () if self._always_hipfile else tuple(self._routes)
        self.found.knobs.append(Knob(what, "route", (direct, bounce), own=own, idle=own, active=active))

    # -- numbers -------------------------------------------------------------------------------------------------------

    def _add_threads(self, site: Site, args: FileTransfer | FileBatch) -> None:
        most = self.machine.host.cores
        if isinstance(args, FileTransfer) and args.duration is None:
            most = min(most, max(1, -(-self._bytes(args) // args.io_size)))
        counts = sorted({args.threads, *(1 << power for power in range(9) if 1 << power <= most)})
        self._number(site, "threads", "threads", counts, args.threads)
        queues = isinstance(args, FileTransfer) and (args.depth > 1 or args.api is TransferApi.ASYNC)
        if isinstance(args, FileTransfer) and queues:
            self._number(site, "depth", "depth", sorted({args.depth, *_DEPTHS}), args.depth)

    def _number(self, site: Site, key: str, group: str, numbers: list[int], own: int) -> None:
        place = (*site.args, key)
        options = tuple(Option(str(one), () if one == own else (Assign(place, one),)) for one in numbers)
        if len(options) > 1:
            what = f"{key} of {self.program.label(site)}"
            self.found.knobs.append(Knob(what, group, options, own=numbers.index(own)))

    def _add_sizes(self, site: Site, args: FileTransfer) -> None:
        """Blocks of another size move the same bytes only where they are taken in order and fill the whole."""
        what = f"io_size of {self.program.label(site)}"
        if args.order is FileOrder.RANDOM and not args.pieces:
            self.found.leave("io_size", what, "a block drawn at random is what the program asks for")
            return
        whole = self._bytes(args)
        sizes = [
            size
            for size in _BLOCKS
            if size != args.io_size and size <= whole and (args.pieces or whole % size == 0)
        ]
        if args.io_size % _DIRECT_UNIT or (args.pieces == () and whole % args.io_size):
            return
        sizes = sorted([*sizes, args.io_size])
        if len(sizes) < 2:
            return
        place = (*site.args, "io_size")
        options = tuple(
            Option(write_size(size), () if size == args.io_size else (Assign(place, write_size(size)),))
            for size in sizes
        )
        self.found.knobs.append(Knob(what, "io_size", options, own=sizes.index(args.io_size)))

    def _bytes(self, args: FileTransfer) -> int:
        """What the step moves, as far as the scenario says it."""
        if args.size is not None:
            return args.size
        if args.pieces:
            return sum(piece.size * piece.count for piece in args.pieces)
        process = self.program.process
        names = (args.file,) if isinstance(args.file, str) else args.file
        room = process.buffers[args.buffer].size - (args.buffer_offset or 0)
        return min(room, *(process.files[name].size - (args.file_offset or 0) for name in names))


def _direct_io(process: Process, args: FileTransfer) -> bool:
    """Can the program open its files with O_DIRECT and read these blocks?"""
    names = (args.file,) if isinstance(args.file, str) else args.file
    return all(
        file.supports_o_direct and file.type is FileType.REGULAR and file.filesystem is not FileSystem.TMPFS
        for file in (process.files[name] for name in names)
    ) and not any(
        amount % _DIRECT_UNIT
        for amount in (args.io_size, args.file_offset or 0, args.buffer_offset or 0, args.size or 0)
    )


def _routed(site: Site, api: TransferApi, bounce: Bounce, direct: bool) -> list[Edit]:
    edits: list[Edit] = [Assign((*site.args, "api"), api.value)]
    posix = api is TransferApi.POSIX
    edits.append(Assign((*site.args, "bounce"), bounce.value if posix else None))
    edits.append(Assign((*site.args, "direct"), direct if posix else None))
    return edits
