"""Block devices: a drive, or drives put together by md, device mapper, multipath or loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gpusim.engine.flows import Hop
from gpusim.hardware.drive import Drive, Route
from gpusim.hardware.fabric import Fabric
from gpusim.linux.stack_spec import StackKind, stack_capacity

Done = Callable[[], None]


class BlockDevice(Protocol):
    """What a file lies on."""

    name: str

    @property
    def drives(self) -> tuple[Drive, ...]:
        """The drives at the bottom."""
        ...

    @property
    def capacity(self) -> int:
        """Bytes."""
        ...

    @property
    def pci(self) -> str | None:
        """The PCI device that the kernel finds behind it; None where it finds none (md, device mapper, loop)."""
        ...

    def reserve(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        at_ps: int,
        *,
        write: bool,
        extra: tuple[Hop, ...] = (),
    ) -> int:
        """Begin a small request at `at_ps`, now or later; returns its end, or -1 where it has to be submitted."""
        ...

    def submit(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        done: Done,
        *,
        write: bool,
        stream: float | None = None,
        extra: tuple[Hop, ...] = (),
        at_ps: int | None = None,
    ) -> None:
        """Begin a request between the device and host memory (HOST) or a GPU, now or at `at_ps`; see `Drive.submit`.

        `extra` are hops that its data pass besides the path between the two.
        """
        ...

    def alone_ps(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        *,
        write: bool,
        stream: float | None = None,
        extra: tuple[Hop, ...] = (),
    ) -> int:
        """What the same request would take with nobody else on its way; asked before it is submitted."""
        ...

    def flush(self, done: Done) -> None:
        """Make what was written before safe."""
        ...


class Disk:
    """A drive as a block device."""

    __slots__ = ("_fabric", "_routes", "drive", "name")

    def __init__(self, drive: Drive, fabric: Fabric) -> None:
        self.drive = drive
        self.name = drive.name
        self._fabric = fabric
        self._routes: dict[tuple[int, bool, tuple[Hop, ...]], Route] = {}

    @property
    def drives(self) -> tuple[Drive, ...]:
        return (self.drive,)

    @property
    def capacity(self) -> int:
        return self.drive.spec.capacity

    @property
    def pci(self) -> str | None:
        return self.name

    def reserve(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        at_ps: int,
        *,
        write: bool,
        extra: tuple[Hop, ...] = (),
    ) -> int:
        route = self._routes.get((target, write, extra))
        if route is None:
            route = self._route(target, write, extra)
        return self.drive.reserve(size_bytes, route, at_ps)

    def submit(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        done: Done,
        *,
        write: bool,
        stream: float | None = None,
        extra: tuple[Hop, ...] = (),
        at_ps: int | None = None,
    ) -> None:
        self.drive.submit(size_bytes, self._route(target, write, extra), done, stream, at_ps)

    def alone_ps(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        *,
        write: bool,
        stream: float | None = None,
        extra: tuple[Hop, ...] = (),
    ) -> int:
        return self.drive.alone_ps(size_bytes, self._route(target, write, extra), stream)

    def _route(self, target: int, write: bool, extra: tuple[Hop, ...]) -> Route:
        key = (target, write, extra)
        route = self._routes.get(key)
        if route is None:
            fabric, name = self._fabric, self.name
            hops = (*fabric.route(name, target, write=write), *extra)
            route = self._routes[key] = self.drive.route(
                hops, write=write, delay_ps=fabric.delay_ps(name, target)
            )
        return route

    def flush(self, done: Done) -> None:
        self.drive.flush(done)


class Stack:
    """Members put together. `chunk` is the stripe of RAID 0; `through` are hops of the CPU work of its layer.

    Left out: RAID 4, 5, 6 and 10, rebuilds, and the bitmap of RAID 1.
    """

    def __init__(
        self,
        name: str,
        kind: StackKind,
        members: Sequence[BlockDevice],
        *,
        chunk: int,
        through: tuple[Hop, ...] = (),
    ) -> None:
        self.name = name
        self.kind = kind
        self.members = tuple(members)
        self._chunk = chunk
        self._through = through
        self._turn = 0  # of RAID 1 reads and multipath

    @property
    def drives(self) -> tuple[Drive, ...]:
        return tuple(drive for member in self.members for drive in member.drives)

    @property
    def capacity(self) -> int:
        return stack_capacity(self.kind, [member.capacity for member in self.members])

    @property
    def pci(self) -> str | None:
        return None

    def reserve(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        at_ps: int,
        *,
        write: bool,
        extra: tuple[Hop, ...] = (),
    ) -> int:
        parts = self._parts(offset, size_bytes, write)
        if len(parts) > 1:
            return -1
        member, start, size = parts[0]
        return member.reserve(start, size, target, at_ps, write=write, extra=(*self._through, *extra))

    def submit(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        done: Done,
        *,
        write: bool,
        stream: float | None = None,
        extra: tuple[Hop, ...] = (),
        at_ps: int | None = None,
    ) -> None:
        parts = self._parts(offset, size_bytes, write)
        hops = (*self._through, *extra)
        left = len(parts)

        def ended() -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        for member, start, size in parts:
            member.submit(start, size, target, ended, write=write, stream=stream, extra=hops, at_ps=at_ps)

    def alone_ps(
        self,
        offset: int,
        size_bytes: int,
        target: int,
        *,
        write: bool,
        stream: float | None = None,
        extra: tuple[Hop, ...] = (),
    ) -> int:
        hops, turn = (*self._through, *extra), self._turn
        parts = self._parts(offset, size_bytes, write)
        self._turn = turn  # it was only asked
        return max(
            member.alone_ps(start, size, target, write=write, stream=stream, extra=hops)
            for member, start, size in parts
        )

    def _parts(self, offset: int, size: int, write: bool) -> list[tuple[BlockDevice, int, int]]:
        """(member, offset in it, bytes) of a request; the pieces of RAID 0 on one member are one request."""
        members = self.members
        if self.kind is StackKind.MD_RAID0:
            return self._striped(offset, size)
        if self.kind is StackKind.MD_RAID1 and write:
            return [(member, offset, size) for member in members]
        if self.kind is StackKind.LVM:
            return self._linear(offset, size)
        self._turn = (self._turn + 1) % len(members)
        return [(members[self._turn], offset, size)]

    def _striped(self, offset: int, size: int) -> list[tuple[BlockDevice, int, int]]:
        chunk, count = self._chunk, len(self.members)
        first, last = offset // chunk, (offset + max(1, size) - 1) // chunk
        if first == last:
            return [(self.members[first % count], first // count * chunk + offset % chunk, size)]
        shares = [0] * count
        whole, rest = divmod(last - first + 1, count)
        for place in range(count):
            member = (first + place) % count
            shares[member] = (whole + (place < rest)) * chunk
        shares[first % count] -= offset - first * chunk
        shares[last % count] -= (last + 1) * chunk - (offset + size)
        return [
            (member, first // count * chunk, share)
            for member, share in zip(self.members, shares, strict=True)
            if share
        ]

    def _linear(self, offset: int, size: int) -> list[tuple[BlockDevice, int, int]]:
        parts: list[tuple[BlockDevice, int, int]] = []
        for member in self.members:
            room = member.capacity
            if offset < room:
                part = min(size, room - offset)
                parts.append((member, offset, part))
                size -= part
                offset = 0
                if size <= 0:
                    break
            else:
                offset -= room
        return parts

    def flush(self, done: Done) -> None:
        left = len(self.members)

        def ended() -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        for member in self.members:
            member.flush(ended)
